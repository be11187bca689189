// The confusion matrix, the pairs that are confused most, and below them the rows of the chosen cell.

import { element } from "./dom.js";
import { confusedPairs, confusionMatrix } from "./matrix.js";

const MOST_PAIRS = 10;

// open(truth, answer) returns the element to show for a cell
export function confusionSection(data, open) {
  const { classes, confusion } = data;
  const below = element("div", { "aria-live": "polite" });
  const show = (truth, answer) => {
    const title = truth === answer ? `${classes[truth]}, correct` : `${classes[truth]}, predicted as ${classes[answer]}`;
    const head = element("h3", { tabindex: "-1" }, `${title}: ${confusion[truth][answer]}`);
    below.replaceChildren(head, open(truth, answer));
    head.focus({ preventScroll: true });
    below.scrollIntoView({ block: "start" });
  };
  const pairs = confusedPairs(confusion).slice(0, MOST_PAIRS).map(({ truth, answer, rows }) =>
    element("li", {}, element("button", { click: () => show(truth, answer) }, `${rows} × ${classes[truth]} predicted as ${classes[answer]}`)));
  return element("div", {}, element("div", { class: "beside" }, confusionMatrix(data, show), element("ul", { class: "pairs" }, pairs)), below);
}
