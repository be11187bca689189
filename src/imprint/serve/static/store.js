/** The server's state as the page knows it; listeners are called when it changes. */

import * as server from "./server.js";
import { at, note } from "./dom.js";

export const store = { project: "", name: "", token_file: "", input: null, revision: -1, modality: "image", noun: "image", typed: false, describes: false, suffixes: [], sample: false, backbone: "", undo: null, redo: null, classes: [], evaluation: null, drift: null };
const listeners = [];
let running = null;
let again = false;

export const listen = (listener) => listeners.push(listener);
export const noun = () => store.noun;
export const total = () => store.classes.reduce((sum, one) => sum + one.items.length, 0);

/** How items are shown: as a "text", a "sound" or a "image". */
export const shape = () => (store.typed ? "text" : store.suffixes.includes(".wav") ? "sound" : "image");

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

/** Make a change; the server's reply {revision, changed}, or null if it refused. */
export async function change(entry) {
  try {
    const reply = await server.change(entry);
    await refresh();
    return reply;
  } catch (error) {
    note(error.message, "error");
    return null;
  }
}

/** Undo the change that led to a revision, and no other, also if newer changes exist. */
export const undoChange = (revision) => change({ do: "undo", change: revision });

/** Make a change and say what it did, with a button that undoes it. */
export async function changeWithUndo(entry, sentence) {
  const reply = await change(entry);
  if (reply) note(sentence, "info", reply.changed ? { label: "Undo", run: () => undoChange(reply.revision) } : null);
  return reply !== null;
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
