/** The page: tabs, undo and redo, and the targets of dropped and pasted files. */

import { at, note } from "./dom.js";
import { count } from "./words.js";
import { dropped, isReadable } from "./files.js";
import { change, follow, listen, noun, refresh, store, total } from "./store.js";
import { showExamples, addFolders, addFiles } from "./examples.js";
import { askAgain, showTry, tryOne, whereKey } from "./try.js";
import { showDrift } from "./drift.js";
import { showEvaluation } from "./evaluate.js";
import { showExport } from "./export.js";
import { answersSaved, evaluatedLabels, labelKey, poolFiles, showLabel } from "./label.js";
import { showProjects } from "./projects.js";
import { importFile, importSample, isImport } from "./import.js";

const TABS = ["examples", "label", "try", "evaluate", "export"];
const wide = matchMedia("(min-width: 62rem)");

function select(name, focus = false) {
  const shown = wide.matches && name === "try" ? "examples" : name;
  for (const one of TABS) {
    const tab = at(`tab-${one}`);
    tab.setAttribute("aria-selected", String(one === shown));
    tab.tabIndex = one === shown ? 0 : -1;
    at(one).hidden = one !== shown && !(one === "try" && wide.matches);
  }
  at("tab-try").hidden = wide.matches;
  if (focus) at(`tab-${shown}`).focus();
}

function tabs() {
  for (const name of TABS) at(`tab-${name}`).addEventListener("click", () => select(name));
  document.querySelector(".tabs").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const usable = TABS.filter((name) => !at(`tab-${name}`).hidden);
    const here = usable.findIndex((name) => at(`tab-${name}`).getAttribute("aria-selected") === "true");
    select(usable[(here + step + usable.length) % usable.length], true);
  });
  const current = () => TABS.find((name) => at(`tab-${name}`).getAttribute("aria-selected") === "true");
  wide.addEventListener("change", () => select(current()));
  select("examples");
}

let replaying = Promise.resolve();

/** Undo or redo the change that the button names; a second press waits for the first. */
function replay(kind) {
  replaying = replaying.then(async () => {
    if (await answersSaved()) await refresh(); // the newest answer is the newest change
    const next = store[kind];
    if (next && await change({ do: kind, change: next.change })) note(`${kind === "undo" ? "Undone" : "Redone"}: ${next.text}.`);
  });
}

function keys(event) {
  const typing = event.target.closest("input, textarea, select, dialog");
  if (typing || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
  event.preventDefault();
  replay(event.shiftKey ? "redo" : "undo");
}

/** Add dropped or pasted files to the class under the pointer, to Try it, or to new classes. */
async function receive(transfer, target) {
  const received = await dropped(transfer);
  const text = transfer.getData("text/plain");
  const card = target.closest?.("[data-label]");
  if (!received.length) {
    if (store.typed && text.trim() && !target.closest?.("textarea, input")) tryOne(text, "text");
    return;
  }
  if (target.closest?.("#label")) { poolFiles(received); return; }
  const imports = received.filter((one) => isImport(one.file.name));
  if (imports.length) { for (const { file } of imports) await importFile(file); return; }
  const heldOut = Boolean(target.closest?.("#evaluate"));
  const images = received.filter((one) => isReadable(one.file.name, store.suffixes));
  if (!images.length) note(`No ${noun()} among ${count(received.length, "file")}.`, "error");
  else if (card) addFiles(images.map((one) => one.file), card.dataset.label);
  else if (heldOut || target.closest?.("#examples") || images.some((one) => one.path.includes("/"))) addFolders(images, heldOut);
  else tryOne(images[0].file, images[0].file.name);
}

function drops() {
  let marked = null;
  const mark = (element) => {
    if (marked === element) return;
    marked?.classList.remove("over");
    marked = element;
    marked?.classList.add("over");
  };
  addEventListener("dragover", (event) => {
    event.preventDefault();
    mark(event.target.closest?.("[data-label], .dropzone") ?? null);
  });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) mark(null); });
  addEventListener("drop", (event) => {
    event.preventDefault();
    mark(null);
    const id = Number(event.dataTransfer.getData("application/x-imprint"));
    const card = event.target.closest?.("[data-label]");
    if (id && card) change({ do: "move", ids: [id], label: card.dataset.label });
    else if (!id) receive(event.dataTransfer, event.target);
  });
  addEventListener("paste", (event) => {
    if (event.clipboardData.files.length) event.preventDefault();
    else if (event.target.closest("input, textarea")) return;
    receive(event.clipboardData, document.activeElement ?? document.body);
  });
}

function head() {
  for (const [id, verb, keys] of [["undo", "Undo", "Ctrl+Z"], ["redo", "Redo", "Ctrl+Shift+Z"]]) {
    at(id).disabled = !store[id];
    at(id).title = store[id] ? `${verb}: ${store[id].text} (${keys})` : `${verb} (${keys})`;
  }
  at("project-name").textContent = store.name;
  document.title = `${store.name} · imprint`;
  at("summary").textContent = `${count(store.classes.length, "class")} · ${count(total(), noun())} · ${store.backbone}`;
}

tabs();
drops();
at("project").addEventListener("click", showProjects);
at("undo").addEventListener("click", () => replay("undo"));
at("redo").addEventListener("click", () => replay("redo"));
addEventListener("keydown", keys);
addEventListener("keydown", labelKey);
addEventListener("keydown", whereKey);
addEventListener("imprint:sample", importSample);
addEventListener("imprint:show", ({ detail }) => select(detail));
listen((what) => {
  if (what === "drift") { showDrift(); return; }
  if (what === "state") { head(); showExamples(); showLabel(); showTry(); showExport(); } else { askAgain(); evaluatedLabels(); showExport(); }
  showEvaluation();
});
refresh().then(follow);
