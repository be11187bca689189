// A bar for every class.

import { element } from "./dom.js";
import { percent } from "./numbers.js";

// entries: [{name, share, note}] with share from 0 to 1, or null where there is nothing to measure
export function bars(entries) {
  const cells = entries.flatMap(({ name, share, note }) => [
    element("span", { class: "name", title: name }, name),
    element("span", { class: "track" }, element("span", { class: "bar", style: `width:${100 * (share ?? 0)}%` })),
    element("span", { class: "value" }, percent(share, 0), element("small", {}, ` ${note}`)),
  ]);
  return element("div", { class: "bars" }, cells);
}
