import assert from "node:assert/strict";
import { test } from "node:test";
import { advice, count, familiarity, percent, weight } from "../../src/imprint/serve/static/words.js";

test("shares never round to certainty", () => {
  assert.deepEqual([1, 0.99996, 0.9994, 0.5, 0.0004, 0].map(percent).map((text) => text.replaceAll("\u00a0", " ")), ["100 %", "> 99.9 %", "99.9 %", "50.0 %", "< 0.1 %", "0 %"]);
});

test("counts and weights read as people write them", () => {
  assert.deepEqual([count(1, "class"), count(2000, "class"), count(3, "picture")], ["1 class", "2,000 classes", "3 pictures"]);
  assert.deepEqual([weight(0.294, "weight"), weight(-0.1, "weight"), weight(0.5, "distance")], ["+0.29", "−0.10", "0.50"]);
});

test("what is not known is called none of these, and nothing is said before there is a judgement", () => {
  assert.deepEqual([0.01, 0.07, 0.6, null].map((p) => familiarity(p).word), ["None of these", "Unusual", "Familiar", "Not judged yet"]);
  assert.match(advice({ kind: "confused", label: "cat", with: "dog", recall: 0.75 }, "picture"), /cat: 25\.0\u00a0% of them are missed, most are taken for dog/);
});
