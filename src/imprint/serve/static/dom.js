/** Elements without a framework. */

/** An element: `h("button", {class: "a", onclick: f, disabled: true}, "text", child)`. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    else if (name === "data") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const at = (id) => document.getElementById(id);

/** Announce a text to screen readers. */
export function speak(text) {
  const region = at("spoken");
  if (region.textContent !== text) region.textContent = text;
}

const NOTES = 3; // more at once would hide the page

/** Show a short message for some time; a repeated message is shown once; `action` is {label, run}. */
export function note(text, kind = "info", action = null) {
  const shown = [...at("notes").children];
  shown.filter((one, i) => one.firstChild.textContent === text || i <= shown.length - NOTES).forEach((one) => one.remove());
  const element = h("div", { class: `note ${kind}` }, h("span", {}, text));
  if (action) element.append(h("button", { type: "button", onclick: () => { element.remove(); action.run(); } }, action.label));
  element.append(h("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => element.remove() }, "×"));
  at("notes").append(element);
  setTimeout(() => element.remove(), action ? 20000 : kind === "error" ? 12000 : 6000);
}

/** A button that looks like one and picks files. */
export function picker(text, attributes, onfiles) {
  const input = h("input", {
    type: "file", multiple: true, class: "unseen", ...attributes,
    onchange: () => { onfiles([...input.files]); input.value = ""; },
  });
  return h("label", { class: "button" }, text, input);
}

/** The colour of a class: neighbours in the list differ most. */
export const hue = (index) => Math.round((205 + index * 137.508) % 360);
