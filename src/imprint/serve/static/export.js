/** Export: the model, its graph, the examples; import a model or a folder; start over. */

import { at, h, note, picker } from "./dom.js";
import * as server from "./server.js";
import { changeWithUndo, noun, refresh, store, total } from "./store.js";
import { openFolder } from "./examples.js";

let drawn = "";

export function showExport() {
  const mark = JSON.stringify([store.modality, store.classes.length > 0, total() > 0, total() > 3]);
  if (mark === drawn) return;
  drawn = mark;
  const some = store.classes.length > 0;
  at("export").replaceChildren(h("h2", { class: "unseen" }, "Export"),
    h("div", { class: "cards" },
      offer("Model", "model.imprint", "For the command line and Python: imprint predict model.imprint new.jpg", some),
      offer("ONNX", "model.onnx", "One graph from pixels to probabilities, for any ONNX runtime. It answers as this page does.", some),
      offer(store.typed ? "Texts" : "Examples", "pictures.zip", store.typed ? "A table of texts and labels, which imprint fit reads." : "A folder per class, which imprint fit reads.", total() > 0),
      offer("Report", "evaluation.html", "Accuracy, confusion matrix, reliability diagram and a map, in one file.", total() > 3)),
    h("div", { class: "panel" }, h("h3", {}, "Import"),
      h("p", { class: "muted" }, `A model file replaces the classes here; a folder per class adds to them. Both can be undone.`),
      h("div", { class: "row" },
        picker("Import a model", { accept: ".imprint", multiple: false, id: "open-model" }, async ([file]) => {
          try { await server.importModel(file); await refresh(); note(`${file.name} is imported.`); } catch (error) { note(error.message, "error"); }
        }),
        store.typed ? null : picker("Add a folder per class", { webkitdirectory: true }, openFolder),
        h("button", { type: "button", class: "danger", disabled: !some, onclick: () => changeWithUndo({ do: "clear" }, "All classes are deleted.") }, "Start over"))),
    h("div", { class: "panel" }, h("h3", {}, "For programs"), h("p", { class: "muted" }, `The same server answers POST /api/predict with a ${noun()} as the body; see the documentation of imprint serve.`)));
}

function offer(title, file, text, there) {
  return h("div", { class: "panel offer" }, h("h3", {}, title), h("p", { class: "muted" }, text),
    there ? h("a", { class: "button main", href: `/api/export/${file}`, download: file }, `Save ${file}`) : h("button", { type: "button", disabled: true }, "Add examples first"));
}
