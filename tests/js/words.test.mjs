import assert from "node:assert/strict";
import { test } from "node:test";
import { advice, answered, contribution, count, familiarity, percent } from "../../src/imprint/serve/static/words.js";

test("shares never round to certainty", () => {
  assert.deepEqual([1, 0.99996, 0.9994, 0.5, 0.0004, 0].map(percent).map((text) => text.replaceAll("\u00a0", " ")), ["100.0 %", "> 99.9 %", "99.9 %", "50.0 %", "< 0.1 %", "0.0 %"]);
});

test("counts and weights read as people write them", () => {
  assert.deepEqual([count(1, "class"), count(2000, "class"), count(3, "image")], ["1 class", "2,000 classes", "3 images"]);
  assert.deepEqual([contribution(0.294, "weight"), contribution(-0.1, "weight"), contribution(0.5, "distance")], ["+0.29", "−0.10", "0.50"]);
});

test("an input that is unlike all classes is none of these, with the closest class and its p-value", () => {
  assert.deepEqual([0.01, 0.07, 0.6, null].map((p) => familiarity(p, "image").word), ["None of these", "Unusual", "Familiar", "Not calibrated"]);
  assert.match(familiarity(0.012, "image").detail, /Only 1\.2\u00a0% of your images .*p-value 0\.012/);
  assert.equal(answered({ label: null, top: [{ label: "llama", probability: 0.865 }] }), "None of these (closest: llama)");
  assert.equal(answered({ label: null, node: { label: "animal", probability: 0.97 }, top: [{ label: "animal/cat", probability: 0.5 }] }), "animal (kind unknown; closest: animal/cat)");
  assert.equal(answered({ label: null, node: null, top: [{ label: "animal/cat", probability: 0.5 }] }), "None of these (closest: animal/cat)");
  assert.equal(answered({ label: "cat", top: [{ label: "cat", probability: 0.9 }] }), "cat");
  assert.match(advice({ kind: "confused", label: "cat", with: "dog", recall: 0.75 }, "image"), /cat \(recall 75\.0\u00a0%\): most mistakes are predicted as dog/);
});
