// Loads damaged WebAssembly modules and runs them: node modules.mjs MODULE LOADER '{"count": 500, "seed": 1, "verify": false}'.
// Each has a limit of time, in a worker that is ended then. Prints counts as JSON, and the seeds of findings: what hung
// outside of the module's own code, and errors that are no sentences of the loader's.
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

const LIMIT = 4000; // milliseconds
const random = (seed) => () => {
  // mulberry32
  let t = (seed = (seed + 0x6d2b79f5) | 0);
  t = Math.imul(t ^ (t >>> 15), t | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
};

/** Return `whole` with one change, at times with two or three. */
function damaged(whole, seed) {
  const draw = random(seed);
  const below = (n) => Math.floor(draw() * n);
  const any = (values) => values[below(values.length)];
  const text = new TextDecoder("latin1").decode(whole);
  const begin = text.indexOf('{"abi"'); // of the manifest; code and data of the program are before it
  const end = text.indexOf("}\0", begin) + 1;
  const numbers = [...text.slice(begin, end).matchAll(/\d+/g)];
  let bytes = Uint8Array.from(whole);
  const place = () => Math.min(any([below(whole.length), below(600), begin + below(end - begin), below(begin)]), bytes.length - 1);
  const code = () => Math.min(below(begin), bytes.length - 1);
  const put = (values, at) => bytes.set(values, Math.max(0, Math.min(at, bytes.length - values.length)));
  const kinds = [
    () => (bytes[code()] ^= 1 << below(8)),
    () => (bytes[code()] ^= 1 << below(8)),
    () => (bytes[place()] ^= 1 << below(8)),
    () => (bytes[place()] = any([0, 1, 2, 0x7f, 0x80, 0xff])),
    () => put(Array(1 + below(12)).fill(any([0, 1, 0x7f, 0xff])), place()),
    () => put([0xff, 0xff, 0xff, 0xff, 0x0f], place()), // the greatest size
    () => put(new Uint8Array(new BigInt64Array([any([-1n, 0n, 1n << 20n, 1n << 31n, 1n << 62n])]).buffer), begin - 8 * below(300) - (begin % 8)),
    () => (bytes = bytes.slice(0, 9 + place())),
    () => bytes.copyWithin(place(), place(), place()),
    () => {
      const { 0: old, index } = any(numbers);
      put(new TextEncoder().encode(any(["9", "0", "1"]).repeat(old.length)), begin + index);
    },
    () => {
      const { 0: old, index } = any(numbers);
      put(new TextEncoder().encode(old.length > 1 ? `-${"9".repeat(old.length - 1)}` : any(["{", "n", '"'])), begin + index);
    },
  ];
  for (let k = any([0, 0, 0, 1, 2]); k >= 0; k--) any(kinds)();
  return bytes;
}

async function main([path, loader, flags]) {
  const { count = 500, seed = 0, verify = false, first = 0 } = JSON.parse(flags ?? "{}");
  const whole = new Uint8Array(await readFile(path));
  const { load } = await import(pathToFileURL(loader).href);
  const generates = (await load(whole)).inputs.some(({ name }) => name === "input_ids");
  const inside = new Int32Array(new SharedArrayBuffer(4));
  const counts = {};
  const findings = [];
  let slowest = 0;
  let worker;
  const start = () => {
    worker = new Worker(new URL(import.meta.url), {
      workerData: { loader: pathToFileURL(loader).href, inside, verify, generates },
      resourceLimits: { maxOldGenerationSizeMb: 2048 },
    });
    worker.on("error", () => {});
  };
  start();
  for (let k = first; k < first + count; k++) {
    inside[0] = 0;
    const begin = performance.now();
    let timer;
    const answer = await new Promise((resolve) => {
      timer = setTimeout(() => resolve({ kind: inside[0] ? "endless code" : "hang" }), LIMIT);
      worker.once("message", resolve);
      worker.once("exit", () => resolve({ kind: "worker died" }));
      worker.postMessage(damaged(whole, seed * 1000003 + k));
    });
    clearTimeout(timer);
    slowest = Math.max(slowest, performance.now() - begin);
    worker.removeAllListeners("message");
    worker.removeAllListeners("exit");
    counts[answer.kind] = (counts[answer.kind] ?? 0) + 1;
    if (!["AotError", "result", "endless code"].includes(answer.kind)) findings.push({ case: k, ...answer });
    if (!["AotError", "result"].includes(answer.kind)) {
      await worker.terminate();
      start();
    }
  }
  await worker.terminate();
  console.log(JSON.stringify({ counts, findings, slowest }));
}

const ARRAYS = { f32: Float32Array, i64: BigInt64Array, i32: Int32Array };

/** Answer damaged bytes with how loading and a run end. */
async function judge({ loader, inside, verify, generates }) {
  const told = (f) => (typeof f !== "function" ? f : (...values) => {
    inside[0] = 1;
    try {
      return f(...values);
    } finally {
      inside[0] = 0;
    }
  });
  const { get } = WebAssembly.Table.prototype;
  WebAssembly.Table.prototype.get = function (place) {
    return told(get.call(this, place));
  };
  const { instantiate } = WebAssembly;
  WebAssembly.instantiate = async (...given) => {
    const { exports } = await instantiate(...given);
    return { exports: Object.fromEntries(Object.entries(exports).map(([name, value]) => [name, told(value)])) };
  };
  const { load } = await import(loader);
  parentPort.on("message", async (bytes) => {
    let kind = "result", error;
    try {
      const net = await load(bytes, { verify });
      const inputs = {};
      for (const { name, dtype, shape } of net.inputs) {
        const dims = shape.map((n) => (typeof n === "number" ? n : 2));
        const size = dims.reduce((a, b) => a * b, 1);
        if (size < 1 << 20) inputs[name] = { data: new (ARRAYS[dtype] ?? Uint8Array)(size), shape: dims };
      }
      await net.run(inputs);
      if (generates) for await (const token of net.generate([1, 2, 3], { tokens: 4 })) if (token < 0) break;
    } catch (caught) {
      kind = caught.name;
      error = caught.stack;
    }
    inside[0] = 0;
    parentPort.postMessage({ kind, error });
  });
}

if (isMainThread) await main(process.argv.slice(2));
else await judge(workerData);
