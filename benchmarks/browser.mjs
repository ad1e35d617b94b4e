// Times a network in WebAssembly, and in onnxruntime-web: node browser.mjs JOB, which benchmarks/browser.py tells.
import { readFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const { folder, model, modules, inputs, peer, threads, rounds } = JSON.parse(process.argv[2]);
const bytes = (path) => new Uint8Array(readFileSync(path));
const at = (name) => `${folder}/${name}`;
const { load } = await import(pathToFileURL(at("model.mjs")));
const ort = await import(pathToFileURL(`${peer}/dist/ort.node.min.mjs`));
ort.env.wasm.numThreads = threads;

// type of elements -> array, and its name there
const KINDS = {
  f32: [Float32Array, "float32"], f64: [Float64Array, "float64"], i32: [Int32Array, "int32"], i64: [BigInt64Array, "int64"],
  i8: [Int8Array, "int8"], u8: [Uint8Array, "uint8"], boolean: [Uint8Array, "bool"],
};
const given = {}, fed = {};
for (const { name, dtype, shape, file } of inputs) {
  const [Kind, kind] = KINDS[dtype];
  const data = new Kind(bytes(at(file)).buffer.slice(0));
  given[name] = { data, shape };
  fed[name] = new ort.Tensor(kind, data, shape);
}

/** Milliseconds that `f` takes: of the processor with one thread, else by the clock. */
async function timed(f) {
  await setTimeout(threads > 1 ? 50 : 0); // workers of the one before spin for a while
  const [clock, cpu] = [performance.now(), process.cpuUsage()];
  const value = await f();
  const { user, system } = process.cpuUsage(cpu);
  return [threads > 1 ? performance.now() - clock : (user + system) / 1e3, value];
}

const runs = {}, loads = {}, found = {};
for (const [target, module] of Object.entries(modules)) {
  const code = bytes(at(module));
  [loads[target], found[target]] = await timed(async () => {
    const net = await load(code, { threads });
    runs[target] = () => net.run(given);
    return Object.values(await runs[target]());
  });
}
const file = bytes(model);
[loads.peer, found.peer] = await timed(async () => {
  const session = await ort.InferenceSession.create(file, { executionProviders: ["wasm"] });
  runs.peer = () => session.run(fed);
  const outputs = await runs.peer();
  return session.outputNames.map((name) => outputs[name].data);
});
const difference = (some, others) => {
  const gap = Math.max(...some.map((data, k) => data.reduce((most, x, n) => Math.max(most, Math.abs(Number(x) - Number(others[k][n]))), 0)));
  return gap / Math.max(...others.map((data) => data.reduce((most, x) => Math.max(most, Math.abs(Number(x))), 1e-9)));
};
const error = Math.max(...Object.keys(modules).map((target) => difference(found[target], found.peer)));

const times = {};
const names = Object.keys(runs);
const batch = {}; // runs that are timed together: 20 ms
for (const name of names) {
  for (let k = 0; k < 3; k++) await runs[name](); // until engines have compiled for speed
  const [once] = await timed(runs[name]);
  batch[name] = Math.max(1, Math.ceil(20 / once));
}
for (let round = 0; round < rounds; round++) {
  for (const name of names) {
    const [time] = await timed(async () => {
      for (let k = 0; k < batch[name]; k++) await runs[name]();
    });
    times[name] = Math.min(times[name] ?? Infinity, time / batch[name]);
  }
}
console.log(JSON.stringify({ times, loads, error }));
process.exit(0);
