// The page of `imprint check`.

import { element, section, tile } from "./dom.js";
import { count, percent } from "./numbers.js";
import { cards, card } from "./cards.js";
import { flatMap } from "./map.js";

const data = JSON.parse(document.getElementById("data").textContent);
const TITLES = [["labels likely wrong", "mislabelled"], ["groups of duplicates", "duplicates"], ["outliers", "outliers"], ["unreadable", "unreadable"]];

function named(id, title, text, shown, total, content) {
  if (!total) return null;
  const cut = shown < total ? ` The first ${shown} of ${total.toLocaleString("en")}.` : "";
  const made = section(title, element("p", { class: "pale" }, text + cut), content);
  made.id = id;
  return made;
}

function mislabelled() {
  const items = data.mislabelled.map((s) => ({ ...data.items[s.item], suggested: s.suggested, sure: s.probability }));
  const words = (item) => ["labelled ", element("b", { class: "wrong" }, item.label), ", looks like ", element("b", {}, item.suggested), ` ${percent(item.sure, 0)}`];
  return named("mislabelled", "Labels that are likely wrong", "Models made without these rows call them something else, and so surely that the label is worth a look. The most suspect first.", items.length, data.totals[0], cards(items, words));
}

function duplicates() {
  const groups = data.duplicates.map(({ items, all }) => {
    const found = items.map((p) => data.items[p]);
    const labels = new Set(found.map((item) => item.label));
    const title = `${count(all, "copy", "copies")}${labels.size > 1 ? ", under different labels" : ""}`;
    const grid = element("div", { class: found.some((i) => i.text !== undefined) ? "cards texts" : "cards" }, found.map((item) => card(item, element("b", {}, item.label))));
    return element("div", { class: "group" }, element("h3", { class: labels.size > 1 ? "wrong" : "" }, title), grid);
  });
  return named("duplicates", "Duplicates", "The same thing twice, or nearly. Copies on both sides of a split make a model look better than it is.", groups.length, data.totals[1], element("div", {}, groups));
}

function outliers() {
  const items = data.outliers.map((p) => data.items[p]);
  return named("outliers", "Outliers", "Unlike everything else here; the farthest first. They may belong to none of the classes.", items.length, data.totals[2], cards(items, (item) => element("b", {}, item.label)));
}

function unreadable() {
  const lines = data.unreadable.map((u) => element("li", {}, `${u.path}: ${u.reason}`));
  return named("unreadable", "Unreadable", "These cannot be read, and are left out of everything above.", lines.length, data.totals[3], element("ul", { class: "plain" }, lines));
}

const nothing = data.totals.every((n) => n === 0) ? section("Nothing found", element("p", {}, "No label looks wrong, nothing is there twice, and everything can be read.")) : null;
const suspect = "Each point is a row in the colour of its label; those whose label is likely wrong have a ring.";
document.getElementById("page").append(...[
  element("div", { class: "tiles" }, TITLES.map(([title, id], k) => tile(data.totals[k].toLocaleString("en"), title, data.totals[k] ? `#${id}` : undefined))),
  nothing, mislabelled(), duplicates(), outliers(), unreadable(),
  section("Map", flatMap(data.map, data.classes, (row, c) => data.classes[c], suspect)),
].filter(Boolean));
