/** Texts as tokens: WordPiece, as the package `tokenizers` does it for BERT. */

/** A text as it is. */
export const read = (text) => text;

/** The function from a text to the input of the graph. */
export async function preparation(facts, bytes) {
  const stored = JSON.parse(new TextDecoder().decode(await bytes("tokenizer.json")));
  const tokenizer = new Tokenizer(stored, facts.text);
  return (text) => {
    const ids = tokenizer.encode(text);
    return { type: "int64", data: BigInt64Array.from(ids, BigInt), shape: [ids.length] };
  };
}

/** Whether a character is in a set, given as sorted pairs of its first and last numbers. */
function includes(ranges, character) {
  const number = character.codePointAt(0);
  let [low, high] = [0, ranges.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ranges[middle][0] <= number) low = middle + 1;
    else high = middle;
  }
  return low > 0 && number <= ranges[low - 1][1];
}

/** A WordPiece tokenizer, from `tokenizer.json` and the facts about its text. */
export class Tokenizer {
  constructor({ model, added_tokens }, facts) {
    this.vocabulary = new Map(Object.entries(model.vocab));
    this.unknown = this.vocabulary.get(model.unk_token);
    this.prefix = model.continuing_subword_prefix;
    this.longest = model.max_input_chars_per_word;
    this.special = new Map(added_tokens.map(({ content, id }) => [content, id]));
    const names = [...this.special.keys()].sort((a, b) => b.length - a.length);
    this.split = new RegExp(`(${names.map((name) => name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|")})`);
    this.facts = facts;
    this.length = facts.tokens - facts.before.length - facts.after.length;
  }

  /** The numbers of the tokens of a text; the end of a long one is cut off. */
  encode(text) {
    const ids = [];
    const beginning = Array.from(text).slice(0, this.facts.characters).join("");
    for (const part of beginning.split(this.split)) {
      if (this.special.has(part)) ids.push(this.special.get(part));
      else for (const word of this.words(part)) ids.push(...this.pieces(word));
    }
    return [...this.facts.before, ...ids.slice(0, this.length), ...this.facts.after];
  }

  /** The words and signs of a text, in small letters and without accents. */
  words(text) {
    const words = [];
    let word = "";
    for (const character of text.normalize("NFD")) {
      if (includes(this.facts.dropped, character)) continue;
      const isSpace = includes(this.facts.space, character);
      const isSign = includes(this.facts.isolated, character);
      if ((isSpace || isSign) && word) {
        words.push(word);
        word = "";
      }
      if (isSign) words.push(character);
      else if (!isSpace) word += character.toLowerCase();
    }
    return word ? [...words, word] : words;
  }

  /** The longest pieces of a word in the vocabulary, from left to right. */
  pieces(word) {
    const characters = Array.from(word);
    if (characters.length > this.longest) return [this.unknown];
    const ids = [];
    for (let start = 0; start < characters.length; ) {
      let end = characters.length;
      let id;
      for (; end > start && id === undefined; end--) {
        id = this.vocabulary.get((start ? this.prefix : "") + characters.slice(start, end).join(""));
      }
      if (id === undefined) return [this.unknown];
      ids.push(id);
      start = end + 1; // the loop has moved beyond the piece
    }
    return ids;
  }
}
