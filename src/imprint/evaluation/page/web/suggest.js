// The page of `imprint suggest`.

import { element, section } from "./dom.js";
import { cards } from "./cards.js";

const data = JSON.parse(document.getElementById("data").textContent);
const reasons = (item) => element("b", {}, item.reason);
const unreadable = data.unreadable.map((u) => element("li", {}, `${u.path}: ${u.reason}`));
document.getElementById("page").append(...[
  section("Label next", cards(data.items, reasons, data.items.length)),
  unreadable.length ? section("Unreadable", element("ul", { class: "plain" }, unreadable)) : null,
].filter(Boolean));
