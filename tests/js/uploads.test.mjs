import assert from "node:assert/strict";
import { test } from "node:test";
import { AT_ONCE, Uploads } from "../../src/imprint/serve/static/uploads.js";

const files = (n) => Array.from({ length: n }, (_, i) => ({ name: `${i}.jpg` }));
const pause = () => new Promise((resolve) => setTimeout(resolve, 1));

test("every file is sent once, a few at a time, and failures are counted", async () => {
  let now = 0;
  let most = 0;
  const sent = [];
  const uploads = new Uploads(async (file) => {
    most = Math.max(most, (now += 1));
    await pause();
    now -= 1;
    if (file.name === "7.jpg") throw new Error("Cannot read 7.jpg: not an image.");
    sent.push(file.name);
    return { id: 1, new: file.name !== "8.jpg", others: file.name === "9.jpg" ? [{ id: 7, label: "dog" }] : [] };
  }, () => {});
  const outcome = await uploads.push(files(40), "cat", "group");
  assert.equal(sent.length, 39);
  assert.equal(new Set(sent).size, 39);
  assert.ok(most <= AT_ONCE && most > 1, `${most} at once`);
  assert.deepEqual(outcome.conflicts, [{ id: 1, label: "cat", others: [{ id: 7, label: "dog" }] }]);
  assert.deepEqual([outcome.total, outcome.done, outcome.known, outcome.failed.map((one) => one.name)], [40, 40, 1, ["7.jpg"]]);
});

test("stop gives up what waits, and the next files start afresh", async () => {
  let sent = 0;
  const uploads = new Uploads(async (file, label, name, group, signal) => {
    await pause();
    if (signal.aborted) throw Object.assign(new Error("stopped"), { name: "AbortError" });
    sent += 1;
    if (sent === 10) uploads.stop();
    return { new: true };
  }, () => {});
  const stopped = await uploads.push(files(1000), "cat", "group");
  assert.ok(sent >= 10 && sent < 30, `${sent} sent`);
  assert.equal(stopped.failed.length, 0);
  const next = await uploads.push(files(3), "cat", "group");
  assert.equal(next.done, 3);
});

test("nothing to send ends at once", async () => {
  assert.equal((await new Uploads(async () => ({}), () => {}).push([], "cat", "")).total, 0);
});
