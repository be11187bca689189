/** Examples that are in two classes: which class is right? */

import { at, h, speak } from "./dom.js";
import { tile } from "./item.js";
import { changeWithUndo, find, noun } from "./store.js";

/** Ask about `conflicts`, a list of {id, label, others: [{id, label}]}: the added item, and equal ones in other classes. */
export function askWhichClass(conflicts) {
  const dialog = at("conflicts");
  const open = conflicts.filter((one) => find(one.id) && one.others.some((other) => find(other.id)));
  if (!open.length) { if (dialog.open) dialog.close(); return; }
  const sentence = open.length === 1 ? `This ${noun()} is in another class already.` : `${open.length} ${noun()}s are in another class already.`;
  dialog.replaceChildren(
    h("div", { class: "viewer-top" }, h("h2", {}, "Which class is right?"),
      h("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => dialog.close() }, "×")),
    h("p", { class: "muted" }, `${sentence} One ${noun()} in two classes makes both worse.`),
    h("ul", { class: "list conflicts" }, open.slice(0, 50).map((one) => question(one, (rest) => askWhichClass(rest), open))));
  if (!dialog.open) dialog.showModal();
  speak(sentence);
}

function question(one, next, all) {
  const labels = [one.label, ...new Set(one.others.map((other) => other.label))];
  const rest = all.filter((other) => other !== one);
  const keep = async (label) => {
    const ids = [one, ...one.others].filter((other) => other.label !== label && find(other.id)).map((other) => other.id);
    if (!ids.length || await changeWithUndo({ do: "delete", ids }, `It is in ${label} only.`)) next(rest);
  };
  return h("li", {}, tile(one.id, [one.id]),
    h("p", {}, `Added to ${one.label}, and already in `, h("strong", {}, labels.slice(1).join(", "))),
    h("div", { class: "row" },
      labels.map((label) => h("button", { type: "button", data: { keep: label }, onclick: () => keep(label) }, `It is ${label}`)),
      h("button", { type: "button", class: "plain", onclick: () => next(rest) }, labels.length > 2 ? "Keep all" : "Keep both")));
}
