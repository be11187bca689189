/** What the page knows of the server's state; whoever shows it listens. */

import * as server from "./server.js";
import { note } from "./dom.js";

export const store = { revision: -1, noun: "picture", plural: "pictures", typed: false, suffixes: [], backbone: "", undo: false, redo: false, classes: [], judgement: null };
const listeners = [];
let running = null;
let again = false;

export const listen = (listener) => listeners.push(listener);
export const noun = () => store.noun;
export const nouns = () => store.plural;
/** What a file dialogue offers: by type for pictures, else by suffix. */
export const accepted = () => (store.noun === "picture" ? "image/*" : store.suffixes.join(","));
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
  };
}
