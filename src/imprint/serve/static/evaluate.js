/** Evaluate: the expected accuracy, the mistakes, and what would help. */

import { at, h, picker } from "./dom.js";
import { confusedPairs, confusionMatrix } from "/static/matrix.js";
import { openFolder } from "./examples.js";
import { chosen } from "./files.js";
import { advice, count, percent } from "./words.js";
import { tile } from "./item.js";
import { change, changeWithUndo, find, noun, store } from "./store.js";
import { view } from "./viewer.js";

const MOST_PAIRS = 10; // of confused classes, below the matrix
const reviewed = new Set(); // items that the user has reviewed and left in their class
let mark = "";

export function showEvaluation() {
  const evaluation = store.evaluation;
  const panel = at("evaluate");
  const now = JSON.stringify([evaluation?.revision, evaluation?.held_out?.rows, store.revision, reviewed.size, evaluation?.ready, evaluation?.error]);
  if (!evaluation || now === mark) return;
  mark = now;
  at("evaluate-badge").textContent = evaluation.ready ? percent(evaluation.accuracy) : "";
  const old = evaluation.revision < store.revision;
  panel.replaceChildren(h("h2", { class: "unseen" }, "Evaluate"), failure(evaluation), ...[heldOut(evaluation.held_out), ...(evaluation.tags ? [tags(evaluation, old)] : evaluation.ready ? results(evaluation, old) : [waiting(evaluation), nearDuplicates(evaluation)])].filter(Boolean), next(evaluation), holdOut());
}

const failure = (evaluation) => (evaluation.error ? h("div", { class: "panel" }, h("p", {}, h("strong", {}, "The last evaluation failed. "), evaluation.error)) : "");

const waiting = (evaluation) => h("div", { class: "panel" }, h("p", { class: "big" }, "Not calibrated."),
  h("p", { class: "muted" }, `${evaluation.reason} Until then there is no expected accuracy, and “none of these” is never answered.`));

/** The accuracy on the held-out set. */
function heldOut(measured) {
  if (!measured) return null;
  return h("div", { class: "panel" }, h("h3", {}, "Held-out set"),
    h("div", { class: "score" }, h("p", { class: "figure", id: "held-out-accuracy" }, percent(measured.accuracy)),
      h("p", {}, h("strong", {}, "Accuracy"), ` on ${count(measured.rows, `held-out ${noun()}`)}, which the model was not fitted with, 95\u00a0% interval ${percent(measured.interval[0])} to ${percent(measured.interval[1])}.`)),
    confusion(measured, "Confusion matrix of the held-out set"));
}

/** Buttons that add examples to the held-out set or take them back. */
function holdOut() {
  const items = store.classes.flatMap((one) => one.items);
  const held = items.filter((one) => one.heldOut).map((one) => one.id);
  const fifth = store.classes.flatMap((one) => one.items.filter((item) => !item.heldOut).filter((_, i, all) => all.length >= 5 && i % 5 === 4).map((item) => item.id));
  return h("div", { class: "panel dropzone" }, h("h3", {}, held.length ? "Change the held-out set" : "Add a held-out set"),
    h("p", { class: "muted" }, `Held-out ${noun()}s measure the accuracy and are never used to fit the model. Drop them here, one folder per class, or hold out some of yours.`),
    h("div", { class: "row" },
      store.typed ? null : picker("Add a folder per class", { webkitdirectory: true, id: "held-out-folder" }, (files) => openFolder(chosen(files), true)),
      fifth.length ? h("button", { type: "button", id: "hold-out-fifth", onclick: () => changeWithUndo({ do: "hold", ids: fifth }, `${count(fifth.length, noun())} held out.`) }, `Hold out ${count(fifth.length, noun())}, a fifth`) : null,
      held.length ? h("button", { type: "button", onclick: () => changeWithUndo({ do: "hold", ids: held, held_out: false }, `${count(held.length, noun())} are used for training.`) }, "Use all for training") : null));
}

/** The results of a model of tags: one line per label. */
function tags({ tags: figures, rows }, old) {
  const lines = [...figures.per_label].sort((a, b) => a.f1 - b.f1);
  return h("div", { class: "panel" }, h("h3", {}, "Labels"),
    h("p", { id: "tag-figures" }, h("strong", {}, "Expected"), ` mean average precision ${percent(figures.mean_average_precision)}, macro F1 ${percent(figures.macro_f1)}.`),
    h("p", { class: "muted" }, `Each of ${count(rows, noun())} is predicted by the model without it.${old ? " Evaluating the latest change …" : ""}`),
    figures.held_out_ignored ? h("p", { id: "held-out-ignored" }, `Held-out ${noun()}s of tags are not evaluated on this page. Export model.imprint, and measure it in a terminal: imprint evaluate model.imprint DATA.`) : null,
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Results by label" }, h("table", { class: "figures" },
      h("thead", {}, h("tr", {}, ["Label", "Rows", "Average precision", "F1"].map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, lines.map((one) => h("tr", {}, h("th", { scope: "row" }, one.label), h("td", {}, String(one.rows)), h("td", {}, percent(one.average_precision)), h("td", {}, percent(one.f1))))))));
}

function results(evaluation, old) {
  return [
    h("div", { class: "panel score" },
      h("p", { class: "figure", id: "accuracy" }, percent(evaluation.accuracy)),
      h("div", {}, h("p", {}, h("strong", {}, "Expected accuracy"), ` on new ${noun()}s like these, 95\u00a0% interval ${percent(evaluation.interval[0])} to ${percent(evaluation.interval[1])}.`),
        h("p", { class: "muted" }, `Extrapolated from cross-validation on ${count(evaluation.rows, noun())}: each is predicted by a model fitted without it.${old ? " Evaluating the latest change …" : ""}`),
        ...evaluation.levels.map(({ level, nodes, accuracy }) => h("p", {}, `Accuracy at level ${level} of the tree (${count(nodes, "node")}): ${percent(accuracy)}.`)),
        ...evaluation.caveats.map((sentence) => h("p", { class: "muted" }, sentence)))),
    h("div", { class: "panel" }, confusion(evaluation, "Confusion matrix")), suspects(evaluation), nearDuplicates(evaluation),
  ].filter(Boolean);
}

/** The matrix, and the pairs that are confused most; a cell or a pair opens its items. */
function confusion(evaluation, title) {
  const held = title !== "Confusion matrix";
  const listed = held || evaluation.listed;
  const { classes } = evaluation;
  const open = (truth, answer) => {
    const [row, column] = [classes[truth], classes[answer]];
    const wrong = new Set(evaluation.mistakes.map((one) => one.id));
    const ids = row === column
      ? (store.classes.find((one) => one.label === row)?.items ?? []).filter((one) => one.heldOut === held).map((one) => one.id).filter((id) => !wrong.has(id))
      : evaluation.mistakes.filter((one) => one.label === row && one.predicted === column).map((one) => one.id);
    if (ids.length) view(ids[0], ids);
  };
  const pairs = confusedPairs(evaluation.confusion).slice(0, MOST_PAIRS).map(({ truth, answer, rows }) => {
    const words = `${rows} × ${classes[truth]} predicted as ${classes[answer]}`;
    return h("li", {}, listed ? h("button", { type: "button", class: "plain", onclick: () => open(truth, answer) }, words) : words);
  });
  return [held ? null : h("h3", {}, title),
    h("p", { class: "muted" }, `Rows: the class. Columns: the prediction. ${listed ? `Choose a cell to see its ${noun()}s; the arrow keys go from cell to cell.` : `The imported model came without its ${noun()}s.`}`),
    confusionMatrix(evaluation, listed ? open : null, title), pairs.length ? h("ul", { class: "list pairs" }, pairs) : null];
}

function suspects({ mislabelled }) {
  const open = mislabelled.filter((one) => !reviewed.has(one.id) && find(one.id)?.label === one.label);
  if (!open.length) return null;
  const ids = open.map((one) => one.id);
  return h("div", { class: "panel" }, h("h3", {}, "Labels to check"),
    h("ul", { class: "list suspects" }, open.map((one) => h("li", {}, tile(one.id, ids),
      h("p", {}, `In ${one.label}, looks like `, h("strong", {}, one.predicted), ` (${percent(one.probability)})`),
      h("div", { class: "row" },
        h("button", { type: "button", class: "main", data: { move: one.id }, onclick: () => change({ do: "move", ids: [one.id], label: one.predicted }) }, `Move to ${one.predicted}`),
        h("button", { type: "button", onclick: () => { reviewed.add(one.id); showEvaluation(); } }, "Leave it"))))));
}

function nearDuplicates({ duplicates }) {
  const open = duplicates.map((ids) => ids.filter((id) => find(id))).filter((ids) => ids.length > 1 && !ids.every((id) => reviewed.has(id)));
  if (!open.length) return null;
  return h("div", { class: "panel" }, h("h3", {}, "Near duplicates"), h("p", { class: "muted" }, "Duplicates make the expected accuracy too high; in two classes they make both worse."),
    h("ul", { class: "list twins" }, open.map((ids) => h("li", {},
      h("div", { class: "thumbs" }, ids.slice(0, 8).map((id) => h("span", { class: "twin" }, tile(id, ids), h("small", {}, find(id).label)))),
      h("div", { class: "row" }, choices(ids),
        h("button", { type: "button", onclick: () => { ids.forEach((id) => reviewed.add(id)); showEvaluation(); } }, "Leave them"))))));
}

/** For duplicates in one class: keep one. For several classes: the user chooses the right one, which keeps one. */
function choices(ids) {
  const labels = [...new Set(ids.map((id) => find(id).label))];
  return labels.map((label) => {
    const first = ids.find((id) => find(id).label === label);
    const rest = ids.filter((id) => id !== first);
    const text = labels.length === 1 ? `Keep one, delete ${rest.length}` : `It is ${label}: delete ${rest.length}`;
    return h("button", { type: "button", data: { keep: label }, onclick: () => changeWithUndo({ do: "delete", ids: rest }, `${rest.length} deleted, one stays in ${label}.`) }, text);
  });
}

function next(evaluation) {
  if (!evaluation.advice.length) return evaluation.ready ? h("div", { class: "panel" }, h("h3", {}, "What to add next"), h("p", {}, `No class needs more ${noun()}s. Try ${noun()}s from another source.`)) : h("div");
  return h("div", { class: "panel" }, h("h3", {}, "What to add next"), h("ul", { class: "plainlist" }, evaluation.advice.map((one) => h("li", {}, advice(one, noun())))));
}
