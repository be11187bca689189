/** The curve of expected accuracy over the number of labels, and what the last labels gained. */

const WINDOW = 20; // labels over which the gain is stated
const FLAT = 0.005; // gain below which more labels stop paying off

/** The accuracy at a number of labels, from the nearest evaluation at or before it; null before the first. */
export function accuracyAt(curve, labels) {
  let accuracy = null;
  for (const one of curve) if (one.labels <= labels) accuracy = one.accuracy;
  return accuracy;
}

/** The gain of the last 20 labels in words, and whether it is so small that more labels stop paying off. */
export function gain(curve) {
  const now = curve.at(-1);
  const then = now ? accuracyAt(curve, now.labels - WINDOW) : null;
  if (then === null) return { text: "", flat: false };
  const difference = now.accuracy - then;
  const text = `The last ${WINDOW} labels gained ${(100 * difference).toFixed(1)} points.`;
  return { text: difference < FLAT ? `${text} More labels hardly help.` : text, flat: difference < FLAT };
}

const SIZE = { width: 420, height: 190, left: 46, right: 12, top: 10, bottom: 38 };

/** Round numbers from 0 to at least `most`, about four steps. */
export function ticks(most) {
  const rough = Math.max(most, 1) / 4;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((one) => one * unit).find((one) => one >= rough));
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, i) => i * step);
}

/** The lowest accuracy of the axis: a tenth below the lowest of the curve, in steps of ten percent. */
export const lowest = (curve) => Math.max(0, Math.floor(10 * Math.min(...curve.map((one) => one.accuracy)) - 1e-9) / 10);

/** Functions from labels and accuracies to pixels. */
export function scales(curve) {
  const labels = ticks(Math.max(...curve.map((one) => one.labels)));
  const low = Math.min(lowest(curve), 0.9);
  const x = (n) => SIZE.left + ((SIZE.width - SIZE.left - SIZE.right) * n) / labels.at(-1);
  const y = (accuracy) => SIZE.top + (SIZE.height - SIZE.top - SIZE.bottom) * ((1 - accuracy) / (1 - low));
  return { x, y, labels, accuracies: [low, (1 + low) / 2, 1] };
}

function drawn(tag, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

/** The curve as SVG, with axes: labels decided one by one, and expected accuracy in percent. */
export function learningCurve(curve, title) {
  const { x, y, labels, accuracies } = scales(curve);
  const svg = drawn("svg", { viewBox: `0 0 ${SIZE.width} ${SIZE.height}`, role: "img", "aria-label": title });
  const [left, right, bottom] = [SIZE.left, SIZE.width - SIZE.right, SIZE.height - SIZE.bottom];
  for (const one of accuracies) {
    svg.append(drawn("line", { x1: left, x2: right, y1: y(one), y2: y(one), class: "axis" }));
    svg.append(drawn("text", { x: left - 6, y: y(one) + 4, "text-anchor": "end" }, `${Math.round(100 * one)} %`));
  }
  for (const one of labels) svg.append(drawn("text", { x: x(one), y: bottom + 16, "text-anchor": "middle" }, one.toLocaleString("en")));
  svg.append(drawn("text", { x: (left + right) / 2, y: SIZE.height - 4, "text-anchor": "middle" }, "labels, one by one"));
  svg.append(drawn("polyline", { points: curve.map((one) => `${x(one.labels).toFixed(1)},${y(one.accuracy).toFixed(1)}`).join(" ") }));
  const now = curve.at(-1);
  svg.append(drawn("circle", { cx: x(now.labels).toFixed(1), cy: y(now.accuracy).toFixed(1), r: 3.5 }));
  return svg;
}
