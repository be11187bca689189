/** Judge: how good it is, where it errs, and what would help. */

import { at, h } from "./dom.js";
import { advice, count, percent } from "./words.js";
import * as server from "./server.js";
import { change, find, noun, nouns, store } from "./store.js";
import { view } from "./viewer.js";

const WIDEST = 24; // classes up to which the whole matrix is drawn
const kept = new Set(); // items that a person has looked at and left where they are
let mark = "";

export function showJudge() {
  const found = store.judgement;
  const place = at("judge");
  const now = JSON.stringify([found?.revision, store.revision, kept.size, found?.ready]);
  if (!found || now === mark) return;
  mark = now;
  at("judge-badge").textContent = found.ready ? percent(found.accuracy) : "";
  const old = found.revision < store.revision;
  place.replaceChildren(h("h2", { class: "unseen" }, "Judge"), ...(found.ready ? whole(found, old) : [waiting()]), next(found));
}

const waiting = () => h("div", { class: "panel" }, h("p", { class: "big" }, "Not enough to judge yet."),
  h("p", { class: "muted" }, `It needs two classes with two ${nouns()} each: every one is decided by a model that has not seen it.`));

function whole(found, old) {
  return [
    h("div", { class: "panel score" },
      h("p", { class: "figure", id: "accuracy" }, percent(found.accuracy)),
      h("div", {}, h("p", {}, h("strong", {}, "Expected accuracy"), ` on new ${nouns()} like these, give or take: ${percent(found.interval[0])} to ${percent(found.interval[1])}.`),
        h("p", { class: "muted" }, `From ${count(found.rows, noun())}, each decided by a model that had not seen it.${old ? " Judging the latest change …" : ""}`))),
    confusion(found), suspects(found), twins(found),
  ].filter(Boolean);
}

function confusion(found) {
  const open = (row, column) => () => {
    const wrong = new Set(found.mistakes.map((one) => one.id));
    const ids = row === column
      ? (store.classes.find((one) => one.label === row)?.items ?? []).map((one) => one.id).filter((id) => !wrong.has(id))
      : found.mistakes.filter((one) => one.label === row && one.predicted === column).map((one) => one.id);
    if (ids.length) view(ids[0], ids);
  };
  const body = found.classes.length <= WIDEST ? matrix(found, open) : pairs(found, open);
  return h("div", { class: "panel" }, h("h3", {}, "What is taken for what"), h("p", { class: "muted" }, `Rows: what it is. Columns: what it was taken for. A field opens its ${nouns()}.`), body);
}

function matrix({ classes, confusion: counts }, open) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Confusion matrix" }, h("table", { class: "matrix" },
    h("thead", {}, h("tr", {}, h("td"), classes.map((label) => h("th", { scope: "col" }, h("span", { title: label }, label))))),
    h("tbody", {}, classes.map((row, r) => {
      const sum = counts[r].reduce((a, b) => a + b, 0);
      return h("tr", {}, h("th", { scope: "row", title: row }, row), classes.map((column, c) => {
        const n = counts[r][c];
        const share = sum ? n / sum : 0;
        return h("td", { class: n ? (r === c ? "right" : "err") : "", style: { "--share": share.toFixed(3) } },
          n ? h("button", { type: "button", "aria-label": `${n} of ${row} taken for ${column}`, onclick: open(row, column) }, String(n)) : "");
      }));
    }))));
}

function pairs({ classes, confusion: counts }, open) {
  const found = [];
  counts.forEach((line, r) => line.forEach((n, c) => { if (n && r !== c) found.push({ row: classes[r], column: classes[c], n }); }));
  found.sort((a, b) => b.n - a.n);
  if (!found.length) return h("p", {}, "Nothing is taken for anything else.");
  return h("ul", { class: "list" }, found.slice(0, 40).map(({ row, column, n }) =>
    h("li", {}, h("button", { type: "button", class: "plain", onclick: open(row, column) }, `${n} of ${row} taken for ${column}`))));
}

const picture = (id, ids) => {
  const found = find(id);
  if (!found) return null;
  const { item, label } = found;
  return h("button", { type: "button", class: store.typed ? "text" : "thumb", title: item.name, onclick: () => view(id, ids) },
    store.typed ? item.name : h("img", { src: server.shown(item, "thumbnail"), alt: `${item.name}, ${label}`, loading: "lazy" }));
};

function suspects({ mislabelled }) {
  const open = mislabelled.filter((one) => !kept.has(one.id) && find(one.id)?.label === one.label);
  if (!open.length) return null;
  const ids = open.map((one) => one.id);
  return h("div", { class: "panel" }, h("h3", {}, "Perhaps in the wrong class"),
    h("ul", { class: "list suspects" }, open.map((one) => h("li", {}, picture(one.id, ids),
      h("p", {}, `In ${one.label}, looks like `, h("strong", {}, one.predicted), ` (${percent(one.probability)})`),
      h("div", { class: "row" },
        h("button", { type: "button", class: "main", data: { move: one.id }, onclick: () => change({ do: "move", ids: [one.id], label: one.predicted }) }, `Move to ${one.predicted}`),
        h("button", { type: "button", onclick: () => { kept.add(one.id); showJudge(); } }, "Leave it"))))));
}

function twins({ duplicates }) {
  const open = duplicates.map((ids) => ids.filter((id) => find(id))).filter((ids) => ids.length > 1 && !ids.every((id) => kept.has(id)));
  if (!open.length) return null;
  return h("div", { class: "panel" }, h("h3", {}, "Nearly the same"), h("p", { class: "muted" }, "Twins make a model look better than it is."),
    h("ul", { class: "list twins" }, open.map((ids) => h("li", {},
      h("div", { class: "thumbs" }, ids.slice(0, 8).map((id) => h("span", { class: "twin" }, picture(id, ids), h("small", {}, find(id).label)))),
      h("div", { class: "row" },
        h("button", { type: "button", onclick: () => change({ do: "delete", ids: ids.slice(1) }) }, `Keep the first, delete ${ids.length - 1}`),
        h("button", { type: "button", onclick: () => { ids.forEach((id) => kept.add(id)); showJudge(); } }, "Leave them"))))));
}

function next(found) {
  if (!found.advice.length) return found.ready ? h("div", { class: "panel" }, h("h3", {}, "What to add next"), h("p", {}, "Nothing is missing that these pictures can tell. Try pictures from elsewhere.")) : h("div");
  return h("div", { class: "panel" }, h("h3", {}, "What to add next"), h("ul", { class: "plainlist" }, found.advice.map((one) => h("li", {}, advice(one, noun())))));
}
