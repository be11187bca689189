/** Classify inputs with an exported model, in Node and in browsers, without a build step.
 *
 *     import * as ort from "onnxruntime-web";
 *     import { load } from "./imprint.mjs";
 *
 *     const model = await load(ort, new URL(".", import.meta.url));
 *     console.log(await model.classify(await model.read(file)));
 */

/** The model in a folder, given by its address. */
export async function load(ort, folder, options = {}) {
  const facts = JSON.parse(new TextDecoder().decode(await bytes(new URL("model.json", folder))));
  const preparation = await import(new URL(`prepare_${facts.modality}.mjs`, folder).href);
  const prepare = await preparation.preparation(facts, (name) => bytes(new URL(name, folder)));
  const graph = await bytes(new URL("model.onnx", folder));
  const session = await ort.InferenceSession.create(graph, options);
  return new Model(ort, facts, preparation, prepare, session);
}

/** The bytes of a file of the folder. */
async function bytes(url) {
  if (url.protocol === "file:") {
    const { readFile } = await import("node:fs/promises");
    return new Uint8Array(await readFile(url));
  }
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${answer.statusText}`);
  return new Uint8Array(await answer.arrayBuffer());
}

class Model {
  #ort; #prepare; #preparation; #session;

  constructor(ort, facts, preparation, prepare, session) {
    this.facts = facts;
    this.#ort = ort;
    this.#preparation = preparation;
    this.#prepare = prepare;
    this.#session = session;
  }

  /** A Blob, a file or a text as `classify` takes it. */
  read(input) {
    return this.#preparation.read(input);
  }

  /** The outputs of the graph for one input, such as `probabilities`, as lists. */
  async outputs(item) {
    const { type, data, shape } = this.#prepare(item);
    const input = new this.#ort.Tensor(type, data, [1, ...shape]);
    const results = await this.#session.run({ [this.#session.inputNames[0]]: input });
    const lists = Object.entries(results).map(([name, tensor]) => [name, Array.from(tensor.data)]);
    return Object.fromEntries(lists);
  }

  /** The prediction for one input.
   *
   * `label` is null if the p-value `known` is below `unknown`. A model of tags answers with
   * `labels`, those that the input has, the most probable first.
   */
  async classify(item, { unknown = null, top = 3 } = {}) {
    const { scores, probabilities, known: values, labels } = await this.outputs(item);
    const { classes, tags } = this.facts;
    const known = values ? values[0] : null;
    const isUnknown = unknown !== null && known !== null && known < unknown;
    // the first one if several share the largest score
    const winner = scores.indexOf(Math.max(...scores));
    const order = probabilities.map((_, i) => i).sort((i, j) => probabilities[j] - probabilities[i]);
    const best = order.slice(0, top).map((i) => ({ label: classes[i], probability: probabilities[i] }));
    const answer = { label: isUnknown ? null : classes[winner], probability: best[0].probability, known, top: best };
    if (tags) {
      const present = order.filter((i) => Number(labels[i]) && !isUnknown);
      answer.labels = present.map((i) => classes[i]);
      answer.label = answer.labels[0] ?? null;
    }
    return answer;
  }
}
