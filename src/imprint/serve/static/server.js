/** Requests to the server. */

async function answer(response) {
  if (response.ok) return response.json();
  const text = await response.text();
  let sentence = text.trim();
  try { sentence = JSON.parse(text).error ?? sentence; } catch { /* a plain sentence */ }
  throw new Error(sentence || `The server answered ${response.status}.`);
}

async function ask(path, options) {
  try {
    return await answer(await fetch(path, options));
  } catch (error) {
    if (error instanceof TypeError) throw new Error("The server does not answer; is imprint serve still running?");
    throw error;
  }
}

const query = (values) => new URLSearchParams(Object.entries(values).filter(([, value]) => value !== "")).toString();

export const projects = () => ask("/api/projects");
export const changeProjects = (entry) => ask("/api/projects", { method: "POST", body: JSON.stringify(entry), headers: { "content-type": "application/json" } });
export const state = () => ask("/api/state");
export const evaluation = () => ask("/api/evaluation");
export const change = (entry) => ask("/api/change", { method: "POST", body: JSON.stringify(entry), headers: { "content-type": "application/json" } });
export const importModel = (file) => ask(`/api/import?${query({ name: file.name })}`, { method: "POST", body: file });
export const sample = async () => {
  const response = await fetch("/api/sample");
  if (!response.ok) await answer(response);
  return new File([await response.blob()], "sample.zip");
};
export const add = (content, label, name, group = "", signal = undefined, heldOut = false) =>
  ask(`/api/items?${query({ label, name, group, held_out: heldOut ? 1 : "" })}`, { method: "POST", body: content, signal, headers: { "content-type": "application/octet-stream" } });
export const predict = (content, name, top, submitted) =>
  ask(`/api/predict?${query({ name, top, why: 1, preview: 1, drift: submitted ? "" : 0 })}`, { method: "POST", body: content, headers: { "content-type": "application/octet-stream" } })
    .then(([answer]) => answer);

export const explain = (content, name) =>
  ask(`/api/explain?${query({ name })}`, { method: "POST", body: content, headers: { "content-type": "application/octet-stream" } });

/** The pool of this page: the server may have inputs of other pages, whose files are not here. */
const session = crypto.randomUUID();
export const addToPool = (content, name, signal) =>
  ask(`/api/pool?${query({ name, session })}`, { method: "POST", body: content, signal, headers: { "content-type": "application/octet-stream" } });
export const nextInPool = (n) => ask(`/api/pool/next?${query({ n, session })}`);
export const skipInPool = (digest, skip) => ask("/api/pool/skip", { method: "POST", body: JSON.stringify({ digest, skip }), headers: { "content-type": "application/json" } });
export const confidentInPool = (probability) => ask(`/api/pool/confident?${query({ probability })}`);
export const drift = () => ask("/api/drift");
export const restartDrift = () => ask("/api/drift", { method: "POST" });
export const shown = (item, kind) => `/api/items/${item.id}/${kind}?v=${item.digest}`;
