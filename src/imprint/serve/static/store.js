/** The server's state as the page knows it; listeners are called when it changes. */

import * as server from "./server.js";
import { at, note } from "./dom.js";

export const store = { project: "", name: "", token_file: "", input: null, revision: -1, modality: "image", noun: "picture", typed: false, describes: false, suffixes: [], backbone: "", undo: false, redo: false, classes: [], evaluation: null, drift: null };
const listeners = [];
let running = null;
let again = false;

export const listen = (listener) => listeners.push(listener);
export const noun = () => store.noun;
export const total = () => store.classes.reduce((sum, one) => sum + one.items.length, 0);

/** How items are shown: as a "text", a "sound" or a "picture". */
export const shape = () => (store.typed ? "text" : store.suffixes.includes(".wav") ? "sound" : "picture");

/** Where an item is: {item, label}, or null. */
export function find(id) {
  for (const { label, items } of store.classes) {
    const item = items.find((one) => one.id === id);
    if (item) return { item, label };
  }
  return null;
}

/** Fetch the newest state; calls during a running fetch share the next one. */
export function refresh() {
  if (running) { again = true; return running; }
  running = (async () => {
    do {
      again = false;
      const state = await server.state();
      state.classes = state.classes.map(({ label, opened, items }) => ({ label, opened, items: items.map(([id, name, digest, heldOut, written]) => ({ id, name, digest, heldOut, written })) }));
      Object.assign(store, state);
      for (const listener of listeners) listener("state");
    } while (again);
  })().catch((error) => note(error.message, "error")).finally(() => { running = null; });
  return running;
}

async function reload() {
  try {
    store.evaluation = await server.evaluation();
    for (const listener of listeners) listener("evaluation");
  } catch (error) {
    note(error.message, "error");
  }
}

/** Fetch the state of the drift detection. */
export async function checkDrift() {
  try {
    store.drift = await server.drift();
    for (const listener of listeners) listener("drift");
  } catch (error) {
    note(error.message, "error");
  }
}

/** Make a change; true if the server accepted it. */
export async function change(entry) {
  try {
    await server.change(entry);
    await refresh();
    return true;
  } catch (error) {
    note(error.message, "error");
    return false;
  }
}

/** Make a change and say what it did, with a button that undoes it. */
export async function changeWithUndo(entry, sentence) {
  const accepted = await change(entry);
  if (accepted) note(sentence, "info", { label: "Undo", run: () => change({ do: "undo" }) });
  return accepted;
}

/** Follow changes on the server, also those of other tabs; the browser reconnects after a failure. */
export function follow() {
  let evaluated = -2;
  const events = new EventSource("/api/events");
  events.onopen = () => { at("offline").hidden = true; };
  events.onerror = () => {
    at("offline").hidden = false;
    if (events.readyState === EventSource.CLOSED) setTimeout(follow, 3000);
  };
  events.onmessage = ({ data }) => {
    const news = JSON.parse(data);
    if (store.project && news.project !== store.project) { location.reload(); return; } // another project was opened
    if (news.revision !== store.revision) refresh();
    if (news.evaluated !== evaluated) { evaluated = news.evaluated; reload(); }
    checkDrift();
  };
}
