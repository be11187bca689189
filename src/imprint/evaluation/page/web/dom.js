// Elements made from values. Text is always text: nothing that comes from data is read as markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function shape(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

export function section(title, ...children) {
  return element("section", {}, element("h2", {}, title), ...children);
}

export function tile(value, meaning, target) {
  return element(target ? "a" : "div", { class: "tile", href: target }, element("b", {}, value), element("span", {}, meaning));
}
