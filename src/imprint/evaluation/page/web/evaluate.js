// The page of `imprint evaluate`.

import { element, section, tile } from "./dom.js";
import { count, percent } from "./numbers.js";
import { answer, cards, whereButton } from "./cards.js";
import { bars } from "./bars.js";
import { confusionSection } from "./confusion.js";
import { reliabilityDiagram } from "./reliability.js";
import { flatMap } from "./map.js";

const data = JSON.parse(document.getElementById("data").textContent);
const MOST_BARS = 30;
const items = (rows) => rows.map((row) => data.items[row]);

function tiles() {
  const measured = data.per_class.filter(([rows]) => rows > 0);
  const balanced = measured.reduce((sum, [, recall]) => sum + recall, 0) / measured.length;
  const right = 1 - data.all_mistakes / data.rows;
  return element("div", { class: "tiles" },
    tile(percent(right), "accuracy"), ...data.levels.map(([level, accuracy]) => tile(percent(accuracy), `accuracy at level ${level}`)), tile(percent(balanced), "balanced accuracy"),
    tile(percent(data.calibration_error), "calibration error"), tile(data.all_mistakes.toLocaleString("en"), "mistakes", data.all_mistakes ? "#mistakes" : undefined));
}

function rowsOfCell(truth, predicted) {
  const rows = items(data.cells[`${truth},${predicted}`] ?? []);
  const left = data.confusion[truth][predicted] - rows.length;
  const note = left > 0 ? element("p", { class: "pale" }, `The ${rows.length} with the ${truth === predicted ? "lowest" : "highest"} probability.`) : null;
  return element("div", {}, note, cards(rows, answer));
}

function perClass() {
  const entries = data.per_class.map(([rows, recall, precision], c) => ({ name: data.classes[c], share: recall, note: `of ${rows}; precision ${percent(precision, 0)}`, rows }));
  const order = entries.filter((e) => e.rows > 0).sort((a, b) => a.share - b.share);
  return section("Recall by class", element("p", { class: "pale" }, "The share of the rows of each class that is predicted correctly, the lowest first, with the precision." + (order.length > MOST_BARS ? ` The ${MOST_BARS} lowest of ${order.length}.` : "")), bars(order.slice(0, MOST_BARS)));
}

function mistakes() {
  if (!data.mistakes.length) return section("Mistakes", element("p", {}, "None."));
  const cut = data.mistakes.length < data.all_mistakes ? ` The first ${data.mistakes.length} of ${data.all_mistakes}.` : "";
  const node = section("Mistakes", element("p", { class: "pale" }, `The highest probability first, with the closest training input if the training data are available.${cut}`), whereButton(items(data.mistakes)), cards(items(data.mistakes), answer));
  node.id = "mistakes";
  return node;
}

function notes() {
  const unknown = data.unknown.length ? element("p", {}, `The model does not have the classes ${data.unknown.join(", ")}: their rows count as mistakes.`) : null;
  const unreadable = data.unreadable.length ? element("div", {}, element("p", {}, `${count(data.unreadable.length, "input")} could not be read and ${data.unreadable.length === 1 ? "does" : "do"} not count:`),
    element("ul", { class: "plain" }, data.unreadable.map((u) => element("li", {}, `${u.path}: ${u.reason}`)))) : null;
  return unknown || unreadable ? section("Notes", unknown, unreadable) : null;
}

const ring = "Each point is a row in the colour of its class. Mistakes have a ring. Classes that overlap here may still be separated in other directions.";
document.getElementById("page").append(...[
  tiles(),
  mistakes(),
  section("Confusion matrix", element("p", { class: "pale" }, "Rows are classes, columns are predictions. Choose a cell to see its rows; the arrow keys go from cell to cell."), confusionSection(data, rowsOfCell)),
  element("div", { class: "two" },
    section("Reliability", element("p", { class: "pale" }, "On the dashed line, probabilities are calibrated: 80 % of the answers given with 80 % are correct. Below it, they are too high."), reliabilityDiagram(data.reliability)),
    perClass()),
  section("Map", flatMap(data.map, data.classes, ring)),
  notes(),
].filter(Boolean));
