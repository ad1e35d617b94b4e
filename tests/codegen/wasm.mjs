// Runs WebAssembly modules: node wasm.mjs FOLDER. FOLDER/jobs.json lists {module, inputs: [{name, type, shape, file}]}
// or an error to come; results go to FOLDER/results.json, arrays to files beside it.
import { readFile, writeFile } from "node:fs/promises";
import v8 from "node:v8";
import { load } from "./model.mjs";

const { relaxed, threads, worker } = JSON.parse(process.argv[3]);
if (relaxed) v8.setFlagsFromString("--experimental-wasm-relaxed-simd"); // Node.js 20 needs it

const folder = process.argv[2];
const at = (name) => `${folder}/${name}`;
const jobs = JSON.parse(await readFile(at("jobs.json")));
const results = [];
for (const { module, calls } of jobs) {
  const answers = [];
  results.push(answers);
  let net;
  try {
    net = await load(at(module), { threads, worker: Boolean(worker) });
  } catch (error) {
    answers.push({ error: error.message });
    continue;
  }
  for (const [k, inputs] of calls.entries()) {
    if (inputs === "reset") {
      net.reset();
      continue;
    }
    if (!Array.isArray(inputs)) {
      const tokens = [];
      for await (const token of net.generate(inputs.ids, inputs)) {
        if (tokens.push(token) === inputs.take) break;
      }
      answers.push({ tokens });
      continue;
    }
    const given = {};
    for (const { name, type, shape, file } of inputs) {
      const { buffer, byteOffset, length } = await readFile(at(file));
      const data = new globalThis[type](buffer.slice(byteOffset, byteOffset + length));
      given[name] = shape ? { data, shape } : data;
    }
    try {
      const outputs = [];
      for (const [name, found] of Object.entries(await net.run(given))) {
        const file = `${module}.${k}.${outputs.length}`;
        await writeFile(at(file), new Uint8Array(found.buffer));
        outputs.push({ name, file, shape: found.shape });
      }
      answers.push({ outputs });
    } catch (error) {
      answers.push({ error: error.message });
    }
  }
  net.close();
}
await writeFile(at("results.json"), JSON.stringify(results));
