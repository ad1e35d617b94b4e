// A conversation with a language model, or a text that it goes on with where it has no template of conversations.
find("main").innerHTML = `<div id="talk"></div>
  <form><input type="text" autocomplete="off" aria-label="Message"><button>Send</button> <button type="button">Begin anew</button></form>`;
const words = new Words(facts.words);
const [talk, form, field, anew] = ["#talk", "form", "form input", "[type=button]"].map(find);
let said = []; // questions and answers, in turn
let kept = []; // tokens whose keys and values the network has
let turn = 0;
field.placeholder = facts.turns ? "Message" : "The beginning of a text";

/** Return all that was said, as the text that the network goes on with. */
function written() {
  if (!facts.turns) return said.at(-1);
  const { begin, answered, asked, last } = facts.turns;
  return begin + said.map((text, k) => (k ? (k % 2 ? answered : asked) : "") + text).join("") + last;
}

async function answer(question) {
  const mine = ++turn;
  const place = made("p", "", { className: "answer" });
  talk.append(made("p", question, { className: "user" }), place);
  said.push(question);
  const ids = words.encode(written());
  const fits = kept.length < ids.length && kept.every((token, k) => token === ids[k]);
  if (!fits) net.reset();
  const rest = fits ? ids.slice(kept.length) : ids;
  kept = [NaN]; // until it is known
  const found = [];
  const begin = performance.now();
  let first;
  for await (const token of net.generate(rest, { tokens: facts.tokens, stop: facts.words.stop })) {
    if (mine !== turn) return;
    first ??= performance.now();
    found.push(token);
    place.textContent = words.decode(found.filter((n) => !facts.words.stop.includes(n))).replace(/\ufffd+$/, "");
    place.scrollIntoView({ block: "nearest" });
  }
  const rate = (1000 * (found.length - 1)) / (performance.now() - first);
  tell(`${found.length} tokens, the first after ${(first - begin).toFixed(0)} ms${found.length > 1 ? `, ${rate.toFixed(1)} tokens/s` : ""}`);
  said.push(place.textContent);
  kept = [...ids, ...found.slice(0, -1)];
}

form.onsubmit = async (event) => {
  event.preventDefault();
  const question = field.value.trim();
  if (!question || !net || form.dataset.busy) return;
  [field.value, form.dataset.busy] = ["", "yes"];
  const before = said.length;
  await told(() => answer(question));
  if (said.length === before + 1) said.pop(); // there was no answer
  delete form.dataset.busy;
};
anew.onclick = () => {
  turn++;
  [said, kept] = [[], [NaN]];
  talk.replaceChildren();
  tell("Ready");
};
