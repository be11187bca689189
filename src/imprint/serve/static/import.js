/** Files that bring classes: a saved model, an archive of examples, a table of texts. */

import { note } from "./dom.js";
import { addClasses, openFolder } from "./examples.js";
import * as server from "./server.js";
import { noun, refresh, store, undoChange } from "./store.js";
import { table, unzipped } from "./zip.js";

export const isImport = (name) => /\.(imprint|zip)$/i.test(name) || (store.typed && /\.csv$/i.test(name));

/** All of them add to the classes; those of a model are merged with classes of the same name. */
export async function importFile(file) {
  try {
    if (/\.imprint$/i.test(file.name)) {
      const { revision, merged, notices } = await server.importModel(file);
      await refresh();
      const sentences = [`${file.name} is imported.`, mergedSentence(merged), ...notices];
      note(sentences.filter(Boolean).join(" "), "info", { label: "Undo", run: () => undoChange(revision) });
      return;
    }
    const inside = /\.zip$/i.test(file.name) ? await unzipped(file) : [{ file, path: file.name }];
    if (store.typed) await addClasses((await Promise.all(inside.filter((one) => /\.csv$/i.test(one.path)).map(texts))).flat());
    else await openFolder(inside);
    note(`${file.name} is imported.`);
  } catch (error) {
    note(error.message, "error");
  }
}

const NAMED = 5; // merged classes that a note names

function mergedSentence(labels) {
  if (!labels.length) return "";
  const others = labels.length > NAMED ? ` and ${labels.length - NAMED} more` : "";
  return `Merged with classes that were here: ${labels.slice(0, NAMED).join(", ")}${others}.`;
}

/** Add a small labelled set that the server brings along. */
export async function importSample() {
  try {
    await importFile(await server.sample());
  } catch (error) {
    note(error.message, "error");
  }
}

/** The texts of a table by class, as {label, heldOut, files}; those of `test.csv` are held out. */
async function texts({ file, path }) {
  const rows = table(await file.text());
  if (!rows.length || !("text" in rows[0]) || !("label" in rows[0])) throw new Error(`${path}: a table of ${noun()}s needs the columns text and label.`);
  const files = new Map();
  for (const { text, label } of rows) {
    if (text.trim() && label.trim()) files.set(label.trim(), [...(files.get(label.trim()) ?? []), new File([text.trim()], "text")]);
  }
  return [...files].map(([label, of]) => ({ label, heldOut: /(^|\/)test\.csv$/i.test(path), files: of }));
}
