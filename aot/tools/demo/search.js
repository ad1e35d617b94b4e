// Sentences, of which those come first that mean what is typed.
find("main").innerHTML = `<input type="text" autocomplete="off" aria-label="Question" placeholder="What are you looking for?">
  <ol></ol><label>Sentences, one a line<textarea rows="8"></textarea></label>`;
const words = new Words(facts.words);
const [field, lines] = ["[type=text]", "textarea"].map(find);
const known = new Map(); // vectors of texts
let turn = 0;
lines.value = facts.lines.join("\n");

/** Return the vector of a text, of length 1. */
async function vector(text) {
  const ids = words.encode(text);
  if (!ids.length) throw new Error(`the text must have a token, got '${text}'`);
  const shape = [1, ids.length];
  const given = { input_ids: { data: BigInt64Array.from(ids, BigInt), shape }, attention_mask: { data: new BigInt64Array(ids.length).fill(1n), shape } };
  const { sentence_embedding: found } = await net.run(given);
  const length = Math.hypot(...found);
  return Array.from(found, (n) => n / length);
}

async function search() {
  const mine = ++turn;
  const [question, ...texts] = [field, lines].flatMap(({ value }) => value.split("\n")).map((text) => text.trim());
  if (!question) return list([]);
  const begin = performance.now();
  for (const text of [question, ...texts].filter(Boolean)) {
    if (!known.has(text)) known.set(text, await vector(text));
    if (mine !== turn) return; // something else is typed
  }
  const likeness = (text) => known.get(text).reduce((sum, n, k) => sum + n * known.get(question)[k], 0);
  const rows = [...new Set(texts.filter(Boolean))].map((text) => [text, likeness(text)]);
  list(rows.sort((a, b) => b[1] - a[1]).slice(0, facts.top));
  tell(`${(performance.now() - begin).toFixed(1)} ms`);
}

field.oninput = lines.oninput = () => net && told(search);
