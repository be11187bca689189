/** Try it: one image, text or sound, or the camera; the answer, and the examples behind it. */

import { at, h, hue, note, picker, speak } from "./dom.js";
import { answered, article, contribution, CONTRIBUTION, familiarity, percent, P_VALUE } from "./words.js";
import { cameras, choose, frame, release, watch } from "./camera.js";
import { askWhichClass } from "./conflicts.js";
import { tile } from "./item.js";
import * as server from "./server.js";
import { noun, refresh, shape, store } from "./store.js";

const SHOWN = 5;
let tried = null; // {content, name, answer, submitted}: whether a person submitted it and it was not asked about yet
let live = null; // {video, on}
let revision = -1;

/** Draw the panel once; ask again about what was tried whenever the model has changed. */
export function showTry() {
  const panel = at("try");
  if (!panel.firstChild) panel.append(h("h2", {}, "Try it"), store.typed ? textInput() : fileInput(), h("div", { id: "answer" }));
  if (revision !== store.revision) {
    revision = store.revision;
    if (tried && !live) again();
    else if (!tried) draw();
  }
}

/** Ask again after an evaluation: the answer may be calibrated now. */
export function askAgain() {
  if (tried && !live) again(true);
}

function fileInput() {
  return h("div", {},
    h("div", { class: "dropzone stage", id: "stage" }, h("p", { class: "muted" }, `Drop or paste ${article(noun())}`)),
    h("div", { class: "row" },
      picker(`Choose ${article(noun())}`, { accept: store.suffixes.join(","), id: "try-file", multiple: false }, ([file]) => tryOne(file, file.name)),
      shape() === "image" && h("button", { type: "button", id: "try-camera", "aria-pressed": "false", onclick: toggleCamera }, "Camera"),
      h("div", { class: "row", id: "cameras", role: "group", "aria-label": "Choice of camera" })));
}

function textInput() {
  const area = h("textarea", { rows: 3, id: "try-text", placeholder: "A text to try", "aria-label": "A text to try" });
  let timer = 0;
  area.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => { if (area.value.trim()) tryOne(area.value.trim(), "text"); }, 250);
  });
  return h("div", {}, area);
}

/** Ask about one image or text. */
export async function tryOne(content, name) {
  dispatchEvent(new CustomEvent("imprint:show", { detail: "try" }));
  tried = { content, name, answer: null, submitted: typeof content !== "string" };
  await again();
}

async function again(quietly = false) {
  const asked = tried;
  if (!store.classes.some((one) => one.items.length || one.opened)) { draw("Add examples of a class first."); return; }
  try {
    const submitted = asked.submitted === true;
    asked.submitted = false;
    const answer = await server.predict(asked.content, asked.name, 1000, submitted);
    if (asked !== tried) return;
    asked.answer = answer;
    draw();
    if (!live && !quietly) speak(spoken(answer));
  } catch (error) {
    if (asked === tried) { tried = live ? tried : null; draw(error.message); }
  }
}

const spoken = (answer) => (answer.labels?.length ? `${answer.labels.map((one) => `${one.label}, ${percent(one.probability)}`).join("; ")}.` : answer.label === null ? `${answered(answer)}.` : `${answer.label}, ${percent(answer.probability)}.`);

function draw(sentence = null) {
  const panel = at("answer");
  const answer = tried?.answer;
  if (sentence || !answer) {
    panel.replaceChildren(h("p", { class: "muted" }, sentence ?? (store.classes.length ? `The answer for a new ${noun()} appears here.` : "Add two classes, then try it here.")));
    if (sentence && !live) speak(sentence);
    return;
  }
  if (answer.preview && !live) at("stage")?.replaceChildren(shape() === "sound" ? h("audio", { src: answer.preview, controls: true }) : h("span", { class: "stack" }, h("img", { src: answer.preview, alt: `Tried: ${answer.path}` }), h("img", { id: "overlay", alt: "", hidden: true })));
  panel.replaceChildren(verdict(answer), live ? h("div") : where(), bars(answer), reasons(answer), correction(answer));
  if (explaining && !live) showWhere();
}

let explaining = false; // whether the person asked to see where
let explained = { answer: null }; // the newest explanation, and the answer to which it belongs

/** The button that shows where, which the key M presses too, and the words or times of the newest explanation. */
function where() {
  return h("div", { class: "where" },
    h("button", { type: "button", id: "show-where", "aria-pressed": String(explaining), onclick: toggleWhere }, "Show where", h("kbd", {}, "M")),
    h("p", { id: "where-text", "aria-live": "polite" }));
}

function toggleWhere() {
  explaining = !explaining;
  at("show-where")?.setAttribute("aria-pressed", String(explaining));
  showWhere();
}

/** The key M shows or hides where; on the tab Label, letters filter classes. */
export function whereKey(event) {
  if (!at("label").hidden) return;
  if (event.key.toLowerCase() !== "m" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog") || !at("show-where")) return;
  event.preventDefault();
  toggleWhere();
}

async function showWhere() {
  const asked = tried;
  if (explaining && explained.answer !== asked?.answer) {
    const answer = asked.answer;
    try {
      explained = { answer, ...await server.explain(asked.content, asked.name) };
    } catch (error) {
      explained = { answer, error: error.message };
    }
    if (asked !== tried || answer !== asked.answer) return;
  }
  const overlay = at("overlay");
  if (overlay) {
    overlay.hidden = !explaining || !explained.overlay;
    if (explained.overlay) overlay.src = explained.overlay;
  }
  at("where-text")?.replaceChildren(...(explaining ? meaning(explained) : []));
}

const FOR = "230 97 1";
const AGAINST = "94 60 190";

/** What is shown, in words, and the parts of a text or a sound on grounds of their colours. */
function meaning({ error, label, against, parts, unmapped }) {
  if (error) return [error];
  const marks = parts.flatMap(({ name, strength }) => [h("mark", { style: { background: `rgb(${strength > 0 ? FOR : AGAINST} / ${(0.75 * Math.abs(strength)).toFixed(2)})` } }, name), " "]);
  const missing = unmapped.length ? ` Without places, and not shown: ${unmapped.join(", ")}.` : "";
  return [...marks, h("span", { class: "muted" }, `Orange speaks for ${label}${against === null ? ", violet against it" : `, violet for ${against}`}.${missing}`)];
}

function verdict(answer) {
  const { word, detail } = familiarity(answer.known, noun(), answer.missing_rows);
  const none = answer.label === null;
  return h("div", { class: none ? "verdict none" : "verdict" },
    h("p", { class: "winner", id: "winner" }, none ? answered(answer) : answer.label),
    h("p", { class: "muted" }, none ? null : h("strong", {}, `${word}. `), detail),
    answer.known === null ? null : explain("What is the p-value?", P_VALUE));
}

const explain = (title, text) => h("details", { class: "explain" }, h("summary", {}, title), h("p", {}, text));

const colour = (label) => ({ "--hue": hue(store.classes.findIndex((one) => one.label === label)) });

function bars(answer) {
  const rest = answer.top.slice(SHOWN);
  return h("ol", { class: answer.label === null ? "bars faint" : "bars", "aria-label": "Probabilities" },
    answer.top.slice(0, SHOWN).map(({ label, probability }) => h("li", { style: colour(label) },
      h("span", { class: "bar-label" }, label),
      h("span", { class: "track", "aria-hidden": "true" }, h("span", { class: "fill", style: { width: `${100 * probability}%` } })),
      h("span", { class: "bar-value" }, percent(probability)))),
    rest.length && !answer.labels ? h("li", { class: "muted rest" }, `${rest.length} more together ${percent(rest.reduce((sum, one) => sum + one.probability, 0))}`) : null);
}

function reasons(answer) {
  if (!answer.why?.length) return h("div");
  const ids = answer.why.map((one) => one.id).filter((id) => id !== null);
  return h("div", { class: "why" }, h("h3", {}, `The ${noun()}s that contributed most`),
    h("ul", { class: shape() === "image" ? "thumbs" : "texts" }, answer.why.map((one) => {
      const caption = h("span", { class: `weight ${one.value < 0 ? "against" : ""}`, title: one.label }, contribution(one.value, answer.measure), h("span", { class: one.label === answer.top[0].label ? "unseen" : "whose" }, ` ${one.label}`));
      return h("li", {}, (one.id === null ? null : tile(one.id, ids)) ?? h("span", { class: "elsewhere" }, one.name ?? "a proxy"), caption);
    })),
    answer.measure === "weight" ? explain("What is the contribution?", CONTRIBUTION) : null);
}

function correction(answer) {
  const near = answer.top.map((one) => one.label);
  const quick = near.filter((label) => label !== answer.label).slice(0, SHOWN);
  const other = h("input", { type: "text", list: "all-classes", placeholder: "Another class", "aria-label": "Another class", autocomplete: "off" });
  return h("div", { class: "wrong" }, h("h3", {}, "Wrong? Choose the right class"),
    h("div", { class: "row" }, quick.map((label) => h("button", { type: "button", class: "choice", style: colour(label), data: { correct: label }, onclick: () => correct(label) }, label)),
      h("form", { class: "row grow", onsubmit: (event) => { event.preventDefault(); if (other.value.trim()) correct(other.value.trim()); } },
        other, h("datalist", { id: "all-classes" }, store.classes.map((one) => h("option", { value: one.label }))), h("button", { type: "submit" }, "Add"))),
    answer.label === null || answer.labels?.length === 0 ? null : h("button", { type: "button", class: "plain", id: "right", onclick: () => correct(answer.label) }, `Correct: add it to ${answer.label}`));
}

/** Put what was tried into a class; the answer is asked for again. */
async function correct(label) {
  try {
    const content = live ? await frame(live.video) : tried.content;
    const { id, new: fresh, others } = await server.add(content, label, tried.name);
    note(fresh ? `Added to ${label}.` : `It is in ${label} already.`);
    await refresh();
    askWhichClass([{ id, label, others }]);
    if (live || !fresh) again();
  } catch (error) {
    note(error.message, "error");
  }
}

/** A button per camera, where there are several. */
async function showCameras() {
  const every = live ? await cameras() : [];
  at("cameras").replaceChildren(...(every.length > 1 ? every : []).map((one) => h("button", {
    type: "button", "aria-pressed": String(one.used),
    onclick: () => choose(one.id).catch((error) => note(error.message, "error")).then(showCameras),
  }, one.name)));
}

async function toggleCamera() {
  const button = at("try-camera");
  if (live) {
    live.on = false;
    return;
  }
  try {
    live = { video: await watch(), on: true };
  } catch (error) {
    live = null;
    note(error.message, "error");
    return;
  }
  button.setAttribute("aria-pressed", "true");
  at("stage").replaceChildren(live.video);
  showCameras();
  while (live.on) {
    const file = await frame(live.video);
    tried = { content: file, name: file.name, answer: tried?.answer };
    await again();
    await new Promise((resolve) => setTimeout(resolve, 60));
  }
  release(live.video);
  live = null;
  button.setAttribute("aria-pressed", "false");
  showCameras();
  draw();
}
