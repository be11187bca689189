/** Numbers and counts as people read them. */

export function percent(share) {
  if (share > 0.9995 && share < 1) return ">\u00a099.9\u00a0%";
  if (share > 0 && share < 0.001) return "<\u00a00.1\u00a0%";
  return `${(100 * share).toFixed(share >= 0.9995 || share === 0 ? 0 : 1)}\u00a0%`;
}

export function count(n, noun) {
  const plural = /(s|x|ch|sh)$/.test(noun) ? `${noun}es` : `${noun}s`;
  return `${n.toLocaleString("en")} ${n === 1 ? noun : plural}`;
}

export function weight(value, measure) {
  return measure === "weight" ? `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}` : value.toFixed(2);
}

/** How familiar something looks, from its p-value; null before anything was judged. */
export function familiarity(known) {
  if (known === null) return { word: "Not judged yet", detail: "It says “none of these” once some pictures were judged." };
  const share = percent(known);
  if (known < 0.05) return { word: "None of these", detail: `Only ${share} of what was taught looks as unusual as this.` };
  if (known < 0.1) return { word: "Unusual", detail: `${share} of what was taught looks as unusual as this.` };
  return { word: "Familiar", detail: `${share} of what was taught looks as unusual as this or more.` };
}

export function advice(one, noun) {
  if (one.kind === "class") return "Teach at least two classes: one alone is the answer to everything.";
  if (one.kind === "few") return `Add ${noun}s of ${one.label}: it has ${one.count === 0 ? "none" : `only ${one.count}`}.`;
  return `Add ${noun}s of ${one.label}: ${percent(1 - one.recall)} of them are missed, most are taken for ${one.with}.`;
}
