// A flat map of embeddings.

import { element, shape } from "./dom.js";
import { colour } from "./numbers.js";

const WIDTH = 720;
const HEIGHT = 520;
const EDGE = 16;
const MOST_NAMED = 30;

// Points [x, y] to pixels, with the same scale for both and all of them inside.
function toPixels(points) {
  const ends = [0, 1].map((k) => [Math.min(...points.map((p) => p[k])), Math.max(...points.map((p) => p[k]))]);
  const spans = ends.map(([low, high]) => high - low || 1);
  const scale = Math.min((WIDTH - 2 * EDGE) / spans[0], (HEIGHT - 2 * EDGE) / spans[1]);
  const middle = ends.map(([low, high]) => (low + high) / 2);
  return ([x, y]) => [WIDTH / 2 + scale * (x - middle[0]), HEIGHT / 2 - scale * (y - middle[1])];
}

// points: [x, y, class], the last `marked` of them marked, which has this meaning
export function flatMap({ points, marked }, classes, meaning) {
  const pixels = toPixels(points);
  const groups = classes.map(() => []);
  const dots = points.map((point, i) => {
    const [cx, cy] = pixels(point);
    const stands = i >= points.length - marked;
    const dot = shape("circle", { cx: cx.toFixed(1), cy: cy.toFixed(1), r: stands ? 5 : 3.4, fill: colour(point[2]), class: stands ? "marked" : "" },
      shape("title", {}, classes[point[2]]));
    groups[point[2]].push(dot);
    return dot;
  });
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "map", role: "img", "aria-label": "Map of the embeddings" }, dots);
  const keys = classes.map((label, c) => groups[c].length ? legend(label, c, groups[c]) : null);
  const ring = marked ? element("p", { class: "pale" }, meaning) : null;
  return element("div", {}, ring, svg, classes.length <= MOST_NAMED ? element("div", { class: "legend" }, keys) : null);
}

function legend(label, c, dots) {
  const toggle = (event) => {
    const shown = event.currentTarget.getAttribute("aria-pressed") !== "true";
    event.currentTarget.setAttribute("aria-pressed", String(shown));
    for (const dot of dots) dot.style.display = shown ? "" : "none";
  };
  return element("button", { "aria-pressed": "true", click: toggle, title: label },
    element("i", { class: "dot", style: `background:${colour(c)}` }), element("span", {}, label));
}
