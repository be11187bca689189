// The page of `imprint evaluate`.

import { element, section, tile } from "./dom.js";
import { count, percent } from "./numbers.js";
import { answer, cards } from "./cards.js";
import { bars } from "./bars.js";
import { confusionMatrix } from "./confusion.js";
import { reliabilityDiagram } from "./reliability.js";
import { flatMap } from "./map.js";

const data = JSON.parse(document.getElementById("data").textContent);
const MOST_BARS = 30;
const rowsOf = (places) => places.map((p) => data.items[p]);

function tiles() {
  const measured = data.per_class.filter(([rows]) => rows > 0);
  const balanced = measured.reduce((sum, [, recall]) => sum + recall, 0) / measured.length;
  const right = 1 - data.all_mistakes / data.rows;
  return element("div", { class: "tiles" },
    tile(percent(right), "accuracy"), tile(percent(balanced), "balanced accuracy"),
    tile(percent(data.calibration_error), "calibration error"), tile(data.all_mistakes.toLocaleString("en"), "mistakes", data.all_mistakes ? "#mistakes" : undefined));
}

function behind(truth, answered) {
  const found = rowsOf(data.cells[`${truth},${answered}`] ?? []);
  const left = data.confusion[truth][answered] - found.length;
  const note = left > 0 ? element("p", { class: "pale" }, `${found.length} of them${truth === answered ? ", the least sure" : ", the surest"}.`) : null;
  return element("div", {}, note, cards(found, answer));
}

function perClass() {
  const entries = data.per_class.map(([rows, recall, precision], c) => ({ name: data.classes[c], share: recall, beside: `of ${rows}; answers right ${percent(precision, 0)}`, rows }));
  const order = entries.filter((e) => e.rows > 0).sort((a, b) => a.share - b.share);
  return section("Accuracy by class", element("p", { class: "pale" }, "The share of the rows of each class that is found, the lowest first; beside it, how many of the answers with this class are right." + (order.length > MOST_BARS ? ` The ${MOST_BARS} lowest of ${order.length}.` : "")), bars(order.slice(0, MOST_BARS)));
}

function mistakes() {
  if (!data.mistakes.length) return section("Mistakes", element("p", {}, "None."));
  const cut = data.mistakes.length < data.all_mistakes ? ` The first ${data.mistakes.length} of ${data.all_mistakes}.` : "";
  const made = section("Mistakes", element("p", { class: "pale" }, `The surest first; beside each, where it is at hand, the training input that counted most for the answer.${cut}`), cards(rowsOf(data.mistakes), answer));
  made.id = "mistakes";
  return made;
}

function notes() {
  const unknown = data.unknown.length ? element("p", {}, `The model does not know ${data.unknown.join(", ")}: rows labelled so count as mistakes.`) : null;
  const unreadable = data.unreadable.length ? element("div", {}, element("p", {}, `${count(data.unreadable.length, "input")} could not be read and ${data.unreadable.length === 1 ? "does" : "do"} not count:`),
    element("ul", { class: "plain" }, data.unreadable.map((u) => element("li", {}, `${u.path}: ${u.reason}`)))) : null;
  return unknown || unreadable ? section("Also", unknown, unreadable) : null;
}

const wrong = "Each point is a row in the colour of its class; mistakes have a ring. Classes far apart are easy to tell apart; close ones may still differ in directions a flat map does not show.";
document.getElementById("page").append(...[
  tiles(),
  section("What is called what", element("p", { class: "pale" }, "A row of the table is a class, a column what its rows are called. A field opens the rows behind it."), confusionMatrix(data, behind)),
  element("div", { class: "two" },
    section("Can the probabilities be trusted?", element("p", { class: "pale" }, "Answers on the dashed line keep their word: of those given with 80 %, 80 % are right. Below it the model is too sure."), reliabilityDiagram(data.reliability)),
    perClass()),
  mistakes(),
  section("Map", flatMap(data.map, data.classes, (row, c) => data.classes[c], wrong)),
  notes(),
].filter(Boolean));
