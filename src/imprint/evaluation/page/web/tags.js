// The page of `imprint evaluate` for a model of tags.

import { element, section, tile } from "./dom.js";
import { percent } from "./numbers.js";
import { cards } from "./cards.js";
import { bars } from "./bars.js";
import { reliabilityDiagram } from "./reliability.js";

const data = JSON.parse(document.getElementById("data").textContent);
const names = ["mean average precision", "macro F1", "micro F1", "calibration error"];
const entries = data.per_label.filter(([, rows]) => rows > 0).map(([name, rows, ap, f1, precision, recall]) => ({
  name, share: f1, note: `of ${rows}; average precision ${percent(ap, 0)}, precision ${percent(precision, 0)}, recall ${percent(recall, 0)}`,
})).sort((a, b) => a.share - b.share);
const words = (item) => [element("b", { class: "wrong" }, item.predicted), ", correct: ", element("b", {}, item.label)];
const cut = data.mistakes.length < data.all_mistakes ? ` The first ${data.mistakes.length} of ${data.all_mistakes}.` : "";
const unreadable = data.unreadable.map((u) => element("li", {}, `${u.path}: ${u.reason}`));

document.getElementById("page").append(...[
  element("div", { class: "tiles" }, data.figures.map((value, i) => tile(percent(value), names[i]))),
  section("F1 by label", element("p", { class: "pale" }, "The harmonic mean of precision and recall, the lowest first."), bars(entries)),
  section("Reliability", element("p", { class: "pale" }, "On the dashed line, probabilities are calibrated: 80 % of the labels given with 80 % are correct."), reliabilityDiagram(data.reliability)),
  data.mistakes.length ? section("Mistakes", element("p", { class: "pale" }, `The least expected first.${cut}`), cards(data.mistakes.map((p) => data.items[p]), words)) : null,
  unreadable.length ? section("Unreadable", element("ul", { class: "plain" }, unreadable)) : null,
].filter(Boolean));
