/** Numbers, counts and sentences for people. */

/** A share as everywhere in imprint: it never rounds to certainty. */
export function percent(share) {
  if (share >= 0.9995 && share < 1) return ">\u00a099.9\u00a0%";
  if (share > 0 && share < 0.0005) return "<\u00a00.1\u00a0%";
  return `${(100 * share).toFixed(1)}\u00a0%`;
}

export function count(n, noun) {
  const plural = noun.endsWith("s") ? `${noun}es` : `${noun}s`;
  return `${n.toLocaleString("en")} ${n === 1 ? noun : plural}`;
}

/** A noun with its article. */
export const article = (noun) => `${/^[aeiou]/i.test(noun) ? "an" : "a"} ${noun}`;

export function contribution(value, measure) {
  return measure === "weight" ? `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}` : value.toFixed(2);
}

/** The answer in a few words; `label` is null if the input is out-of-distribution. */
export const answered = ({ label, node, top }) => label ?? (node ? `${node.label} (kind unknown; closest: ${top[0].label})` : `None of these (closest: ${top[0].label})`);

/**
 * Whether an input is out-of-distribution, from its p-value, which is null if the model is not calibrated. With too few
 * examples no p-value can be small: `missing` is how many more are needed, at least.
 */
export function familiarity(known, noun, missing = 0) {
  if (known === null) return { word: "Not calibrated", detail: "Probabilities are not calibrated, and “none of these” is never answered. The tab Evaluate says why." };
  if (missing) return { word: "Cannot tell yet", detail: `Needs ${missing} more ${missing === 1 ? noun : `${noun}s`}: with so few examples, “none of these” is never answered.` };
  const share = percent(known);
  if (known < 0.05) return { word: "None of these", detail: `Only ${share} of your ${noun}s look at least this unusual (p-value ${known.toPrecision(2)}).` };
  if (known < 0.1) return { word: "Unusual", detail: `${share} of your ${noun}s look at least this unusual (p-value ${known.toPrecision(2)}).` };
  return { word: "Familiar", detail: `${share} of your ${noun}s look at least this unusual (p-value ${known.toPrecision(2)}).` };
}

export const P_VALUE = "The p-value is the share of your examples that look at least as unusual as this input. Below 5 % the answer is “none of these”. About 5 % of the inputs that do belong to a class are rejected as well (measured: 4 to 6 % of inputs like the examples, 1 to 19 % of others).";
export const CONTRIBUTION = "The contribution is what an example adds to the score of the predicted class: positive values support it, negative ones oppose it.";

export function advice(one, noun) {
  if (one.kind === "class") return "Add a second class: with one class, every answer is that class.";
  if (one.kind === "few") return `Add ${noun}s of ${one.label}: it has ${one.count === 0 ? "none" : `only ${one.count}`}.`;
  return `Add ${noun}s of ${one.label} (recall ${percent(one.recall)}): most mistakes are predicted as ${one.with}.`;
}
