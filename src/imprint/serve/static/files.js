/** Dropped and chosen files, and the classes they belong to. */

const TESTS = new Set(["test", "val", "validation"]);

/** Whether a name ends like those that the page reads; the server looks at the content. */
export const isReadable = (name, suffixes) => !name.startsWith(".") && suffixes.some((suffix) => name.toLowerCase().endsWith(suffix));

/**
 * Files by class, as `imprint fit` reads a folder: the folders below what all have in common name the class.
 * `files` are {file, path} with the path as "photos/cat/1.jpg"; `loose` is the class of files outside any folder.
 * Next to `train`, files in `test`, `val` and `validation` are held out. Returns a list of {label, heldOut, files}.
 */
export function byClass(files, loose) {
  const paths = files.map((one) => one.path.split("/").slice(0, -1));
  let common = 0;
  while (paths.length && paths.every((path) => path.length > common && path[common] === paths[0][common])) common += 1;
  const top = new Set(paths.map((path) => path[common]));
  const split = top.has("train") && [...top].every((name) => name === "train" || TESTS.has(name));
  const below = paths.map((path) => path.slice(split ? common + 1 : common));
  const labels = labelsOf(below.filter((path) => path.length));
  const groups = new Map();
  files.forEach((one, i) => {
    const heldOut = split && paths[i][common] !== "train";
    const label = labels.get(below[i].join("/")) ?? (split ? loose : paths[i][common - 1]) ?? loose;
    const key = `${heldOut} ${label}`;
    if (!groups.has(key)) groups.set(key, { label, heldOut, files: [] });
    groups.get(key).files.push(one.file);
  });
  return [...groups.values()];
}

/**
 * The label of every folder, as `folder_labels` of the server finds it: a folder that holds files is a class, with all
 * below it; sub-folders without letters belong to the folder above; without a node of two classes all is flat.
 */
function labelsOf(paths) {
  const holding = new Set(paths.map((path) => path.join("/")));
  const labels = new Map();
  for (const path of paths) {
    let n = 1;
    while (!holding.has(path.slice(0, n).join("/"))) n += 1;
    while (n > 1 && !/\p{L}/u.test(path[n - 1])) n -= 1;
    labels.set(path.join("/"), path.slice(0, n));
  }
  const leaves = new Map([...labels.values()].map((leaf) => [leaf.join("/"), leaf.slice(0, -1).join("/")]));
  const parents = [...leaves.values()].filter(Boolean);
  const tree = new Set(parents).size < parents.length;
  return new Map([...labels].map(([folder, leaf]) => [folder, tree ? leaf.join("/") : leaf[0]]));
}

/** What a drop or a paste holds, folders walked through: a list of {file, path}. */
export async function dropped(transfer) {
  const entries = [...transfer.items].filter((item) => item.kind === "file").map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile());
  const files = [];
  for (const entry of entries) await walk(entry, "", files);
  return inOrder(files);
}

async function walk(entry, before, files) {
  if (!entry) return;
  if (entry instanceof File) files.push({ file: entry, path: entry.name });
  else if (entry.isFile) files.push({ file: await new Promise((yes, no) => entry.file(yes, no)), path: before + entry.name });
  else if (!entry.name.startsWith(".")) {
    const reader = entry.createReader();
    for (;;) {
      const part = await new Promise((yes, no) => reader.readEntries(yes, no));
      if (!part.length) break;
      for (const inner of part) await walk(inner, `${before}${entry.name}/`, files);
    }
  }
}

/** Files that were chosen with a file input, with their paths below a chosen folder. */
export const chosen = (files) => inOrder(files.map((file) => ({ file, path: file.webkitRelativePath || file.name })));

/** By path, so that classes are added in the order of their names and 10 follows 9. */
const inOrder = (files) => files.sort((a, b) => a.path.localeCompare(b.path, "en", { numeric: true }));
