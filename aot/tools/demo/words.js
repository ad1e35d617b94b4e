// Texts to numbers of tokens and back, as facts.words says: by letters for bytes, by spaces, or by pieces of words.
const LETTERS = Array.from({ length: 256 }, (_, byte) => byte);
{
  const plain = LETTERS.filter((b) => (b > 32 && b < 127) || (b > 160 && b !== 173));
  let next = 256;
  LETTERS.forEach((b) => (LETTERS[b] = String.fromCodePoint(plain.includes(b) ? b : next++)));
}
const BYTES = new Map(LETTERS.map((letter, byte) => [letter, byte]));
const SPACE = "\u2581";
const HAN = /[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u{20000}-\u{2fa1f}]/gu;
const SIGNS = "\\p{P}!-\\/:-@\\[-`{-~";
const PARTS = new RegExp(`[${SIGNS}]|[^\\s${SIGNS}]+`, "gu");
const utf8 = (text) => [...new TextEncoder().encode(text)];

/** Join the two neighbours of the least rank, the first of equal ones, until no neighbours have a rank. */
function joined(letters, rank) {
  const parts = [...letters];
  const ranks = parts.slice(1).map((right, k) => rank(parts[k], right));
  for (;;) {
    let best = -1;
    ranks.forEach((one, k) => (best = one < (ranks[best] ?? Infinity) ? k : best));
    if (best < 0) return parts;
    parts.splice(best, 2, parts[best] + parts[best + 1]);
    ranks.splice(best, 1);
    if (best > 0) ranks[best - 1] = rank(parts[best - 1], parts[best]);
    if (best < ranks.length) ranks[best] = rank(parts[best], parts[best + 1]);
  }
}

/** Cut a text at what a pattern finds, and keep that. */
function cut(text, pattern) {
  const found = [];
  let end = 0;
  for (const { 0: piece, index } of text.matchAll(pattern)) {
    found.push(text.slice(end, index), piece);
    end = index + piece.length;
  }
  return [...found, text.slice(end)].filter(Boolean);
}

const KINDS = {
  letters: (words, text) => {
    const pieces = words.patterns.reduce((pieces, pattern) => pieces.flatMap((piece) => cut(piece, pattern)), [(text[0] === " " ? "" : words.prefix) + text]);
    return pieces.flatMap((piece) => {
      const letters = utf8(piece).map((byte) => LETTERS[byte]);
      if (words.whole && words.ids.has(letters.join(""))) return words.ids.get(letters.join(""));
      return joined(letters, words.rank).flatMap((part) => words.ids.get(part) ?? [...part].flatMap((one) => words.ids.get(one) ?? []));
    });
  },
  spaces: (words, text) => {
    const found = [];
    for (const part of joined((words.prefix + text).replaceAll(" ", SPACE), words.rank)) {
      const bytes = () => utf8(part).map((byte) => words.ids.get(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`));
      const tokens = words.ids.has(part) ? [words.ids.get(part)] : bytes();
      if (!tokens.includes(undefined)) found.push(...tokens);
      else if (words.unknown !== null && found.at(-1) !== words.unknown) found.push(words.unknown);
    }
    return found;
  },
  pieces: (words, text) => {
    let clean = text.replace(/[\p{Cc}\p{Cf}\ufffd]/gu, (one) => (/\s/.test(one) ? " " : "")).replace(HAN, " $& ");
    if (words.lower) clean = clean.toLowerCase();
    if (words.plain) clean = clean.normalize("NFD").replace(/\p{Mn}/gu, "");
    return (clean.match(PARTS) ?? []).flatMap((word) => {
      const letters = [...word];
      const found = [];
      for (let at = 0, end; at < letters.length; at = end) {
        const piece = () => (at ? words.between : "") + letters.slice(at, end).join("");
        for (end = letters.length; end > at && !words.ids.has(piece()); ) end--;
        if (end === at || letters.length > 100) return words.unknown;
        found.push(words.ids.get(piece()));
      }
      return found;
    });
  },
};

class Words {
  constructor(facts) {
    Object.assign(this, facts);
    const numbered = (texts) => new Map(texts.map((text, n) => [text, n]).reverse()); // the first of equal ones
    this.ids = numbered(facts.words);
    this.marks = new Map(Object.entries(facts.marks)); // found in a text, whatever is around them
    this.patterns = facts.patterns?.map((pattern) => new RegExp(pattern, "gu"));
    const ranks = facts.merges && numbered(facts.merges);
    const scored = (text) => (this.ids.has(text) ? (facts.ranks[this.ids.get(text)] ?? undefined) : undefined);
    this.rank = (left, right) => (ranks ? ranks.get(`${left} ${right}`) : scored(left + right));
    const marks = [...this.marks.keys()].sort((a, b) => b.length - a.length).map((word) => word.replace(/[\\^$.*+?()[\]{}|\/]/g, "\\$&"));
    this.mark = marks.length ? new RegExp(marks.join("|"), "gu") : undefined;
  }

  /** Return the tokens of a text that begins a sequence. */
  encode(text) {
    const { begin, end, marks, most } = this;
    const parts = this.mark ? cut(text, this.mark) : [text];
    const found = parts.flatMap((part) => marks.get(part) ?? KINDS[this.kind](this, part));
    const whole = begin.length && found[0] === begin.at(-1) ? found : [...begin, ...found];
    return [...whole.slice(0, (most ?? Infinity) - end.length), ...end];
  }

  /** Return the text of tokens that follow others; bytes that are no UTF-8 become replacement characters. */
  decode(tokens) {
    const bytes = tokens.filter((n) => !this.hidden.includes(n)).flatMap((n) => {
      const word = this.words[n] ?? "";
      const byte = /^<0x([0-9A-F]{2})>$/.exec(word);
      if (this.kind === "spaces") return byte ? parseInt(byte[1], 16) : utf8(word.replaceAll(SPACE, " "));
      const letters = [...word];
      return letters.every((letter) => BYTES.has(letter)) ? letters.map((letter) => BYTES.get(letter)) : utf8(word);
    });
    return new TextDecoder().decode(Uint8Array.from(bytes));
  }
}
