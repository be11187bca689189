import assert from "node:assert/strict";
import test from "node:test";
import { accuracyAt, gain, lowest, scales, ticks } from "../../src/imprint/serve/static/curve.js";

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

test("the axes have round numbers and hold the whole curve", () => {
  assert.deepEqual(ticks(40), [0, 10, 20, 30, 40]);
  assert.deepEqual(ticks(3), [0, 1, 2, 3]);
  assert.deepEqual(ticks(130), [0, 50, 100, 150]);
  assert.equal(lowest(curve), 0.5 - 0.1);
  const { x, y, labels, accuracies } = scales(curve);
  assert.ok(labels.at(-1) >= 40);
  assert.ok(x(10) < x(40) && x(40) <= x(labels.at(-1)));
  assert.ok(y(0.7) < y(0.5), "a higher accuracy is higher");
  assert.equal(accuracies.at(-1), 1);
});
