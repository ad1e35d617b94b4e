// Times a language model in WebAssembly: node decoding.mjs LOADER THREADS MODULE..., LOADER as aot compile --header writes it.
// Prints milliseconds to the first token after a prompt of 128, tokens a second of the 64 that follow, and the tokens.
import { pathToFileURL } from "node:url";

const [loader, threads, ...modules] = process.argv.slice(2);
const { load } = await import(pathToFileURL(loader));
const prompt = Array.from({ length: 128 }, (_, k) => (k * 7919 + 13) % 40000);
const ROUNDS = 3;
const nets = [];
for (const module of modules) {
  const before = performance.now();
  nets.push({ module, net: await load(module, { threads: Number(threads) }), least: [Infinity, Infinity] });
  nets.at(-1).loaded = performance.now() - before;
}
for (let round = 0; round < ROUNDS; round++) {
  for (const row of nets) {
    row.net.reset();
    const tokens = [], times = [performance.now()];
    for await (const token of row.net.generate(prompt, { tokens: 65 })) {
      tokens.push(token);
      times.push(performance.now());
    }
    const each = times.slice(2).map((time, k) => time - times[k + 1]).sort((a, b) => a - b);
    row.least = [Math.min(row.least[0], times[1] - times[0]), Math.min(row.least[1], each[each.length >> 1])];
    row.tokens = tokens;
  }
}
for (const { module, loaded, least: [first, each], tokens } of nets) {
  console.log(`${module}: loaded in ${loaded.toFixed(0)} ms, first token ${first.toFixed(0)} ms, ${(1e3 / each).toFixed(1)} tokens/s: ${tokens.slice(0, 12)} …`);
}
process.exit(0);
