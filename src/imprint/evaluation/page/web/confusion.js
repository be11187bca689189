// The confusion matrix; a cell shows its rows and scrolls to them.

import { element } from "./dom.js";
import { count } from "./numbers.js";

const MOST_CLASSES = 20;
const MOST_PAIRS = 10;

// Pairs of classes by how many rows of the first are predicted as the second: [{truth, answer, rows}], most first.
export function confusedPairs(confusion) {
  const pairs = confusion.flatMap((row, truth) => row.map((rows, answer) => ({ truth, answer, rows })));
  return pairs.filter((p) => p.truth !== p.answer && p.rows > 0).sort((a, b) => b.rows - a.rows);
}

// The classes to show if there are too many: those with the most mistakes, in their original order.
export function chosenClasses(confusion, most = MOST_CLASSES) {
  if (confusion.length <= most) return confusion.map((_, c) => c);
  const wrong = confusion.map(() => 0);
  for (const { truth, answer, rows } of confusedPairs(confusion)) { wrong[truth] += rows; wrong[answer] += rows; }
  return wrong.map((rows, c) => [rows, c]).sort((a, b) => b[0] - a[0]).slice(0, most).map(([, c]) => c).sort((a, b) => a - b);
}

// Light enough that the text keeps a contrast of 4.5 in both colour schemes; a test measures it.
export function shade(rows, all, right) {
  const strength = rows === 0 ? 0 : 0.08 + 0.27 * Math.sqrt(rows / Math.max(all, 1));
  return `rgba(var(--${right ? "right" : "wrong"}), ${strength.toFixed(3)})`;
}

// open(truth, answer) returns the element to show for a cell
export function confusionMatrix({ classes, confusion }, open) {
  const below = element("div", { "aria-live": "polite" });
  const places = chosenClasses(confusion);
  const show = (truth, answer, button) => {
    for (const other of table.querySelectorAll("[aria-expanded=true]")) other.setAttribute("aria-expanded", "false");
    button?.setAttribute("aria-expanded", "true");
    const title = truth === answer ? `${classes[truth]}, correct` : `${classes[truth]}, predicted as ${classes[answer]}`;
    const head = element("h3", { tabindex: "-1" }, `${title}: ${confusion[truth][answer]}`);
    below.replaceChildren(head, open(truth, answer));
    head.focus({ preventScroll: true });
    below.scrollIntoView({ block: "start" });
  };
  const cell = (truth, answer) => {
    const rows = confusion[truth][answer];
    if (!rows) return element("td", {}, element("i", {}, element("span", { class: "hidden" }, "0")));
    const all = confusion[truth].reduce((a, b) => a + b, 0);
    const label = `${count(rows, "row")} of ${classes[truth]} predicted as ${classes[answer]}`;
    const style = `background:${shade(rows, all, truth === answer)}`;
    return element("td", {}, element("button", { style, title: label, "aria-label": label, "aria-expanded": "false",
      click: (event) => show(truth, answer, event.currentTarget) }, String(rows)));
  };
  const head = element("tr", {}, element("th", { scope: "col" }, "class"), places.map((c) => element("th", { scope: "col", title: classes[c] }, element("span", {}, classes[c]))));
  const rows = places.map((t) => element("tr", {}, element("th", { scope: "row", title: classes[t] }, classes[t]), places.map((a) => cell(t, a))));
  const table = element("table", { class: "matrix" }, element("thead", {}, head), element("tbody", {}, rows));
  const pairs = confusedPairs(confusion).slice(0, MOST_PAIRS).map(({ truth, answer, rows: n }) =>
    element("li", {}, element("button", { click: () => show(truth, answer) }, `${n} × ${classes[truth]} predicted as ${classes[answer]}`)));
  const cut = places.length < classes.length ? element("p", { class: "pale" }, `The ${places.length} of ${classes.length} classes with the most mistakes.`) : null;
  return element("div", {}, cut, element("div", { class: "beside" }, element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Confusion matrix" }, table), element("ul", { class: "pairs" }, pairs)), below);
}
