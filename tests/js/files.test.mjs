import assert from "node:assert/strict";
import { test } from "node:test";
import { byClass, isReadable } from "../../src/imprint/serve/static/files.js";

const given = (...paths) => paths.map((path) => ({ file: path.split("/").at(-1), path }));

const classes = (groups) => groups.map(({ label, heldOut, files }) => [heldOut ? `${label} held out` : label, files]);

test("the first folder below what all have in common names the class", () => {
  const groups = byClass(given("photos/cat/1.jpg", "photos/cat/deep/2.jpg", "photos/dog/3.jpg"), "loose");
  assert.deepEqual(classes(groups), [["cat", ["1.jpg", "2.jpg"]], ["dog", ["3.jpg"]]]);
});

test("one folder of images is one class, and loose files go where they were told", () => {
  assert.deepEqual(classes(byClass(given("cat/1.jpg", "cat/2.jpg"), "loose")), [["cat", ["1.jpg", "2.jpg"]]]);
  assert.deepEqual(classes(byClass(given("1.jpg", "2.jpg"), "loose")), [["loose", ["1.jpg", "2.jpg"]]]);
  assert.deepEqual(classes(byClass(given("cat/1.jpg", "2.jpg"), "loose")), [["cat", ["1.jpg"]], ["loose", ["2.jpg"]]]);
});

test("test images next to training images are held out", () => {
  const groups = byClass(given("set/train/cat/1.jpg", "set/train/dog/2.jpg", "set/test/cat/3.jpg", "set/val/dog/4.jpg"), "loose");
  assert.deepEqual(classes(groups), [["cat", ["1.jpg"]], ["dog", ["2.jpg"]], ["cat held out", ["3.jpg"]], ["dog held out", ["4.jpg"]]]);
});

test("files that the page does not read are recognised by their names", () => {
  const readable = (name) => isReadable(name, [".jpg", ".webp", ".png"]);
  assert.ok(readable("a.JPG") && readable("a.webp") && !readable("notes.txt") && !readable(".hidden.png") && !readable("Thumbs.db"));
});

test("nested folders are read as imprint fit reads them", () => {
  const labels = (...folders) => [...new Set(byClass(given(...folders.map((folder) => `photos/${folder}/1.jpg`)), "loose").map(({ label }) => label))];
  assert.deepEqual(labels("animal/cat", "animal/dog", "sky"), ["animal/cat", "animal/dog", "sky"]);
  assert.deepEqual(labels("cat/2023", "cat/2024", "dog/2023-05-01"), ["cat", "dog"]);
  assert.deepEqual(labels("cat/images", "dog/images"), ["cat", "dog"]);
  assert.deepEqual(labels("cat", "cat/old", "cat/new", "dog"), ["cat", "dog"]);
  assert.deepEqual(labels("train/animal/cat", "train/animal/dog", "train/sky", "test/sky"), ["animal/cat", "animal/dog", "sky"]);
});
