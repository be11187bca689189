// The confusion matrix of all classes, by rows of classes and columns of predictions. It has no imports, so that the page of
// `imprint serve` loads it too.

const SIZES = [8, 14, 24, 34, 44]; // pixels of a cell; below 24, numbers do not fit
const NUMBERS = 24;
const NAMES = 13; // pixels below which names of classes do not fit
const WIDE = 18; // characters of a name
const NARROW = 11; // on a phone
const FEW = 12; // classes whose cells are as large as a finger
const SOME = 26; // classes that fit a laptop with large cells

/** Pairs of classes by how many rows of the first are predicted as the second: [{truth, answer, rows}], most first. */
export function confusedPairs(confusion) {
  const pairs = confusion.flatMap((row, truth) => row.map((rows, answer) => ({ truth, answer, rows })));
  return pairs.filter((p) => p.truth !== p.answer && p.rows > 0).sort((a, b) => b.rows - a.rows);
}

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

/** An order in which classes that are confused stand together, those with the most mistakes first; the others keep theirs. */
export function byConfusion(confusion) {
  const links = new Map();
  const wrong = confusion.map(() => 0);
  for (const { truth, answer, rows } of confusedPairs(confusion)) {
    for (const [a, b] of [[truth, answer], [answer, truth]]) {
      if (!links.has(a)) links.set(a, new Map());
      links.get(a).set(b, (links.get(a).get(b) ?? 0) + rows);
      wrong[a] += rows;
    }
  }
  const left = new Set(links.keys());
  const order = [];
  const pull = new Map(); // how many rows a class shares with those that are placed
  while (left.size) {
    const rank = (c) => [pull.get(c) ?? 0, wrong[c]];
    const next = [...left].reduce((best, c) => {
      const [p, w] = rank(c);
      const [q, v] = rank(best);
      return p > q || (p === q && w > v) ? c : best;
    });
    left.delete(next);
    order.push(next);
    for (const [c, rows] of links.get(next)) pull.set(c, (pull.get(c) ?? 0) + rows);
  }
  return [...order, ...confusion.map((_, c) => c).filter((c) => !links.has(c))];
}

/** Classes by their recall, the lowest first; those without rows come last. */
export function byRecall(confusion) {
  const recall = confusion.map((row, c) => (sum(row) ? row[c] / sum(row) : 2));
  return confusion.map((_, c) => c).sort((a, b) => recall[a] - recall[b]);
}

/** Light enough that the number keeps a contrast of 4.5 in both colour schemes; a test measures it. */
export function shade(rows, all, right) {
  const strength = 0.1 + 0.25 * Math.sqrt(rows / Math.max(all, 1));
  return `rgba(var(--${right ? "right" : "wrong"}), ${strength.toFixed(3)})`;
}

/** A name cut to a maximum number of characters. It loses its middle, because the names of similar classes often begin alike. */
export function shortName(name, most) {
  const letters = [...name];
  if (letters.length <= most) return name;
  const end = Math.ceil((most - 1) / 2);
  return `${letters.slice(0, most - 1 - end).join("")}…${letters.slice(-end).join("")}`;
}

/** The names of classes, shortened; those that would look alike begin where they differ. */
export function shortNames(names, most) {
  const short = names.map((name) => shortName(name, most));
  const groups = new Map();
  short.forEach((name, i) => groups.set(name, [...(groups.get(name) ?? []), i]));
  for (const group of groups.values()) {
    if (group.length < 2) continue;
    let start = 0;
    while (group.every((i) => start < names[i].length && names[i][start] === names[group[0]][start])) start += 1;
    for (const i of group) {
      const rest = `…${names[i].slice(start)}`;
      short[i] = rest.length <= most ? rest : `${rest.slice(0, most - 1)}…`;
    }
  }
  return short;
}

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    // a policy may forbid style attributes, and not properties
    if (name === "style") for (const [key, text] of Object.entries(value)) node.style.setProperty(key, text);
    else if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== undefined && value !== null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** The nearest cell in the direction of an arrow key, in the same line if there is one; null at the edge. */
export function neighbour(cells, { row, column }, key) {
  const along = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[key];
  if (!along) return null;
  const steps = (cell) => (along[0] ? (cell.row - row) * along[0] : (cell.column - column) * along[1]);
  const aside = (cell) => Math.abs(along[0] ? cell.column - column : cell.row - row);
  const ahead = cells.filter((cell) => steps(cell) > 0);
  if (!ahead.length) return null;
  const cost = (cell) => steps(cell) + 1000 * Math.min(aside(cell), 1) + aside(cell);
  return ahead.reduce((best, cell) => (cost(cell) < cost(best) ? cell : best));
}

/**
 * The matrix with its controls. `open(truth, answer, rows)` is called for a chosen cell; without it, cells are not buttons.
 */
export function confusionMatrix({ classes, confusion }, open, title = "Confusion matrix") {
  const n = classes.length;
  const wrong = sum(confusedPairs(confusion).map((pair) => pair.rows));
  const orders = { name: () => classes.map((_, c) => c), confusion: () => byConfusion(confusion), recall: () => byRecall(confusion) };
  let order = n > SOME ? orders.confusion() : orders.name();
  let size = n <= FEW ? 44 : n <= SOME ? 34 : 24;
  const readout = make("p", { class: "cm-readout", "aria-live": "off" });
  const grid = make("div", { class: "cm" });
  const view = make("div", { class: "cm-view", tabindex: "0", role: "region", "aria-label": title }, grid);

  const words = ({ truth, answer, rows }) => `${rows.toLocaleString("en")} of ${classes[truth]} predicted as ${classes[answer]}`;
  const rest = () => { readout.textContent = wrong ? `${n.toLocaleString("en")} classes, ${wrong.toLocaleString("en")} mistakes.` : "There are no mistakes."; };

  function cell(truth, answer, row, column) {
    const rows = confusion[truth][answer];
    const right = truth === answer;
    const all = sum(confusion[truth]);
    const style = { "--x": String(column), "--y": String(row), "--shade": shade(rows, all, right) };
    const name = { class: right ? "right" : "err", style, "aria-label": words({ truth, answer, rows }), title: words({ truth, answer, rows }) };
    const say = () => { readout.textContent = `${words({ truth, answer, rows })}.`; };
    const shown = rows > 999 ? `${Math.floor(rows / 1000)}k` : String(rows);
    const node = open
      ? make("button", { ...name, type: "button", tabindex: "-1", click: () => { choose(node); open(truth, answer, rows); } }, make("span", {}, shown))
      : make("span", { ...name, role: "img" }, make("span", {}, shown));
    node.addEventListener("mouseenter", say);
    node.addEventListener("focus", say);
    return { node, row, column };
  }

  let cells = [];
  function choose(node) {
    for (const other of cells) {
      other.node.tabIndex = other.node === node ? 0 : -1;
      other.node.removeAttribute("aria-current");
    }
    node.setAttribute("aria-current", "true");
  }

  function draw() {
    const at = new Map(order.map((c, place) => [c, place]));
    cells = [];
    for (let truth = 0; truth < n; truth += 1) {
      for (let answer = 0; answer < n; answer += 1) {
        if (confusion[truth][answer]) cells.push(cell(truth, answer, at.get(truth), at.get(answer)));
      }
    }
    cells.sort((a, b) => a.row - b.row || a.column - b.column);
    if (open && cells.length) cells[0].node.tabIndex = 0;
    const longest = matchMedia("(max-width: 600px)").matches ? NARROW : WIDE;
    const short = shortNames(classes, longest);
    const names = (kind) => make("div", { class: kind, "aria-hidden": "true" }, ...order.map((c) => make("span", { title: classes[c] }, make("span", {}, short[c]))));
    grid.replaceChildren(make("div", { class: "cm-corner", "aria-hidden": "true" }), names("cm-columns"), names("cm-rows"),
      make("div", { class: "cm-cells", role: "group", "aria-label": `${title}: cells with rows` }, ...cells.map((one) => one.node)));
    resize();
    rest();
  }

  function resize() {
    grid.style.setProperty("--cell", `${size}px`);
    grid.style.setProperty("--n", String(n));
    grid.classList.toggle("cm-small", size < NUMBERS);
    grid.classList.toggle("cm-nameless", size < NAMES);
    smaller.disabled = size === SIZES[0];
    larger.disabled = size === SIZES.at(-1);
  }

  const zoom = (step) => () => { size = SIZES[Math.min(Math.max(SIZES.indexOf(size) + step, 0), SIZES.length - 1)]; resize(); };
  const smaller = make("button", { type: "button", "aria-label": "Smaller cells", click: zoom(-1) }, "−");
  const larger = make("button", { type: "button", "aria-label": "Larger cells", click: zoom(1) }, "+");
  const sort = make("select", { "aria-label": "Order of the classes", change: () => { order = orders[sort.value](); draw(); } },
    make("option", { value: "name" }, "by name"), make("option", { value: "confusion" }, "by confusion"), make("option", { value: "recall" }, "by recall"));
  sort.value = n > SOME ? "confusion" : "name";
  grid.addEventListener("keydown", (event) => {
    const here = cells.find((one) => one.node === document.activeElement);
    const next = here && neighbour(cells, here, event.key);
    if (!next) return;
    event.preventDefault();
    choose(next.node);
    next.node.focus();
  });
  draw();
  return make("div", { class: "confusion" }, make("div", { class: "cm-bar" }, make("span", {}, "Classes "), sort, smaller, larger, readout), view);
}
