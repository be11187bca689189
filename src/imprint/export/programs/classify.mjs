/** Classify inputs with the model in this folder: node classify.mjs INPUT... [--unknown 0.05]
 *
 * npm install, in this folder, fetches what it needs.
 */

import { parseArgs } from "node:util";
import * as ort from "onnxruntime-web";
import { load } from "./imprint.mjs";

const { values, positionals } = parseArgs({ allowPositionals: true, options: { unknown: { type: "string" } } });
const unknown = values.unknown === undefined ? null : Number(values.unknown);
ort.env.wasm.numThreads = 1; // in Node, more threads keep the process alive
const model = await load(ort, new URL(".", import.meta.url));
for (const name of positionals) {
  const answer = await model.classify(await model.read(name), { unknown });
  console.log(JSON.stringify({ path: name, ...answer }));
}
