import assert from "node:assert/strict";
import { test } from "node:test";

/** As much of a document as the panel needs. */
function element(tag) {
  return {
    tag, attributes: {}, children: [], dataset: {},
    setAttribute(name, value) { this.attributes[name] = value; },
    addEventListener() {},
    append(...children) { this.children.push(...children); },
    replaceChildren(...children) { this.children = children; },
  };
}
const panel = element("section");
globalThis.document = { createElement: element, getElementById: () => panel };
const { showDrift } = await import("../../src/imprint/serve/static/drift.js");
const { store } = await import("../../src/imprint/serve/static/store.js");

test("unfamiliar inputs are shown as what they are", () => {
  for (const [preview, tag] of [["data:image/jpeg;base64,AA", "img"], ["data:audio/wav;base64,AA", "audio"], ["a text", "blockquote"]]) {
    store.drift = { alarm: "inputs since Monday look unlike the training data", unfamiliar: [{ preview, name: "a", when: "Monday" }] };
    showDrift();
    assert.equal(panel.children[2].children[0].tag, tag);
  }
});
