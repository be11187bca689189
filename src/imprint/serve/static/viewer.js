/** One picture or text, large: move it, delete it, go to the next. */

import { at, h, speak } from "./dom.js";
import * as server from "./server.js";
import { change, find, noun, store } from "./store.js";

let list = [];
let place = 0;

/** Open the viewer on an item of a list of numbers. */
export function view(id, ids) {
  list = ids;
  place = Math.max(0, ids.indexOf(id));
  draw();
  if (!at("viewer").open) at("viewer").showModal();
}

function draw() {
  const dialog = at("viewer");
  list = list.filter((id) => find(id));
  if (!list.length) { dialog.close(); return; }
  place = Math.min(place, list.length - 1);
  const { item, label } = find(list[place]);
  const mover = h("select", { "aria-label": "Move to", id: "move-to", onchange: async () => {
    if (mover.value && await change({ do: "move", ids: [item.id], label: mover.value })) { speak(`Moved to ${mover.value}.`); draw(); }
  } }, h("option", { value: "" }, "Move to …"), store.classes.filter((one) => one.label !== label).map((one) => h("option", { value: one.label }, one.label)));
  dialog.replaceChildren(
    h("div", { class: "viewer-top" },
      h("p", {}, h("strong", {}, label), h("span", { class: "muted" }, store.typed ? "" : ` ${item.name}`)),
      h("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => dialog.close() }, "×")),
    store.typed ? h("blockquote", {}, item.name) : h("img", { src: server.shown(item, "picture"), alt: `${item.name}, ${label}` }),
    h("div", { class: "row" },
      h("button", { type: "button", onclick: () => step(-1), disabled: place === 0 }, "← Previous"),
      h("button", { type: "button", onclick: () => step(1), disabled: place === list.length - 1 }, "Next →"),
      h("span", { class: "grow muted" }, `${(place + 1).toLocaleString("en")} of ${list.length.toLocaleString("en")}`),
      mover,
      h("button", { type: "button", class: "danger", onclick: async () => { if (await change({ do: "delete", ids: [item.id] })) { speak(`${noun()} deleted.`); draw(); } } }, "Delete")));
}

function step(by) {
  place = Math.min(Math.max(place + by, 0), list.length - 1);
  draw();
}

at("viewer").addEventListener("keydown", (event) => {
  if (event.target.closest("select")) return;
  if (event.key === "ArrowLeft") step(-1);
  if (event.key === "ArrowRight") step(1);
});
at("viewer").addEventListener("click", (event) => { if (event.target === at("viewer")) at("viewer").close(); });
