// How numbers are written, and the colours of classes.

export function percent(share, digits = 1) {
  return share === null ? "–" : `${(100 * share).toFixed(digits)} %`;
}

export function count(n, noun, plural = `${noun}s`) {
  return `${n.toLocaleString("en")} ${n === 1 ? noun : plural}`;
}

export function colour(index) {
  const hue = (210 + 137.508 * index) % 360;
  return `hsl(${hue.toFixed(1)} ${index % 2 ? 62 : 75}% ${[52, 42, 62][index % 3]}%)`;
}
