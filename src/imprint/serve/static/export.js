/** Export: the model, its graph, the examples, code that uses them; import a model, an archive or a folder; start over. */

import { at, h, note, picker } from "./dom.js";
import { openFolder } from "./examples.js";
import { chosen } from "./files.js";
import { importFile } from "./import.js";
import { snippets } from "./snippets.js";
import { changeWithUndo, noun, store, total } from "./store.js";

let drawn = "";

export function showExport() {
  const code = snippets(store, location.origin);
  const mark = JSON.stringify([store.modality, store.classes.length, total() > 0, report(), why(), code]);
  if (mark === drawn) return;
  drawn = mark;
  const some = store.classes.length > 0;
  const graph = store.input ? "One graph from pixels to probabilities and the p-value, for any ONNX runtime. It answers as this page does." : "The graph of the model without its network: it takes embeddings, and returns probabilities and the p-value.";
  at("export").replaceChildren(h("h2", { class: "unseen" }, "Export"),
    h("div", { class: "cards" },
      offer("Model", "model.imprint", "For the command line and Python, with its calibration.", some),
      offer("ONNX", "model.onnx", graph, some),
      offer(store.typed ? "Texts" : "Examples", "examples.zip", store.typed ? "A table of texts and labels, which imprint fit reads." : "A folder per class, which imprint fit reads.", total() > 0),
      offer("Report", "evaluation.html", "Accuracy, confusion matrix, reliability diagram and a map, in one file.", report(), why())),
    h("div", { class: "panel" }, h("h3", {}, "Import"),
      h("p", { class: "muted" }, `A model file brings its classes and its calibration; those with the name of a class here are merged with it. ${store.typed ? "A saved examples.zip or a table" : "A saved examples.zip or a folder per class"} adds examples. Everything can be undone.`),
      h("div", { class: "row" },
        picker("Import a model", { accept: ".imprint", multiple: false, id: "open-model" }, ([file]) => importFile(file)),
        picker(store.typed ? "Import an examples.zip or a table" : "Import an examples.zip", { accept: store.typed ? ".zip,.csv" : ".zip", multiple: false, id: "open-archive" }, ([file]) => importFile(file)),
        store.typed ? null : picker("Add a folder per class", { webkitdirectory: true }, (files) => openFolder(chosen(files))),
        h("button", { type: "button", class: "danger", disabled: !some, onclick: () => changeWithUndo({ do: "clear" }, "All classes are deleted.") }, "Start over"))),
    h("div", { class: "panel" }, h("h3", {}, "Use it from code"), code.map(snippet)));
}

/** A piece of code, with a button that copies it. */
function snippet({ title, file, code }) {
  const copy = h("button", { type: "button", "aria-label": `Copy ${title}`, onclick: () => navigator.clipboard.writeText(code).then(() => note("Copied.")) }, "Copy");
  return h("div", { class: "snippet" }, h("h4", {}, title), h("p", { class: "muted" }, file), h("pre", { tabindex: "0", "aria-label": title, role: "group" }, h("code", {}, code)), copy);
}

/** Whether there are predictions of examples that a report can show; those of an imported model come without their images. */
const report = () => Boolean(store.evaluation?.held_out || store.evaluation?.listed);

/** Why there is no report. */
function why() {
  if (store.evaluation?.tags) return "Not for tags";
  return store.evaluation?.ready ? `Hold out ${noun()}s first` : "Add examples first";
}

function offer(title, file, text, there, otherwise = "Add examples first") {
  return h("div", { class: "panel offer" }, h("h3", {}, title), h("p", { class: "muted" }, text),
    there ? h("a", { class: "button main", href: `/api/export/${file}`, download: file }, `Save ${file}`) : h("button", { type: "button", disabled: true }, otherwise));
}
