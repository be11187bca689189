import assert from "node:assert/strict";
import { test } from "node:test";
import { byConfusion, byRecall, confusedPairs, neighbour, shortName, shortNames } from "../../src/imprint/evaluation/page/web/matrix.js";

const confusion = [
  [9, 0, 0, 1, 0],
  [0, 10, 0, 0, 0],
  [0, 0, 6, 0, 4],
  [2, 0, 0, 8, 0],
  [0, 0, 0, 0, 10],
];

test("pairs are those of different classes, the most rows first", () => {
  assert.deepEqual(confusedPairs(confusion), [{ truth: 2, answer: 4, rows: 4 }, { truth: 3, answer: 0, rows: 2 }, { truth: 0, answer: 3, rows: 1 }]);
});

test("confused classes stand together, and every class is there once", () => {
  const order = byConfusion(confusion);
  assert.deepEqual([...order].sort(), [0, 1, 2, 3, 4]);
  assert.equal(Math.abs(order.indexOf(2) - order.indexOf(4)), 1);
  assert.equal(Math.abs(order.indexOf(0) - order.indexOf(3)), 1);
  assert.equal(order.at(-1), 1, "a class without mistakes comes last");
  assert.deepEqual(byConfusion([[3, 0], [0, 3]]), [0, 1]);
});

test("the class with the lowest recall comes first, one without rows last", () => {
  assert.equal(byRecall(confusion)[0], 2);
  assert.equal(byRecall([[0, 0], [1, 1]]).at(-1), 0);
});

test("arrow keys go to the nearest cell of the same line, else to that of another", () => {
  const cells = [[0, 0], [0, 5], [1, 1], [3, 0]].map(([row, column]) => ({ row, column }));
  assert.deepEqual(neighbour(cells, cells[0], "ArrowRight"), cells[1]);
  assert.deepEqual(neighbour(cells, cells[0], "ArrowDown"), cells[3]);
  assert.deepEqual(neighbour(cells, cells[2], "ArrowUp"), cells[0]);
  assert.equal(neighbour(cells, cells[0], "ArrowLeft"), null);
  assert.equal(neighbour(cells, cells[0], "Enter"), null);
});

test("long names differ where they differ", () => {
  assert.equal(shortName("part number of the delivered good", 18), "part num…ered good");
  assert.deepEqual(shortNames(["species 001 of a bird", "species 002 of a bird", "cat"], 11), ["…1 of a bird", "…2 of a bird", "cat"].map((one) => (one.length > 11 ? `${one.slice(0, 10)}…` : one)));
  assert.equal(shortName("cat", 11), "cat");
  assert.equal([...shortName("😀".repeat(20), 11)].length, 11);
});
