/** The alarm when inputs stop looking like the training data, with the inputs that show it. */

import { at, h } from "./dom.js";
import * as server from "./server.js";
import { checkDrift, store } from "./store.js";

export function showDrift() {
  const panel = at("drift");
  const { alarm, unfamiliar } = store.drift ?? { alarm: null };
  panel.hidden = !alarm;
  if (!alarm) { panel.replaceChildren(); return; }
  const one = ({ preview, name, when }) => {
    const title = `${name}, ${when}`;
    if (preview.startsWith("data:audio/")) return h("audio", { src: preview, controls: true, title });
    return preview.startsWith("data:") ? h("img", { src: preview, alt: name, title }) : h("blockquote", {}, preview);
  };
  panel.replaceChildren(
    h("p", {}, h("strong", {}, `${alarm[0].toUpperCase()}${alarm.slice(1)}.`)),
    h("p", { class: "muted" }, "The evidence is kept in memory: it starts again when the model changes or the server restarts."),
    h("div", { class: "row" }, unfamiliar.map(one)),
    h("button", { type: "button", id: "drift-restart", onclick: () => server.restartDrift().then(checkDrift) }, "Start again"));
}
