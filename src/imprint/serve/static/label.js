/**
 * Label: a folder of unlabelled inputs, the most useful first. The most probable classes are on the keys 1 to 5; letters filter all
 * classes, Enter chooses the marked one. Nothing moves from one input to the next.
 */

import { at, h, hue, note, picker, speak } from "./dom.js";
import { count, percent } from "./words.js";
import { chosen, isReadable } from "./files.js";
import { matching, offered, SLOTS } from "./choices.js";
import { gain, learningCurve } from "./curve.js";
import * as server from "./server.js";
import { noun, refresh, store, undoChange } from "./store.js";
import { Uploads } from "./uploads.js";

const AHEAD = 30; // number of inputs that are requested at once
const DECODED = 4; // images that are decoded before they are shown
const EVERY = 5; // number of answers after which the order is requested again
const files = new Map(); // digest -> File
const answered = []; // {entry, label, saved, settled}, the newest last; `saved` is a promise of the server's reply
const curve = []; // {labels, accuracy}
const byModel = new Set(); // digests that the model labelled, in bulk: they are not decisions
const bitmaps = new Map(); // digest -> promise of a decoded image
const recent = []; // classes, the last used first
let marked = 0; // the choice that Enter takes while a text is typed
let queue = [];
let asking = null;
let askAgain = false;
let sending = Promise.resolve();
let drawn = "";
let before = false; // whether the prediction is shown before the answer

const uploads = new Uploads(async (file, label, name, group, signal) => {
  const { digest } = await server.addToPool(file, name, signal);
  files.set(digest, file);
  if (queue.length === 0) ask();
  return {};
}, ({ done, total: all, failed, running }) => {
  at("pool-count").textContent = running
    ? `Reading ${done.toLocaleString("en")} of ${all.toLocaleString("en")}${failed.length ? `, ${failed.length} unreadable: ${failed[0].name}` : ""}`
    : failed.length ? `${failed.length} unreadable: ${failed.slice(0, 5).map((one) => one.name).join(", ")}` : "";
});

/** Add dropped or chosen files to the pool; every line of a text file is one input. */
export async function poolFiles(chosenFiles) {
  const text = store.typed;
  const inputs = [];
  for (const { file } of chosenFiles) {
    if (!text && isReadable(file.name, store.suffixes)) inputs.push(file);
    else if (text) for (const line of (await file.text()).split("\n")) if (line.trim()) inputs.push(new File([line.trim()], file.name));
  }
  if (!inputs.length) note(`No ${noun()} among ${count(chosenFiles.length, "file")}.`, "error");
  else await uploads.push(inputs, "", "");
  ask();
}

/** Request the next inputs; calls during a request are answered by one more. The queue stays until they arrive. */
function ask() {
  if (asking) { askAgain = true; return asking; }
  asking = (async () => {
    do {
      askAgain = false;
      await fetchQueue();
    } while (askAgain);
  })().catch((error) => note(error.message, "error")).finally(() => { asking = null; draw(); });
  return asking;
}

const digestOf = (one) => one.entry.digest;

async function fetchQueue() {
  const savedBefore = new Set(answered.filter((one) => one.settled).map(digestOf));
  const entries = await server.nextInPool(AHEAD);
  // The server did not know the other answers when it chose.
  const unsaved = answered.filter((one) => !savedBefore.has(digestOf(one)));
  const excluded = new Set(unsaved.map(digestOf));
  // What is suggested although its answer was saved has been undone elsewhere.
  const suggested = new Set(entries.map((entry) => entry.digest));
  const undone = answered.filter((one) => savedBefore.has(digestOf(one)) && suggested.has(digestOf(one)));
  undone.forEach((one) => answered.splice(answered.indexOf(one), 1));
  const first = queue[0];
  if (first) excluded.add(first.digest);
  queue = entries.filter((entry) => files.has(entry.digest) && !excluded.has(entry.digest));
  if (first) queue.unshift(first);
  if (!queue.length && entries.length) {
    await Promise.all(unsaved.map((one) => one.saved));
    askAgain = unsaved.length > 0;
  }
}

/** Draw the panel once, then what has changed. */
export function showLabel() {
  const panel = at("label");
  if (!panel.firstChild) panel.append(h("h2", { class: "unseen" }, "Label next"), toolbar(), workplace(), h("div", { id: "label-curve", class: "panel" }), rest());
  draw();
}

/** The parts that stay where they are: the stage, five places for classes, the field, Skip and Undo, the progress. */
function workplace() {
  const field = h("input", { type: "text", id: "label-new", role: "combobox", "aria-expanded": "false", "aria-controls": "label-classes", "aria-autocomplete": "list", placeholder: "Type a class", "aria-label": "Class: type to filter, or a new one", maxlength: 100, autocomplete: "off", oninput: () => { marked = 0; drawChoices(); } });
  return h("div", { id: "label-item", class: "panel" },
    h("div", { id: "label-stage" }),
    h("p", { id: "label-reason", class: "muted" }),
    h("div", { id: "label-classes", role: "group", "aria-label": "Classes" }),
    h("form", { class: "label-bar", onsubmit: (event) => { event.preventDefault(); take(marked); } }, field,
      h("button", { type: "submit" }, "Choose ", h("kbd", {}, "Enter")),
      h("button", { type: "button", id: "label-skip", onclick: skip }, "Skip ", h("kbd", {}, "→")),
      h("button", { type: "button", id: "label-undo", onclick: undo }, "Undo ", h("kbd", {}, "⌫"))),
    h("div", { class: "label-bar" }, h("progress", { id: "label-progress", max: 1, value: 0, "aria-label": "Labelled or skipped" }), h("span", { id: "label-count" }), h("span", { id: "label-last", class: "muted", "aria-live": "polite" })));
}

/** How many labels were decided one by one. */
const decisions = () => store.classes.reduce((sum, one) => sum + one.items.filter((item) => !byModel.has(item.digest)).length, 0);

/** Add the expected accuracy to the curve after each evaluation. */
export function evaluatedLabels() {
  const accuracy = store.evaluation?.ready ? store.evaluation.accuracy : null;
  if (accuracy === null) return;
  const labels = decisions();
  if (curve.at(-1)?.labels === labels) curve.pop();
  curve.push({ labels, accuracy });
  drawCurve();
}

function toolbar() {
  const show = h("input", { type: "checkbox", id: "label-before", onchange: () => { before = show.checked; draw(); } });
  return h("div", { class: "bar dropzone" },
    picker(store.typed ? "Choose text files" : "Choose a folder of unlabelled images", store.typed ? { id: "pool-files", accept: ".txt" } : { id: "pool-files", webkitdirectory: true }, (chosenFiles) => poolFiles(chosen(chosenFiles))),
    h("label", { class: "row" }, show, "Show the prediction before the answer"),
    h("span", { id: "pool-count", class: "muted", "aria-live": "off" }));
}

function draw() {
  if (!at("label-stage")) return;
  const entry = queue[0];
  const mark = JSON.stringify([entry, before, answered.length, entry ? 0 : [asking === null, files.size === 0]]);
  if (mark !== drawn) {
    drawn = mark;
    drawStage(entry);
    at("label-reason").textContent = entry ? `${entry.reason}${before && entry.top.length ? ` · ${entry.top[0].label} ${percent(entry.top[0].probability)}` : ""}` : "";
    at("label-last").textContent = last();
  }
  at("label-skip").disabled = !entry;
  at("label-undo").disabled = !answered.length;
  drawProgress();
  drawChoices();
}

function drawStage(entry) {
  const stage = at("label-stage");
  if (!entry) {
    stage.replaceChildren(h("p", { class: "muted" }, asking ? "Choosing…" : files.size ? "Everything is labelled or skipped." : `Drop a folder of unlabelled ${noun()}s here. The most useful ones come first. Labels are saved; the unlabelled ${noun()}s are not, so drop the folder again after you reload the page or restart the server.`));
    return;
  }
  const file = files.get(entry.digest);
  if (store.typed) {
    const text = h("blockquote", { class: "big" });
    file.text().then((words) => { text.textContent = words; });
    stage.replaceChildren(text);
  } else {
    show(stage, entry, file);
  }
  queue.slice(1, 1 + DECODED).forEach(decoded);
}

/** Show an image when it is decoded; the one before it stays until then. */
async function show(stage, entry, file) {
  const bitmap = await decoded(entry);
  if (queue[0] !== entry) return;
  const canvas = h("canvas", { class: "large", "aria-label": file.name, role: "img" });
  if (!bitmap) {
    const sound = file.type.startsWith("audio/") || /\.wav$/i.test(file.name);
    stage.replaceChildren(sound ? h("audio", { src: URL.createObjectURL(file), controls: true, "aria-label": file.name }) : h("p", {}, file.name)); // or an image that only the server can read
    return;
  }
  [canvas.width, canvas.height] = [bitmap.width, bitmap.height];
  canvas.getContext("2d").drawImage(bitmap, 0, 0);
  stage.replaceChildren(canvas);
}

/** The image of an entry, decoded and not larger than the stage; null if the browser cannot. */
function decoded({ digest }) {
  if (store.typed || !files.has(digest)) return Promise.resolve(null);
  if (!bitmaps.has(digest)) {
    bitmaps.set(digest, smaller(files.get(digest)));
    for (const old of [...bitmaps.keys()].slice(0, -3 * DECODED)) {
      bitmaps.get(old).then((bitmap) => bitmap?.close());
      bitmaps.delete(old);
    }
  }
  return bitmaps.get(digest);
}

const STAGE = 900; // pixels of the longer side

async function smaller(file) {
  const whole = await createImageBitmap(file).catch(() => null);
  const scale = whole ? STAGE / Math.max(whole.width, whole.height) : 1;
  if (scale >= 1) return whole;
  const small = await createImageBitmap(whole, { resizeWidth: Math.round(whole.width * scale) || 1, resizeHeight: Math.round(whole.height * scale) || 1, resizeQuality: "medium" });
  whole.close();
  return small;
}

function drawProgress() {
  const done = answered.filter((one) => one.label !== null).length;
  const skipped = answered.length - done;
  const share = files.size ? Math.min(1, answered.length / files.size) : 0;
  at("label-progress").value = share;
  at("label-count").textContent = files.size ? `${done.toLocaleString("en")} labelled${skipped ? `, ${skipped.toLocaleString("en")} skipped` : ""} of ${count(files.size, noun())}` : "";
}

/** What the keys 1 to 5, or Enter while a text is typed, stand for now. */
function choices() {
  const labels = store.classes.map((one) => one.label);
  const top = (queue[0]?.top ?? []).map((one) => one.label);
  const typed = at("label-new").value;
  if (typed.trim()) return matching(labels, top, recent, typed);
  return offered(labels, top, recent).map((label) => ({ label, fresh: false }));
}

/** Draw the five places; those without a class stay empty. */
function drawChoices() {
  const list = choices();
  const typing = at("label-new").value.trim() !== "";
  const position = new Map(store.classes.map((one, i) => [one.label, i]));
  const mark = JSON.stringify([list, typing, marked, Boolean(queue[0]), list.map((one) => position.get(one.label))]);
  const row = at("label-classes");
  if (row.dataset.drawn === mark) return;
  row.dataset.drawn = mark;
  at("label-new").setAttribute("aria-expanded", String(typing));
  const slot = ({ label, fresh }, i) => h("button", {
    type: "button", class: `choice slot${typing && i === marked ? " marked" : ""}`, title: fresh ? `New class: ${label}` : label, disabled: !queue[0], style: { "--hue": hue(position.get(label) ?? store.classes.length) }, onclick: () => take(i),
  }, h("kbd", {}, typing ? (i === marked ? "Enter" : "") : String(i + 1)), h("span", {}, fresh ? `New: ${label}` : label));
  row.replaceChildren(...list.map(slot), ...Array.from({ length: SLOTS - list.length }, () => h("span", { class: "slot free" })));
}

/** Answer with one of the choices, and empty the field. */
function take(i) {
  const one = choices()[i];
  if (!one || !queue[0]) return;
  at("label-new").value = "";
  marked = 0;
  answer(one.label);
}

function last() {
  const one = answered.at(-1);
  if (!one) return "";
  if (one.label === null) return "Skipped.";
  const best = one.entry.top[0];
  return best ? `${one.label}. The model: ${best.label} ${percent(best.probability)}.` : `${one.label}.`;
}

async function paint(canvas, file, side) {
  const bitmap = await createImageBitmap(file).catch(() => null);
  if (!bitmap) { canvas.replaceWith(h("p", {}, file.name)); return; } // a sound, or an image that only the server can read
  const scale = Math.min(1, side / Math.max(bitmap.width, bitmap.height));
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
}

/** Resolves when all answers are saved; whether there were any that were not. */
export async function answersSaved() {
  const unsaved = answered.filter((one) => !one.settled);
  await Promise.all(unsaved.map((one) => one.saved));
  return unsaved.length > 0;
}

/** The answer is sent in the background, after those before it; the next input is shown at once. */
function send(label, request) {
  const entry = queue.shift();
  if (!entry) return;
  const one = { entry, label, settled: false };
  one.saved = sending.then(() => request(entry)).catch((error) => {
    note(error.message, "error");
    const position = answered.indexOf(one);
    if (position >= 0) answered.splice(position, 1);
    ask(); // the input is still unlabelled
    return null;
  }).finally(() => { one.settled = true; });
  sending = one.saved;
  answered.push(one);
  if (queue.length < EVERY || answered.length % EVERY === 0) ask();
  draw();
}

function answer(label) {
  if (recent.includes(label)) recent.splice(recent.indexOf(label), 1);
  recent.unshift(label);
  send(label, async ({ digest }) => {
    const file = files.get(digest);
    const reply = await server.add(file, label, file.name);
    refresh();
    return reply;
  });
}

function skip() {
  send(null, ({ digest }) => server.skipInPool(digest, true));
}

/** Take back the newest answer, also one that is still being saved; its input is shown again. */
async function undo() {
  const one = answered.pop();
  if (!one) return;
  const reply = await one.saved;
  if (!reply) return; // it was not saved
  if (!await takenBack(one, reply)) { ask(); return; }
  queue = [one.entry, ...queue.filter((entry) => entry.digest !== one.entry.digest)];
  speak("Undone.");
  draw();
}

/** Whether the input of an answer is unlabelled again. */
async function takenBack({ entry, label }, { new: added, revision }) {
  if (label === null) {
    return server.skipInPool(entry.digest, false).catch((error) => note(error.message, "error"));
  }
  if (!added) {
    note(`It was in ${label} before.`);
    return false;
  }
  return undoChange(revision);
}

/** Keys of the tab: 1 to 5 for the classes, letters to filter, Enter, the arrow to the right to skip, Backspace to undo. */
export function labelKey(event) {
  const field = at("label-new");
  if (at("label").hidden || !field || event.ctrlKey || event.metaKey || event.altKey) return;
  const inField = event.target === field;
  if (!inField && event.target.closest("input, textarea, select, dialog, audio")) return;
  if (field.value.trim()) typingKey(event);
  else if (new RegExp(`^[1-${SLOTS}]$`).test(event.key)) { event.preventDefault(); take(Number(event.key) - 1); }
  else if (event.key === "ArrowRight" && (inField || !event.target.closest("[role=tab]"))) { event.preventDefault(); skip(); }
  else if (event.key === "Backspace") { event.preventDefault(); if (!event.repeat) undo(); } // held down, it empties the field and no more
  else if (!inField && /^\p{L}$/u.test(event.key)) field.focus(); // the letter is typed there
}

/** Keys while a text is typed: the arrows mark another choice, Escape empties the field. */
function typingKey(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) marked = Math.min(Math.max(marked + step, 0), choices().length - 1);
  else if (event.key === "Escape") at("label-new").value = "";
  else return;
  event.preventDefault();
  drawChoices();
}

function drawCurve() {
  const panel = at("label-curve");
  if (!panel || curve.length < 2) return;
  const { text, flat } = gain(curve);
  const now = curve.at(-1);
  panel.replaceChildren(h("h3", {}, `Expected accuracy ${percent(now.accuracy)}`),
    learningCurve(curve, `Expected accuracy ${percent(now.accuracy)} with ${count(now.labels, "label")}`),
    h("p", { class: flat ? "flat" : "muted", id: "label-gain" }, text));
}

function rest() {
  const share = h("input", { type: "number", id: "rest-share", min: 50, max: 100, step: 1, value: 95, "aria-label": "Minimum probability in percent" });
  return h("div", { class: "panel" },
    h("h3", {}, "Label the rest by the model"),
    h("div", { class: "row" }, "above", share, "% probability", h("button", { type: "button", id: "rest-show", onclick: () => review(Number(share.value) / 100) }, "Review")),
    h("div", { id: "rest-grid" }));
}

/** Show predictions as a grid; a click removes one. The others are added as one change. */
async function review(probability) {
  const entries = (await server.confidentInPool(probability)).filter((entry) => files.has(entry.digest));
  const out = new Set();
  const cell = (entry) => {
    const shown = store.typed ? h("span", {}, files.get(entry.digest).name) : h("canvas", {});
    if (store.typed) files.get(entry.digest).text().then((text) => { shown.textContent = text; });
    else paint(shown, files.get(entry.digest), 96);
    const button = h("button", { type: "button", class: "guess", "aria-pressed": "true", onclick: () => {
      if (!out.delete(entry.digest)) out.add(entry.digest);
      button.setAttribute("aria-pressed", String(!out.has(entry.digest)));
    } }, shown, `${entry.label} ${percent(entry.probability)}`);
    return button;
  };
  at("rest-grid").replaceChildren(
    h("p", { class: "muted" }, entries.length ? `${count(entries.length, noun())}, the least certain first. Click the wrong ones to leave them out.` : "No prediction has that probability."),
    h("div", { class: "guesses" }, entries.map(cell)),
    entries.length ? h("button", { type: "button", class: "main", id: "rest-add", onclick: () => addAll(entries.filter((entry) => !out.has(entry.digest))) }, "Label these") : "");
}

async function addAll(entries) {
  const group = crypto.randomUUID();
  entries.forEach(({ digest }) => byModel.add(digest));
  at("rest-grid").replaceChildren(h("p", {}, `Labelling ${count(entries.length, noun())}…`));
  const sender = new Uploads(server.add, () => {});
  const [{ revision }] = await Promise.all(entries.map(({ digest, label }) => sender.push([files.get(digest)], label, group)));
  await refresh();
  queue = [];
  ask();
  at("rest-grid").replaceChildren();
  const undoAll = { label: "Undo", run: () => undoChange(revision).then(ask) };
  note(`Labelled ${count(entries.length, noun())} by the model.`, "info", revision === null ? null : undoAll);
}
