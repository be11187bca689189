import assert from "node:assert/strict";
import { test } from "node:test";
import { byClass, isReadable } from "../../src/imprint/serve/static/files.js";

const given = (...paths) => paths.map((path) => ({ file: path.split("/").at(-1), path }));

const classes = (groups) => groups.map(({ label, heldOut, files }) => [heldOut ? `${label} held out` : label, files]);

test("the first folder below what all have in common names the class", () => {
  const groups = byClass(given("photos/cat/1.jpg", "photos/cat/deep/2.jpg", "photos/dog/3.jpg"), "loose");
  assert.deepEqual(classes(groups), [["cat", ["1.jpg", "2.jpg"]], ["dog", ["3.jpg"]]]);
});

test("one folder of pictures is one class, and loose files go where they were told", () => {
  assert.deepEqual(classes(byClass(given("cat/1.jpg", "cat/2.jpg"), "loose")), [["cat", ["1.jpg", "2.jpg"]]]);
  assert.deepEqual(classes(byClass(given("1.jpg", "2.jpg"), "loose")), [["loose", ["1.jpg", "2.jpg"]]]);
  assert.deepEqual(classes(byClass(given("cat/1.jpg", "2.jpg"), "loose")), [["cat", ["1.jpg"]], ["loose", ["2.jpg"]]]);
});

test("test pictures next to training pictures are held out", () => {
  const groups = byClass(given("set/train/cat/1.jpg", "set/train/dog/2.jpg", "set/test/cat/3.jpg", "set/val/dog/4.jpg"), "loose");
  assert.deepEqual(classes(groups), [["cat", ["1.jpg"]], ["dog", ["2.jpg"]], ["cat held out", ["3.jpg"]], ["dog held out", ["4.jpg"]]]);
});

test("files that the page does not read are recognised by their names", () => {
  const readable = (name) => isReadable(name, [".jpg", ".webp", ".png"]);
  assert.ok(readable("a.JPG") && readable("a.webp") && !readable("notes.txt") && !readable(".hidden.png") && !readable("Thumbs.db"));
});
