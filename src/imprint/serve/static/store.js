/** What the page knows of the server's state; whoever shows it listens. */

import * as server from "./server.js";
import { note } from "./dom.js";

export const store = { revision: -1, modality: "image", backbone: "", undo: false, redo: false, classes: [], judgement: null, drift: null };
const listeners = [];
let running = null;
let again = false;

export const listen = (listener) => listeners.push(listener);
export const noun = () => (store.modality === "text" ? "text" : "picture");
export const total = () => store.classes.reduce((sum, one) => sum + one.items.length, 0);

/** Where an item is: {item, label}, or null. */
export function find(id) {
  for (const { label, items } of store.classes) {
    const item = items.find((one) => one.id === id);
    if (item) return { item, label };
  }
  return null;
}

/** Ask for the newest state; calls that come while one is under way share the next. */
export function refresh() {
  if (running) { again = true; return running; }
  running = (async () => {
    do {
      again = false;
      const found = await server.state();
      found.classes = found.classes.map(({ label, opened, items }) => ({ label, opened, items: items.map(([id, name, digest]) => ({ id, name, digest })) }));
      Object.assign(store, found);
      for (const listener of listeners) listener("state");
    } while (again);
  })().catch((error) => note(error.message, "error")).finally(() => { running = null; });
  return running;
}

async function rejudge() {
  try {
    store.judgement = await server.judge();
    for (const listener of listeners) listener("judge");
  } catch (error) {
    note(error.message, "error");
  }
}

/** Ask whether the inputs still look like the training data. */
export async function checkDrift() {
  try {
    store.drift = await server.drift();
    for (const listener of listeners) listener("drift");
  } catch (error) {
    note(error.message, "error");
  }
}

/** Make a change; true if the server took it. */
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

/** Follow what happens on the server, also in other tabs. */
export function follow() {
  let judged = -2;
  const events = new EventSource("/api/events");
  events.onmessage = ({ data }) => {
    const news = JSON.parse(data);
    if (news.revision !== store.revision) refresh();
    if (news.judged !== judged) { judged = news.judged; rejudge(); }
    checkDrift();
  };
}
