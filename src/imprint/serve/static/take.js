/** Take away: the model, its graph, the pictures; open a model or a folder; start over. */

import { at, h, note, picker } from "./dom.js";
import * as server from "./server.js";
import { change, noun, refresh, store, total } from "./store.js";
import { openFolder } from "./teach.js";

let drawn = "";

export function showTake() {
  const mark = JSON.stringify([store.typed, store.classes.length > 0, total() > 0, total() > 3]);
  if (mark === drawn) return;
  drawn = mark;
  const some = store.classes.length > 0;
  at("take").replaceChildren(h("h2", { class: "unseen" }, "Take away"),
    h("div", { class: "cards" },
      offer("Model", "model.imprint", "For the command line and Python: imprint predict model.imprint new.jpg", some),
      offer("ONNX", "model.onnx", "One graph from pixels to probabilities, for any ONNX runtime. It answers as this page does.", some),
      offer(store.typed ? "Texts" : "Pictures", "pictures.zip", store.typed ? "A table of texts and labels, which imprint fit reads." : "A folder per class, which imprint fit reads.", total() > 0),
      offer("Report", "evaluation.html", "One page about how good it is: accuracy, confusions, reliability, a map. It needs no server.", total() > 3)),
    h("div", { class: "panel" }, h("h3", {}, "Open"),
      h("p", { class: "muted" }, `A model takes the place of what is here; a folder per class adds to it. Both can be undone.`),
      h("div", { class: "row" },
        picker("Open a model", { accept: ".imprint", multiple: false, id: "open-model" }, async ([file]) => {
          try { await server.open(file); await refresh(); note(`${file.name} is open.`); } catch (error) { note(error.message, "error"); }
        }),
        store.typed ? null : picker("Add a folder per class", { webkitdirectory: true }, openFolder),
        h("button", { type: "button", class: "danger", disabled: !some, onclick: async () => {
          if (await change({ do: "clear" })) note(`Everything is forgotten.`, "info", { label: "Undo", run: () => change({ do: "undo" }) });
        } }, "Start over"))),
    h("div", { class: "panel" }, h("h3", {}, "For programs"), h("p", { class: "muted" }, `The same server answers POST /api/predict with a ${noun()} as the body; see the documentation of imprint serve.`)));
}

function offer(title, file, text, there) {
  return h("div", { class: "panel offer" }, h("h3", {}, title), h("p", { class: "muted" }, text),
    there ? h("a", { class: "button main", href: `/api/take/${file}`, download: file }, `Save ${file}`) : h("button", { type: "button", disabled: true }, "Teach something first"));
}
