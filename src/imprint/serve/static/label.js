/** Label: a folder of unlabelled inputs, the most useful first; classes are buttons and the keys 1 to 9. */

import { at, h, hue, note, picker, speak } from "./dom.js";
import { count, percent } from "./words.js";
import { chosen, isReadable } from "./files.js";
import { gain, points } from "./curve.js";
import * as server from "./server.js";
import { noun, refresh, store, total, undoChange } from "./store.js";
import { Uploads } from "./uploads.js";

const AHEAD = 30; // number of inputs that are requested at once
const EVERY = 5; // number of answers after which the order is requested again
const files = new Map(); // digest -> File
const answered = []; // {entry, label, saved, settled}, the newest last; `saved` is a promise of the server's reply
const curve = []; // {labels, accuracy}
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
  if (!panel.firstChild) panel.append(h("h2", { class: "unseen" }, "Label next"), toolbar(), h("div", { id: "label-item", class: "panel" }), h("div", { id: "label-curve", class: "panel" }), rest());
  draw();
}

/** Add the expected accuracy to the curve after each evaluation. */
export function evaluatedLabels() {
  const accuracy = store.evaluation?.ready ? store.evaluation.accuracy : null;
  if (accuracy === null) return;
  if (curve.at(-1)?.labels === total()) curve.pop();
  curve.push({ labels: total(), accuracy });
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
  const panel = at("label-item");
  if (!panel) return;
  const entry = queue[0];
  const mark = JSON.stringify([entry, before, answered.length, entry ? 0 : [asking === null, files.size === 0]]);
  if (mark === drawn) { drawChoices(); return; } // keeps the text that is being typed
  drawn = mark;
  if (!entry) {
    panel.replaceChildren(h("p", { class: "muted" }, asking ? "Choosing…" : files.size ? "Everything is labelled or skipped." : `Drop a folder of unlabelled ${noun()}s here. The most useful ones come first. Labels are saved; the unlabelled ${noun()}s are not, so drop the folder again after you reload the page or restart the server.`));
    return;
  }
  const file = files.get(entry.digest);
  const shown = store.typed ? h("blockquote", { class: "big" }) : h("canvas", { class: "large", "aria-label": file.name });
  if (store.typed) file.text().then((text) => { shown.textContent = text; });
  else paint(shown, file, 900);
  const name = h("input", { type: "text", id: "label-new", placeholder: "New class", "aria-label": "New class", maxlength: 100, autocomplete: "off" });
  panel.replaceChildren(
    shown,
    h("p", { class: "muted" }, entry.reason, before && entry.top.length ? ` · ${entry.top[0].label} ${percent(entry.top[0].probability)}` : ""),
    h("div", { class: "row", id: "label-classes" },
      h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); if (name.value.trim()) answer(name.value.trim()); } }, name, h("button", { type: "submit" }, "Add"))),
    h("div", { class: "row" },
      h("button", { type: "button", id: "label-skip", onclick: skip }, h("kbd", {}, "S"), "Skip"),
      h("button", { type: "button", id: "label-undo", disabled: !answered.length, onclick: undo }, h("kbd", {}, "U"), "Undo"),
      h("span", { id: "label-last", class: "muted", "aria-live": "polite" }, last())));
  drawChoices();
}

/** Draw a button for each class, in front of the field for a new class. */
function drawChoices() {
  const row = at("label-classes");
  const labels = store.classes.map((one) => one.label);
  const drawnLabels = JSON.stringify(labels);
  if (!row || row.dataset.labels === drawnLabels) return;
  row.dataset.labels = drawnLabels;
  row.querySelectorAll(".choice").forEach((button) => button.remove());
  row.prepend(...labels.map((label, i) => h("button", { type: "button", class: "choice", style: { "--hue": hue(i) }, onclick: () => answer(label) }, i < 9 ? h("kbd", {}, String(i + 1)) : null, label)));
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

/** Keys of the tab: 1 to 9 for the classes, S to skip, U to undo. */
export function labelKey(event) {
  if (at("label").hidden || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
  const one = store.classes[Number(event.key) - 1];
  if (/^[1-9]$/.test(event.key) && one) answer(one.label);
  else if (event.key.toLowerCase() === "s") skip();
  else if (event.key.toLowerCase() === "u") undo();
  else return;
  event.preventDefault();
}

function drawCurve() {
  const panel = at("label-curve");
  if (!panel || curve.length < 2) return;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 300 90");
  svg.setAttribute("role", "img");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  line.setAttribute("points", points(curve, 300, 90));
  svg.append(line);
  const { text, flat } = gain(curve);
  svg.setAttribute("aria-label", `Expected accuracy ${percent(curve.at(-1).accuracy)} with ${count(total(), "label")}`);
  panel.replaceChildren(h("h3", {}, `Expected accuracy ${percent(curve.at(-1).accuracy)}`), svg, h("p", { class: flat ? "flat" : "muted", id: "label-gain" }, text));
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
