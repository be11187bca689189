/** Which classes the tab Label offers on the keys 1 to 5. */

export const SLOTS = 5;

/** The most probable classes, then those that were used last, then the others; up to five classes keep their order. */
export function offered(labels, top, recent) {
  if (labels.length <= SLOTS) return [...labels];
  const present = new Set(labels);
  const order = [...top, ...recent, ...labels].filter((label) => present.has(label));
  return [...new Set(order)].slice(0, SLOTS);
}

const simple = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().trim();

/**
 * The choices for a typed text, as {label, fresh}: classes that begin with it, then those with words that begin
 * with its words, then those that contain it, the most probable first; a new class of this name comes last, unless one has the name.
 */
export function matching(labels, top, recent, typed) {
  const wanted = simple(typed);
  const likely = [...top, ...recent];
  const rank = (label) => {
    const name = simple(label);
    if (name === wanted) return 0;
    if (name.startsWith(wanted)) return 1;
    const words = name.split(/[\s_/-]+/);
    const begins = wanted.split(/\s+/).every((part) => words.some((word) => word.startsWith(part)));
    return begins ? 2 : name.includes(wanted) ? 3 : 4;
  };
  const place = (label) => { const i = likely.indexOf(label); return i < 0 ? likely.length : i; };
  const found = labels.filter((label) => rank(label) < 4)
    .sort((a, b) => rank(a) - rank(b) || place(a) - place(b) || a.localeCompare(b))
    .map((label) => ({ label, fresh: false }));
  const exact = found.length > 0 && rank(found[0].label) === 0;
  return exact ? found.slice(0, SLOTS) : [...found.slice(0, SLOTS - 1), { label: typed.trim(), fresh: true }];
}
