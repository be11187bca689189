// Images, texts or names of rows, with captions.

import { element } from "./dom.js";
import { percent } from "./numbers.js";

const FIRST = 24;

function image(item, caption) {
  const image = element("img", { src: item.image, alt: item.name, loading: "lazy", class: item.image.startsWith("data:image/png") ? "tiny" : "" });
  const where = item.where ? element("img", { src: item.where, alt: "", class: "where", loading: "lazy" }) : null;
  return element("div", {}, element("div", { class: "stack" }, image, where), caption ? element("div", {}, caption) : null);
}

// The words of a text, each on a ground of its colour while places are shown.
function shadedWords(item) {
  const FOR = "230 97 1", AGAINST = "94 60 190";
  const mark = ([word, strength]) => element("mark", { style: `--ground: rgb(${strength > 0 ? FOR : AGAINST} / ${(0.75 * Math.abs(strength)).toFixed(2)})` }, word);
  return item.words.flatMap((one) => [mark(one), " "]);
}

// A button that shows what speaks for the predicted class, which the key M presses too; null where nothing is known.
export function whereButton(items) {
  if (!items.some((item) => item.where || item.words)) return null;
  const toggle = () => button.setAttribute("aria-pressed", String(document.body.classList.toggle("places")));
  const button = element("button", { class: "toggle", "aria-pressed": "false", click: toggle }, "Show where ", element("kbd", {}, "M"));
  document.addEventListener("keydown", (event) => {
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
    if (plain && event.key.toLowerCase() === "m" && !event.target.closest("input, textarea")) toggle();
  });
  const meaning = element("span", { class: "pale" }, " Orange speaks for the predicted class, violet for the correct one.");
  return element("p", {}, button, meaning);
}

function body(item) {
  const other = item.because;
  if (item.image) {
    return element("div", { class: "images" }, image(item), other && other.image ? image(other, "closest training image") : null);
  }
  if (item.text === undefined) return null;
  const reason = other && other.text !== undefined ? element("div", { class: "because pale" }, `closest training text: ${other.text}`) : null;
  return element("div", {}, element("blockquote", {}, item.words ? shadedWords(item) : item.text), reason);
}

function reason(item) {
  const other = item.because;
  if (!other || other.image || other.text !== undefined) return null;
  return element("span", { class: "name" }, `closest training input: ${other.name}`);
}

export function card(item, words) {
  return element("figure", {}, body(item), element("figcaption", {}, words, element("span", { class: "name" }, item.name), reason(item)));
}

export function answer(item) {
  const wrong = item.predicted !== item.label;
  const predicted = element("b", { class: wrong ? "wrong" : "" }, item.predicted);
  return wrong ? [predicted, ` ${percent(item.probability, 0)}, correct: `, element("b", {}, item.label)]
    : [predicted, ` ${percent(item.probability, 0)}`];
}

export function cards(items, words, first = FIRST) {
  const pairs = items.some((item) => item.because && item.because.image);
  const texts = items.some((item) => item.text !== undefined);
  const grid = element("div", { class: `cards ${texts ? "texts" : pairs ? "pairs-of" : ""}` });
  grid.append(...items.slice(0, first).map((item) => card(item, words(item))));
  if (items.length <= first) return grid;
  const rest = items.slice(first);
  const more = element("button", { class: "more", click: () => { grid.append(...rest.map((item) => card(item, words(item)))); more.remove(); } }, `Show ${rest.length} more`);
  return element("div", {}, grid, more);
}
