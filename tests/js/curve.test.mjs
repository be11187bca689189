import assert from "node:assert/strict";
import test from "node:test";
import { accuracyAt, gain, points } from "../../src/imprint/serve/static/curve.js";

const curve = [{ labels: 10, accuracy: 0.5 }, { labels: 20, accuracy: 0.7 }, { labels: 40, accuracy: 0.702 }];

test("the accuracy is that of the last evaluation", () => {
  assert.equal(accuracyAt(curve, 25), 0.7);
  assert.equal(accuracyAt(curve, 5), null);
});

test("a small gain is stated and marked", () => {
  assert.deepEqual(gain(curve), { text: "The last 20 labels gained 0.2 points. More labels hardly help.", flat: true });
  assert.deepEqual(gain([{ labels: 10, accuracy: 0.5 }, { labels: 30, accuracy: 0.6 }]), { text: "The last 20 labels gained 10.0 points.", flat: false });
  assert.deepEqual(gain(curve.slice(0, 1)), { text: "", flat: false });
  assert.deepEqual(gain([]), { text: "", flat: false });
});

test("points span the image", () => {
  assert.equal(points(curve, 40, 10), "10.0,5.0 20.0,3.0 40.0,3.0");
});
