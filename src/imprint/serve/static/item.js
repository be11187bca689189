/** One item of a class as a button: an image, or its text or name. */

import { h } from "./dom.js";
import * as server from "./server.js";
import { find, shape } from "./store.js";
import { view } from "./viewer.js";

/** A button that opens an item; `ids` are those that the viewer leads through. Null where the item is gone. */
export function tile(id, ids, attributes = {}) {
  const entry = find(id);
  return entry && drawn(entry.item, entry.label, { title: entry.item.name, onclick: () => view(id, ids), ...attributes });
}

/** The button of an item that is known. */
export function drawn(item, label, attributes) {
  if (shape() !== "image" || item.written) return h("button", { type: "button", class: item.heldOut ? "text held-out" : "text", ...attributes }, item.name);
  const image = h("img", { src: server.shown(item, "thumbnail"), alt: `${item.name}, ${label}${item.heldOut ? ", held out" : ""}`, loading: "lazy", decoding: "async", draggable: "false", onerror: () => image.replaceWith(item.name) });
  return h("button", { type: "button", class: item.heldOut ? "thumb held-out" : "thumb", ...attributes }, image);
}
