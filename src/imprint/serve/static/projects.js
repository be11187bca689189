/** Projects: open, rename, duplicate and delete them. The server shows one at a time, to every tab. */

import { at, h, note } from "./dom.js";
import * as server from "./server.js";

const KINDS = { image: "Images", text: "Texts", sound: "Sounds" };

/** Open the list of projects. */
export async function showProjects() {
  try {
    draw(await server.projects());
    if (!at("projects").open) at("projects").showModal();
  } catch (error) {
    note(error.message, "error");
  }
}

/** Change the projects; true if the server accepted it. A project that opens needs its network, which takes seconds. */
async function change(entry) {
  const opens = ["open", "create"].includes(entry.do);
  at("projects-status").textContent = opens ? "Opening the project …" : "";
  try {
    const listed = await server.changeProjects(entry);
    if (opens) location.reload();
    else draw(listed);
    return true;
  } catch (error) {
    at("projects-status").textContent = error.message;
    return false;
  }
}

async function remove(one) {
  if (await change({ do: "delete", id: one.id })) {
    at("projects-status").replaceChildren(`${one.name} is deleted. `,
      h("button", { type: "button", id: "projects-undo", onclick: () => change({ do: "restore", id: one.id }) }, "Undo"));
  }
}

function draw({ projects, deleted, kinds }) {
  const name = h("input", { type: "text", id: "new-project", placeholder: "Name of a new project", "aria-label": "Name of a new project", maxlength: 100, autocomplete: "off", required: true });
  const kind = h("select", { "aria-label": "What it classifies", id: "new-project-kind" }, kinds.map((one) => h("option", { value: one }, KINDS[one] ?? one)));
  at("projects").replaceChildren(
    h("div", { class: "viewer-top" }, h("h2", {}, "Projects"),
      h("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => at("projects").close() }, "×")),
    h("ul", { class: "list projects" }, projects.map(entry)),
    h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); change({ do: "create", name: name.value, kind: kind.value }); } },
      h("div", { class: "grow" }, name), kind, h("button", { type: "submit", class: "main" }, "New project")),
    h("p", { id: "projects-status", role: "status" }),
    deleted.length ? h("details", {}, h("summary", {}, `Deleted (${deleted.length}); they are removed after 30 days`), h("ul", { class: "list projects" }, deleted.map((one) => h("li", { data: { project: one.name } },
      h("span", { class: "grow" }, one.name), h("button", { type: "button", onclick: () => change({ do: "restore", id: one.id }) }, "Restore"))))) : "");
}

function entry(one) {
  const title = h("span", { class: "grow" }, h("strong", {}, one.name), h("small", { class: "muted" }, ` ${KINDS[one.kind] ?? ""} · ${new Date(1000 * one.changed).toLocaleDateString("en")}${one.open ? " · open" : ""}`));
  const button = (text, run, more = {}) => h("button", { type: "button", onclick: run, "aria-label": `${text} ${one.name}`, ...more }, text);
  return h("li", { data: { project: one.name } }, title,
    one.open ? null : button("Open", () => change({ do: "open", id: one.id }), { class: "main" }),
    button("Rename", () => rename(one, title)), button("Duplicate", () => change({ do: "duplicate", id: one.id })),
    one.open || one.first ? null : button("Delete", () => remove(one), { class: "danger" }));
}

function rename(one, title) {
  const input = h("input", { type: "text", value: one.name, "aria-label": `New name of ${one.name}`, maxlength: 100 });
  title.replaceChildren(h("form", { onsubmit: (event) => { event.preventDefault(); change({ do: "rename", id: one.id, name: input.value }); } }, input));
  input.focus();
  input.select();
}
