/** One item, large: move it, delete it, go to the next. */

import { at, h, speak } from "./dom.js";
import * as server from "./server.js";
import { change, find, noun, shape, store } from "./store.js";

let list = [];
let position = 0;

/** Open the viewer on an item of a list of numbers. */
export function view(id, ids) {
  list = ids;
  position = Math.max(0, ids.indexOf(id));
  draw();
  if (!at("viewer").open) at("viewer").showModal();
}

function content(item, label) {
  if (shape() === "text" || item.written) return h("blockquote", {}, item.name);
  const source = server.shown(item, "image");
  return shape() === "sound" ? h("audio", { src: source, controls: true }) : h("img", { src: source, alt: `${item.name}, ${label}` });
}

function draw() {
  const dialog = at("viewer");
  list = list.filter((id) => find(id));
  if (!list.length) { dialog.close(); return; }
  position = Math.min(position, list.length - 1);
  const { item, label } = find(list[position]);
  const target = h("select", { "aria-label": "Class to move it to", id: "move-to" }, store.classes.filter((one) => one.label !== label).map((one) => h("option", { value: one.label }, one.label)));
  const move = async () => {
    const to = target.value;
    if (await change({ do: "move", ids: [item.id], label: to })) { speak(`Moved to ${to}.`); draw(); }
  };
  dialog.replaceChildren(
    h("div", { class: "viewer-top" },
      h("p", {}, h("strong", {}, label), h("span", { class: "muted" }, `${shape() === "text" ? "" : ` ${item.name}`}${item.heldOut ? " · held out" : ""}`)),
      h("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => dialog.close() }, "×")),
    content(item, label),
    h("div", { class: "row" },
      h("button", { type: "button", onclick: () => step(-1), disabled: position === 0 }, "← Previous"),
      h("button", { type: "button", onclick: () => step(1), disabled: position === list.length - 1 }, "Next →"),
      h("span", { class: "grow muted" }, `${(position + 1).toLocaleString("en")} of ${list.length.toLocaleString("en")}`),
      store.classes.length > 1 ? [target, h("button", { type: "button", id: "move", onclick: move }, "Move")] : null,
      h("button", { type: "button", id: "hold", onclick: async () => { if (await change({ do: "hold", ids: [item.id], held_out: !item.heldOut })) draw(); } }, item.heldOut ? "Use for training" : "Hold out"),
      h("button", { type: "button", class: "danger", onclick: async () => { if (await change({ do: "delete", ids: [item.id] })) { speak(`${noun()} deleted.`); draw(); } } }, "Delete")));
}

function step(by) {
  position = Math.min(Math.max(position + by, 0), list.length - 1);
  draw();
}

at("viewer").addEventListener("keydown", (event) => {
  if (event.target.closest("select, audio")) return;
  if (event.key === "ArrowLeft") step(-1);
  if (event.key === "ArrowRight") step(1);
});
at("viewer").addEventListener("click", (event) => { if (event.target === at("viewer")) at("viewer").close(); });
