// How numbers are written, and the colours of classes.

// A share never rounds to certainty: 0.9999 is > 99.9 %, and with no digits 0.999 is > 99 %.
export function percent(share, digits = 1) {
  if (share === null) return "–";
  const unit = 10 ** -digits;
  const half = unit / 200;
  if (share < 1 && share >= 1 - half) return `> ${(100 - unit).toFixed(digits)} %`;
  if (share > 0 && share < half) return `< ${unit.toFixed(digits)} %`;
  return `${(100 * share).toFixed(digits)} %`;
}

export function count(n, noun, plural = `${noun}s`) {
  return `${n.toLocaleString("en")} ${n === 1 ? noun : plural}`;
}

export function colour(index) {
  const hue = (210 + 137.508 * index) % 360;
  return `hsl(${hue.toFixed(1)} ${index % 2 ? 62 : 75}% ${[52, 42, 62][index % 3]}%)`;
}
