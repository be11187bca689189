// The page of `imprint check`.

import { element, section, tile } from "./dom.js";
import { count } from "./numbers.js";
import { cards, card } from "./cards.js";
import { flatMap } from "./map.js";

const data = JSON.parse(document.getElementById("data").textContent);
const TITLES = [["labels to check", "mislabelled"], ["groups of duplicates", "duplicates"], ["outliers", "outliers"], ["unreadable", "unreadable"]];

function named(id, title, text, shown, total, content) {
  if (!total) return null;
  const cut = shown < total ? ` The first ${shown} of ${total.toLocaleString("en")}.` : "";
  const node = section(title, element("p", { class: "pale" }, text + cut), content);
  node.id = id;
  return node;
}

function mislabelled() {
  const items = data.mislabelled.map((s) => ({ ...data.items[s.item], suggested: s.suggested, score: s.score }));
  const words = (item) => ["label ", element("b", { class: "wrong" }, item.label), ", suggested ", element("b", {}, item.suggested), `, score ${item.score.toFixed(1)}`];
  return named("mislabelled", "Labels to check", "Models fitted without these rows predict another class. The highest score, minus the logarithm of the probability of the label, comes first.", items.length, data.totals[0], cards(items, words));
}

function duplicates() {
  const groups = data.duplicates.map(({ items, all }) => {
    const copies = items.map((p) => data.items[p]);
    const labels = new Set(copies.map((item) => item.label));
    const title = `${count(all, "copy", "copies")}${labels.size > 1 ? " with different labels" : ""}`;
    const grid = element("div", { class: copies.some((i) => i.text !== undefined) ? "cards texts" : "cards" }, copies.map((item) => card(item, element("b", {}, item.label))));
    return element("div", { class: "group" }, element("h3", { class: labels.size > 1 ? "wrong" : "" }, title), grid);
  });
  return named("duplicates", "Duplicates", "Equal or nearly equal rows; groups with different labels first. Copies in both the train and the test split make the measured accuracy too high.", groups.length, data.totals[1], element("div", {}, groups));
}

function outliers() {
  const items = data.outliers.map((p) => data.items[p]);
  return named("outliers", "Outliers", "Rows far from all others, the farthest first. They may belong to none of the classes.", items.length, data.totals[2], cards(items, (item) => element("b", {}, item.label)));
}

function unreadable() {
  const lines = data.unreadable.map((u) => element("li", {}, `${u.path}: ${u.reason}`));
  return named("unreadable", "Unreadable", "These inputs cannot be read and are left out of everything above.", lines.length, data.totals[3], element("ul", { class: "plain" }, lines));
}

const nothing = data.totals.every((n) => n === 0) ? section("No problems found", element("p", {}, "There are no labels to check, no duplicates, no outliers and no unreadable inputs.")) : null;
const suspect = "Each point is a row in the colour of its label. Labels to check have a ring.";
document.getElementById("page").append(...[
  element("div", { class: "tiles" }, TITLES.map(([title, id], k) => tile(data.totals[k].toLocaleString("en"), title, data.totals[k] ? `#${id}` : undefined))),
  nothing, mislabelled(), duplicates(), outliers(), unreadable(),
  section("Map", flatMap(data.map, data.classes, suspect)),
].filter(Boolean));
