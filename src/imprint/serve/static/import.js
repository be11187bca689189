/** Files that bring classes: a saved model, an archive of examples, a table of texts. */

import { note } from "./dom.js";
import { addFolders, openFolder } from "./examples.js";
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
    if (store.typed) await addFolders((await Promise.all(inside.filter((one) => /\.csv$/i.test(one.path)).map(texts))).flat());
    else await openFolder(inside);
    note(`${file.name} is imported.`);
  } catch (error) {
    note(error.message, "error");
  }
}

/** The texts of a table as files in folders of their class; those of `test.csv` are held out. */
async function texts({ file, path }) {
  const rows = table(await file.text());
  if (!rows.length || !("text" in rows[0]) || !("label" in rows[0])) throw new Error(`${path}: a table of ${noun()}s needs the columns text and label.`);
  const split = /test\.csv$/i.test(path) ? "test" : "train";
  return rows.filter((row) => row.text.trim() && row.label.trim()).map((row) => ({ file: new File([row.text.trim()], "text"), path: `${split}/${row.label.trim()}/text` }));
}
