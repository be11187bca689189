/** Files that bring classes: a saved model, an archive of examples, a table of texts. */

import { note } from "./dom.js";
import { addClasses, openFolder } from "./examples.js";
import * as server from "./server.js";
import { noun, refresh, store } from "./store.js";
import { table, unzipped } from "./zip.js";

export const isImport = (name) => /\.(imprint|zip)$/i.test(name) || (store.typed && /\.csv$/i.test(name));

/** A model replaces the classes; an archive and a table add to them. */
export async function importFile(file) {
  try {
    if (/\.imprint$/i.test(file.name)) {
      await server.importModel(file);
      await refresh();
      note(`${file.name} is imported.`);
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
