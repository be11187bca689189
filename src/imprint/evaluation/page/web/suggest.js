// The page of `imprint suggest`.

import { element, section, tile } from "./dom.js";
import { percent } from "./numbers.js";
import { cards } from "./cards.js";
import { flatMap } from "./map.js";

const data = JSON.parse(document.getElementById("data").textContent);
const hasModel = data.items.some((item) => item.top);

// Why an input was chosen, and what the model predicts for it.
function reasonAndGuesses(item) {
  const top = (item.top ?? []).map(([label, share]) => `${label} ${percent(share)}`).join(", ");
  return [element("b", {}, `${item.place}. ${item.reason}`), top ? element("span", { class: "guesses" }, top) : null];
}

// The reasons without the classes that they name, by how many inputs have them.
function kinds() {
  const sizes = new Map();
  for (const { reason } of data.items) {
    const kind = reason.startsWith("between") ? "between two classes" : reason;
    sizes.set(kind, (sizes.get(kind) ?? 0) + 1);
  }
  return [...sizes].sort((a, b) => b[1] - a[1]);
}

function tiles() {
  return element("div", { class: "tiles" }, tile(data.pool.toLocaleString("en"), "in the pool"), tile(data.items.length.toLocaleString("en"), "suggested"),
    ...kinds().slice(0, 2).map(([kind, n]) => tile(n.toLocaleString("en"), kind)));
}

const ring = hasModel ? "Each point is an input of the pool in the colour of the predicted class. Suggested inputs have a ring." : "Each point is an input of the pool. Suggested inputs have a ring.";
const numbered = data.items.map((item, i) => ({ ...item, place: i + 1 }));
const unreadable = data.unreadable.map((u) => element("li", {}, `${u.path}: ${u.reason}`));
const how = element("p", { class: "pale" }, `The most useful come first, with the reason${hasModel ? " and the most probable classes" : ""}. Label from the start of the list; after some, suggest again.`);
document.getElementById("page").append(...[
  tiles(),
  section("Label these next", how, cards(numbered, reasonAndGuesses, numbered.length)),
  data.map ? section("Map", flatMap(data.map, data.classes, ring)) : null,
  unreadable.length ? section("Unreadable", element("ul", { class: "plain" }, unreadable)) : null,
].filter(Boolean));
