/** The alarm when inputs stop looking like the training data, with the inputs that show it. */

import { at, h } from "./dom.js";
import * as server from "./server.js";
import { checkDrift, store } from "./store.js";

export function showDrift() {
  const place = at("drift");
  const { alarm, unfamiliar } = store.drift ?? { alarm: null };
  place.hidden = !alarm;
  if (!alarm) { place.replaceChildren(); return; }
  const one = (odd) => odd.preview.startsWith("data:") ? h("img", { src: odd.preview, alt: odd.name, title: `${odd.name}, ${odd.when}` }) : h("blockquote", {}, odd.preview);
  place.replaceChildren(
    h("p", {}, h("strong", {}, `${alarm[0].toUpperCase()}${alarm.slice(1)}.`)),
    h("div", { class: "row" }, unfamiliar.map(one)),
    h("button", { type: "button", id: "drift-restart", onclick: () => server.restartDrift().then(checkDrift) }, "Start again"));
}
