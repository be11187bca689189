// The reliability diagram: share of correct answers over their probability.

import { shape } from "./dom.js";

const SIZE = 400;
const LEFT = 44;
const BOTTOM = 40;
const PLOT = SIZE - LEFT - 12;

// bins: [[rows, mean probability, share correct], ...]
export function reliabilityDiagram(bins) {
  const x = (share) => LEFT + PLOT * share;
  const y = (share) => SIZE - BOTTOM - PLOT * share;
  const most = Math.max(...bins.map(([rows]) => rows), 1);
  const marks = [0, 0.25, 0.5, 0.75, 1];
  const grid = marks.flatMap((m) => [
    shape("line", { class: "grid", x1: x(0), x2: x(1), y1: y(m), y2: y(m) }),
    shape("text", { x: LEFT - 6, y: y(m) + 4, "text-anchor": "end" }, `${100 * m}`),
    shape("text", { x: x(m), y: y(0) + 16, "text-anchor": "middle" }, `${100 * m}`),
  ]);
  const gaps = bins.map(([, p, right]) => shape("line", { x1: x(p), x2: x(p), y1: y(p), y2: y(right), stroke: "rgba(var(--wrong), .55)", "stroke-width": 2 }));
  const dots = bins.map(([rows, p, right]) => shape("circle", { cx: x(p), cy: y(right), r: 4 + 9 * Math.sqrt(rows / most), fill: "rgba(var(--right), .75)" },
    shape("title", {}, `${rows} answers given with ${(100 * p).toFixed(0)} % on average; ${(100 * right).toFixed(0)} % correct`)));
  return shape("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, class: "diagram", role: "img", "aria-label": "Reliability diagram" },
    grid, shape("line", { class: "dash", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }), gaps, dots,
    shape("text", { x: x(0.5), y: SIZE - 4, "text-anchor": "middle" }, "probability of the answers, %"),
    shape("text", { x: 12, y: y(0.5), "text-anchor": "middle", transform: `rotate(-90 12 ${y(0.5)})` }, "correct, %"));
}
