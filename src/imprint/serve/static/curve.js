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

/** The points of an SVG polyline, from 0 labels on the left and accuracy 0 at the bottom. */
export function points(curve, width, height) {
  const most = Math.max(...curve.map((one) => one.labels), 1);
  return curve.map((one) => `${((width * one.labels) / most).toFixed(1)},${(height * (1 - one.accuracy)).toFixed(1)}`).join(" ");
}
