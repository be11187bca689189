/** Examples: a column of examples per class. */

import { at, h, hue, note, picker, speak } from "./dom.js";
import { count } from "./words.js";
import { byClass, chosen, isReadable } from "./files.js";
import { askWhichClass } from "./conflicts.js";
import { drawn } from "./item.js";
import * as server from "./server.js";
import { change, changeWithUndo, find, noun, refresh, shape, store } from "./store.js";
import { Uploads } from "./uploads.js";
import { holdToFilm } from "./film.js";
import { view } from "./viewer.js";

const FEW = 24; // classes up to which every column shows more of its images
const shown = new Map(); // label -> {element, mark}
const expanded = new Set();
const selected = new Set(); // numbers of items, while several are selected
let selecting = false;
let last = null; // the item that was selected last
let filter = "";

const uploads = new Uploads(server.add, ({ done, total, failed, running }) => {
  at("progress").hidden = !running || total < 2;
  at("progress-bar").max = Math.max(total, 1);
  at("progress-bar").value = done;
  at("progress-text").textContent = `Adding ${done.toLocaleString("en")} of ${total.toLocaleString("en")}${failed.length ? `, ${failed.length} unreadable` : ""}`;
});
at("progress-stop").addEventListener("click", () => uploads.stop());

/** Add files to a class and report the result; the list of those that were not added. */
export async function addFiles(files, label, group = crypto.randomUUID(), heldOut = false) {
  if (!files.length) return [];
  const { total, failed, known, conflicts } = await uploads.push(files, label, group, heldOut);
  await refresh();
  const taught = total - failed.length - known;
  if (total > 1 || failed.length || known) {
    const parts = [`Added ${count(Math.max(taught, 0), noun())}`];
    if (known) parts.push(`${known} already there`);
    if (failed.length) parts.push(`${failed.length} refused: ${failed[0].reason}`);
    note(`${parts.join("; ")}`, failed.length ? "error" : "info");
  }
  speak(`${label}: ${count(taught, noun())} added.`);
  if (conflicts.length) askWhichClass(conflicts);
  return failed;
}

/** Add files whose folders name their classes. */
export const addFolders = (dropped, heldOut = false) => addClasses(byClass(dropped, nextName()).map((one) => ({ ...one, heldOut: heldOut || one.heldOut })));

/** Add {label, heldOut, files} as one change. Classes are created first, in the given order. */
export async function addClasses(classes) {
  const group = crypto.randomUUID();
  const there = new Set(store.classes.map((one) => one.label));
  try {
    for (const { label } of classes) {
      if (!there.has(label)) await server.change({ do: "create", label, group });
      there.add(label);
    }
    await Promise.all(classes.map((one) => addFiles(one.files, one.label, group, one.heldOut)));
  } catch (error) {
    note(error.message, "error");
  }
}

function nextName() {
  let n = store.classes.length + 1;
  while (store.classes.some((one) => one.label === `Class ${n}`)) n += 1;
  return `Class ${n}`;
}

/** Add the readable ones of {file, path}. */
export async function openFolder(dropped, heldOut = false) {
  const readable = dropped.filter((one) => isReadable(one.file.name, store.suffixes));
  if (!readable.length) note(`No ${noun()} among ${count(dropped.length, "file")}.`, "error");
  else await addFolders(readable, heldOut);
}

/** Draw what has changed. */
export function showExamples() {
  const panel = at("examples");
  if (!panel.firstChild) panel.append(h("h2", { class: "unseen" }, "Examples"), toolbar(), h("div", { class: "columns", id: "columns" }));
  at("filter-field").hidden = store.classes.length <= 12;
  at("hello").hidden = store.classes.length > 0;
  if (at("try-sample")) at("try-sample").disabled = store.classes.length > 0;
  const grid = at("columns");
  const keep = new Set();
  let before = null;
  store.classes.forEach((one, index) => {
    keep.add(one.label);
    const mark = JSON.stringify([one, index, expanded.has(one.label), store.classes.length > FEW, store.classes.length > 1, selecting]);
    let known = shown.get(one.label);
    if (known?.mark !== mark) {
      const element = column(one, index);
      if (known) update(known.element, element);
      known = { element: known?.element ?? element, mark };
      shown.set(one.label, known);
    }
    known.element.hidden = filter !== "" && !one.label.toLowerCase().includes(filter);
    const next = before ? before.nextSibling : grid.firstChild;
    if (known.element !== next) grid.insertBefore(known.element, next);
    before = known.element;
  });
  for (const [label, { element }] of shown) {
    if (!keep.has(label)) { element.remove(); shown.delete(label); }
  }
  showSelection();
}

/**
 * Show the new state of a class in its column. The footer stays as it is: a text may be typed there, or the camera
 * may film. So does the header while the class is renamed. The part that had the focus gets it again.
 */
function update(old, fresh) {
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const footer = old.querySelector("footer");
  const header = old.querySelector("header:has(.rename)") ?? fresh.querySelector("header");
  const between = [...fresh.children].filter((child) => !child.matches("header, footer"));
  old.style.cssText = fresh.style.cssText;
  for (const child of [...old.children]) if (child !== footer && child !== header) child.remove();
  if (header.parentElement !== old) old.prepend(header);
  between.forEach((child) => old.insertBefore(child, footer));
  if (focused?.dataset.part && !old.contains(focused)) old.querySelector(`[data-part="${CSS.escape(focused.dataset.part)}"]`)?.focus();
}

function toolbar() {
  const name = h("input", { type: "text", id: "new-class", placeholder: "Name of a new class", "aria-label": "Name of a new class", maxlength: 100, autocomplete: "off" });
  const words = h("input", { type: "text", id: "describe", placeholder: "Description (optional)", "aria-label": "Description of the new class", maxlength: 500, autocomplete: "off", hidden: !store.describes });
  const created = (label) => {
    name.value = words.value = "";
    shown.get(label)?.element.querySelector("input, textarea")?.focus();
    speak(`Class ${label} created.`);
  };
  const describe = async () => {
    const label = name.value.trim() || nextName();
    if (await change({ do: "describe", label, description: words.value.trim() })) created(label);
  };
  const form = h("form", { class: "row grow", onsubmit: async (event) => {
    event.preventDefault();
    const label = name.value.trim() || nextName();
    if (words.value.trim()) describe();
    else if (await change({ do: "create", label })) created(label);
  } }, name, words, h("button", { type: "submit", class: "main" }, "New class"),
    h("button", { type: "button", id: "from-name", hidden: !store.describes, title: "Its name, or the description, is its first example", onclick: describe }, "From its name"));
  const search = h("input", { type: "search", id: "filter", placeholder: "Find a class", "aria-label": "Find a class", oninput: () => {
    filter = search.value.trim().toLowerCase();
    showExamples();
  } });
  return h("div", {},
    hello(),
    h("div", { class: "bar dropzone" }, form, store.typed ? null : picker("Add a folder per class", { webkitdirectory: true, id: "open-folder" }, (files) => openFolder(chosen(files))), h("button", { type: "button", id: "select", "aria-pressed": "false", onclick: () => setSelecting(!selecting) }, "Select"), h("div", { id: "filter-field", hidden: true }, search)));
}

function hello() {
  const text = store.typed;
  const things = `${noun()}s`;
  const step = (n, title, words) => h("li", {}, h("span", { class: "step", "aria-hidden": "true" }, n), h("div", {}, h("strong", {}, title), h("p", { class: "muted" }, words)));
  return h("div", { class: "hello dropzone", id: "hello" },
    h("p", { class: "big" }, `Add a few ${things} of each class. The model is fitted at once.`),
    h("ol", {},
      step("1", "Name a class", text ? "What should be distinguished: orders and complaints, urgent messages and others." : "What should be distinguished: mugs and cups, good parts and bad ones."),
      step("2", `Add ${things}`, text ? "Write or paste a few texts of it." : "Five are a start. Drop files or folders, one per class, paste, or use the camera."),
      step("3", "Try it", `With a new ${noun()}. If the answer is wrong, one click corrects it.`)),
    store.sample ? h("button", { type: "button", id: "try-sample", onclick: (event) => { event.currentTarget.disabled = true; dispatchEvent(new Event("imprint:sample")); } }, `Try with sample ${shape() === "image" ? "images" : things}`) : null,
    h("p", { class: "muted" }, "Nothing leaves this machine, and everything can be undone."));
}

function column({ label, items, opened }, index) {
  const many = store.classes.length > FEW;
  const limit = expanded.has(label) ? items.length : many ? 5 : 11;
  const text = store.typed;
  const newest = [...items].reverse().sort((a, b) => a.heldOut - b.heldOut);
  const heldOut = items.filter((one) => one.heldOut).length;
  return h("article", { class: "class", data: { label }, "aria-label": label, style: { "--hue": hue(index) } },
    h("header", {},
      h("h3", {}, h("button", { type: "button", class: "name", title: "Rename", data: { part: "name" }, onclick: (event) => rename(event.currentTarget, label) }, label)),
      h("span", { class: "count" }, opened && !items.length ? "from the model" : (items.length - heldOut).toLocaleString("en"), heldOut ? ` + ${heldOut.toLocaleString("en")} held out` : ""),
      menu(label, items)),
    h("ul", { class: shape() === "image" ? "thumbs" : "texts", onkeydown: roam },
      newest.slice(0, limit).map((item, i) => h("li", {}, tileOf(item, label, newest, i))),
      items.length > limit || expanded.has(label)
        ? h("li", {}, h("button", { type: "button", class: "more", data: { part: "more" }, onclick: () => { toggle(label); } }, expanded.has(label) ? "Show fewer" : `+ ${(items.length - limit).toLocaleString("en")}`))
        : null),
    items.length ? null : h("p", { class: "empty muted" }, opened ? `From the imported model; add ${noun()}s to it here.` : text ? "Write or paste texts below." : `Drop ${noun()}s here or paste them.`),
    text ? writer(label) : h("footer", {},
      picker(`Add ${noun()}s`, { accept: store.suffixes.join(","), data: { part: "add" }, "aria-label": `Add ${noun()}s to ${label}` }, (files) => addFiles(files, label)),
      shape() === "image" && h("button", { type: "button", class: "hold", data: { part: "film" }, title: "Films while you hold it down" }, "Hold to film"),
      h("div", { class: "film-place" })));
}

function toggle(label) {
  if (!expanded.delete(label)) expanded.add(label);
  showExamples();
}

function tileOf(item, label, list, i) {
  return drawn(item, label, {
    draggable: "true", title: item.heldOut ? `${item.name}, held out` : item.name, data: { part: `i${item.id}`, id: item.id }, tabindex: i ? "-1" : "0",
    "aria-pressed": selecting && String(selected.has(item.id)),
    onclick: (event) => (selecting ? choose(item.id, list, event.shiftKey) : view(item.id, list.map((one) => one.id))),
    onkeydown: (event) => { if (event.key === "Delete") change({ do: "delete", ids: [item.id] }); },
    ondragstart: (event) => event.dataTransfer.setData("application/x-imprint", String(item.id)),
  });
}

/** The arrow keys go from item to item, so that a class needs one tab stop for all of them. */
function roam(event) {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  const tiles = [...event.currentTarget.querySelectorAll("[data-part^=i]")];
  const next = step && tiles[tiles.indexOf(event.target) + step];
  if (next) { event.preventDefault(); next.focus(); }
}

function setSelecting(on) {
  selecting = on;
  selected.clear();
  at("select").setAttribute("aria-pressed", String(on));
  showExamples();
}

/** Select an item or not; with Shift, everything from the last one on. */
function choose(id, list, range) {
  const ids = list.map((one) => one.id);
  const [from, to] = [ids.indexOf(range ? last : id), ids.indexOf(id)].sort((a, b) => a - b);
  const on = !selected.has(id);
  for (const one of ids.slice(Math.max(from, 0), to + 1)) selected[on ? "add" : "delete"](one);
  last = id;
  showSelection();
}

/** The bar with what can be done with the selected items. */
function showSelection() {
  for (const id of selected) if (!find(id)) selected.delete(id);
  for (const tile of at("columns").querySelectorAll("[data-id]")) if (selecting) tile.setAttribute("aria-pressed", String(selected.has(Number(tile.dataset.id))));
  at("selection").hidden = !selecting || at("examples").hidden;
  const ids = [...selected];
  const what = count(ids.length, noun());
  const done = async (entry, sentence) => { if (await changeWithUndo(entry, sentence)) setSelecting(false); };
  const target = h("select", { "aria-label": "Class to move them to", id: "selection-class" }, store.classes.map((one) => h("option", { value: one.label }, one.label)));
  const held = ids.length > 0 && ids.every((id) => find(id).item.heldOut);
  at("selection").replaceChildren(
    h("p", { "aria-live": "polite" }, ids.length ? `${what} selected` : `Click ${noun()}s to select them, with Shift from one to another.`),
    ...(ids.length ? [
      store.classes.length > 1 ? h("span", { class: "row" }, target, h("button", { type: "button", id: "selection-move", onclick: () => done({ do: "move", ids, label: target.value }, `${what} moved to ${target.value}.`) }, "Move")) : "",
      h("button", { type: "button", id: "selection-hold", onclick: () => done({ do: "hold", ids, held_out: !held }, held ? `${what} are used for training.` : `${what} held out.`) }, held ? "Use for training" : "Hold out"),
      h("button", { type: "button", class: "danger", id: "selection-delete", onclick: () => done({ do: "delete", ids }, `${what} deleted.`) }, "Delete")] : []),
    h("button", { type: "button", id: "selection-done", onclick: () => setSelecting(false) }, "Done"));
}

function writer(label) {
  const area = h("textarea", { rows: 2, placeholder: "One text per line", "aria-label": `Texts of ${label}`, data: { part: "write" } });
  const send = async () => {
    const lines = area.value.split("\n").map((one) => one.trim()).filter(Boolean);
    area.value = "";
    const failed = await addFiles(lines.map((one) => new File([one], "text")), label);
    const unsaved = await Promise.all(failed.filter((one) => one.label === label).map((one) => one.file.text()));
    if (unsaved.length) area.value = [...unsaved, area.value].filter(Boolean).join("\n");
  };
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); send(); }
  });
  return h("footer", {}, area, h("button", { type: "button", onclick: send }, "Add"));
}

function rename(button, label) {
  const input = h("input", { type: "text", value: label, class: "rename", "aria-label": `New name of ${label}`, maxlength: 100 });
  let over = false;
  const end = async (keep) => {
    if (over) return;
    over = true;
    const to = input.value.trim();
    input.replaceWith(button);
    const column = shown.get(label);
    if (column) column.mark = ""; // its header was kept while the name was typed
    showExamples();
    if (keep && to && to !== label && await change({ do: "rename", label, to })) speak(`${label} is now called ${to}.`);
    (shown.get(to)?.element ?? shown.get(label)?.element)?.querySelector(".name")?.focus();
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") end(true);
    if (event.key === "Escape") end(false);
  });
  input.addEventListener("blur", () => end(true));
  button.replaceWith(input);
  input.focus();
  input.select();
}

function menu(label, items) {
  const pop = h("div", { class: "pop" });
  const details = h("details", { class: "menu", ontoggle: () => { if (details.open) pop.replaceChildren(...entries(details, label, items)); }, onkeydown: (event) => {
    if (event.key === "Escape") { details.open = false; details.firstChild.focus(); }
  }, onfocusout: () => setTimeout(() => { if (!details.contains(document.activeElement)) details.open = false; }) },
    h("summary", { "aria-label": `More about ${label}`, data: { part: "menu" } }, "⋯"), pop);
  return details;
}

/** The nodes above a class of a tree that have other classes too: of animal/cat it is animal. */
function above(label) {
  const parts = label.split("/");
  return parts.slice(0, -1).map((_, n) => parts.slice(0, n + 1).join("/"))
    .filter((node) => store.classes.filter((one) => one.label.startsWith(`${node}/`)).length > 1);
}

/** What a menu offers; built when it is opened. */
function entries(details, label, items) {
  const others = store.classes.filter((one) => one.label !== label);
  const target = h("select", { "aria-label": `Class to merge ${label} into` }, others.map((one) => h("option", { value: one.label }, one.label)));
  const merge = h("form", { onsubmit: (event) => {
    event.preventDefault();
    changeWithUndo({ do: "merge", label, into: target.value }, `${label} is merged into ${target.value}: ${count(items.length, noun())} moved.`);
  } }, target, h("button", { type: "submit" }, "Merge into it"));
  return [
    items.length ? h("button", { type: "button", onclick: () => { setSelecting(true); items.forEach((one) => selected.add(one.id)); showSelection(); } }, "Select all") : "",
    h("button", { type: "button", onclick: () => rename(details.closest("article").querySelector(".name"), label) }, "Rename"),
    others.length ? merge : "",
    ...above(label).map((node) => h("button", { type: "button", class: "danger", data: { node }, onclick: () => drop(`${node}/`, `All classes of ${node} are deleted.`) }, `Delete all of ${node}`)),
    h("button", { type: "button", class: "danger", onclick: () => drop(label, `${label} and its ${count(items.length, noun())} are deleted.`) }, "Delete class"),
  ];
}

/** Delete a class or a node; the focus goes to the class that takes its place, or to the field for a new one. */
async function drop(label, sentence) {
  const position = store.classes.findIndex((one) => one.label === label || one.label.startsWith(label));
  if (!await changeWithUndo({ do: "drop", label }, sentence)) return;
  const next = store.classes[Math.min(position, store.classes.length - 1)];
  const name = next && shown.get(next.label)?.element.querySelector(".name");
  (name ?? at("new-class")).focus();
}

holdToFilm(at("examples"), addFiles);
