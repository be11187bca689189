import assert from "node:assert/strict";
import { test } from "node:test";
import { matching, offered } from "../../src/imprint/serve/static/choices.js";

const birds = Array.from({ length: 200 }, (_, i) => `bird ${String(i).padStart(3, "0")}`);
const names = (choices) => choices.map((one) => (one.fresh ? `+${one.label}` : one.label));

test("up to five classes keep their keys", () => {
  assert.deepEqual(offered(["a", "b", "c"], ["c", "a"], ["b"]), ["a", "b", "c"]);
});

test("of many classes the most probable are offered, then those used last", () => {
  assert.deepEqual(offered(birds, ["bird 150", "bird 007"], ["bird 007", "bird 099"]), ["bird 150", "bird 007", "bird 099", "bird 000", "bird 001"]);
  assert.equal(offered(birds, ["gone"], []).length, 5);
});

test("a typed text filters, and the best match comes first", () => {
  assert.deepEqual(names(matching(birds, [], [], "bird 19")).slice(0, 2), ["bird 190", "bird 191"]);
  assert.deepEqual(names(matching(birds, [], [], "117")), ["bird 117", "+117"]);
  assert.deepEqual(names(matching(["cart", "car", "scar"], [], [], "car")), ["car", "cart", "scar"]);
  assert.deepEqual(names(matching(["Älster", "Elster"], [], [], "als")), ["Älster", "+als"]);
  assert.deepEqual(names(matching(["bird species 12", "fish 12"], [], [], "bi 1")), ["bird species 12", "+bi 1"]);
  assert.deepEqual(names(matching(["b x", "b y"], ["b y"], [], "b")), ["b y", "b x", "+b"]);
});

test("a new name is a new class", () => {
  assert.deepEqual(names(matching(birds, [], [], " crow ")), ["+crow"]);
});
