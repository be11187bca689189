/** Many files on their way to the server, a few at a time, with progress and a way to stop. */

export const AT_ONCE = 6;

export class Uploads {
  /** `send(content, label, name, group, signal, heldOut)` adds one; `report({done, total, failed, running})` is called after each. */
  constructor(send, report) {
    this.send = send;
    this.report = report;
    this.reset();
  }

  reset() {
    this.waiting = [];
    this.running = 0;
    this.done = 0;
    this.total = 0;
    this.failed = [];
    this.known = 0;
    this.conflicts = [];
    this.revision = null; // of the last addition, by which it can be undone
    this.stopping = new AbortController();
  }

  /** Add files to what is on its way; resolves once everything has ended. */
  push(files, label, group, heldOut = false) {
    if (!this.running && !this.waiting.length) this.reset();
    for (const file of files) this.waiting.push({ file, label, group, heldOut });
    this.total += files.length;
    this.#tell();
    const ended = new Promise((resolve) => { this.ended = [...(this.ended ?? []), resolve]; });
    for (let i = this.running; i < AT_ONCE; i += 1) this.#next();
    if (!this.running) this.#end();
    return ended;
  }

  /** Give up what has not been sent; what the server has acknowledged stays. */
  stop() {
    this.total -= this.waiting.length;
    this.waiting = [];
    this.stopping.abort();
    this.#tell();
  }

  async #next() {
    const one = this.waiting.shift();
    if (!one) return;
    this.running += 1;
    try {
      const outcome = await this.send(one.file, one.label, one.file.name ?? "text", one.group, this.stopping.signal, one.heldOut);
      if (outcome.new === false) this.known += 1;
      else this.revision = outcome.revision;
      if (outcome.others?.length) this.conflicts.push({ id: outcome.id, label: one.label, others: outcome.others });
    } catch (error) {
      if (error.name !== "AbortError") this.failed.push({ name: one.file.name ?? "text", reason: error.message, file: one.file, label: one.label });
    }
    this.running -= 1;
    this.done += 1;
    this.#tell();
    if (this.waiting.length) this.#next();
    else if (!this.running) this.#end();
  }

  #tell() {
    const { done, total, failed, known, running } = this;
    this.report({ done, total, failed, known, running: running + this.waiting.length });
  }

  #end() {
    const { done, total, failed, known, conflicts, revision } = this;
    (this.ended ?? []).forEach((resolve, i) => resolve({ done, total, failed, known, revision, conflicts: i ? [] : conflicts }));
    this.ended = [];
  }
}
