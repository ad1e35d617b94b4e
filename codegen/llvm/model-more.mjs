// The parts of the loader that not every program needs: generation, external weights, progress, threads and workers.
// It is also the script of the workers.

import { AotError, parts as core } from "./model.mjs";

const { fail, damaged, guarded, subtle, digest, joined, bytesOf, networkOf, network, tensorsOf } = core;
const node = globalThis.process?.versions?.node && (await import("node:worker_threads"));
const PAGE = 1 << 16; // bytes, also of the header of external weights
const STACK = 1 << 20; // bytes, of a thread

// ---- downloads

/** Return the bytes of a Response or a Blob; `progress` is called while they arrive. */
export async function followed(answer, signal, progress) {
  const total = answer.size ?? Number(answer.headers.get("content-length"));
  const parts = [];
  const reader = (answer.body ?? answer.stream()).getReader();
  for (let done = 0, part; !(part = await reader.read()).done; progress(done, total)) {
    parts.push(part.value);
    done += part.value.length;
  }
  signal?.throwIfAborted();
  return joined(parts);
}

/** Return the external weights of a module, in whole pages, once they are found to be its own. */
export async function weightsOf(module, options, { bytes, layout, sha256 }) {
  const place = String(module.url || module);
  const beside = place.replace(/\.wasm(?=$|[?#])/, ".weights");
  if (!options.weights && place === beside) fail("load: needs `weights`, a file of their own, got none");
  const file = await bytesOf(options.weights ?? beside, options);
  const wrong = (rule, got) => fail(`weights: must be ${rule}, got ${got}`);
  const [magic, text] = new TextDecoder().decode(file.subarray(0, PAGE)).split(/[\n\0]/, 2);
  if (magic !== "AOT WEIGHTS 1") wrong("weights of a compiled model", "another file");
  const size = PAGE * Math.max(1, Math.ceil(bytes / PAGE));
  if (file.length !== PAGE + size) wrong(`of ${PAGE + size} bytes`, file.length);
  if (!text.includes(`"layout": "${layout}"`)) wrong("those of this model", "those of another");
  const verified = (options.verify ?? true) && subtle;
  const found = verified ? await digest(file.subarray(PAGE, PAGE + bytes)) : sha256;
  if (found !== sha256) wrong(`with the hash ${sha256.slice(0, 12)}`, found.slice(0, 12));
  return file.subarray(PAGE);
}

// ---- generation

/** Return a function as one of WebAssembly, (i32, i64) -> i32, as tables take it. */
function callback(f) {
  const types = [1, 7, 1, 96, 2, 127, 126, 1, 127];
  const sections = [...types, 2, 5, 1, 0, 0, 0, 0, 7, 4, 1, 0, 0, 0]; // one import, which is exported
  const module = new WebAssembly.Module(Uint8Array.from([0, 97, 115, 109, 1, 0, 0, 0, ...sections]));
  return new WebAssembly.Instance(module, { "": { "": f } }).exports[""];
}

/** Let the page paint, and others work. */
function pause() {
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port1.onmessage = () => resolve(port1.close());
    port2.postMessage(0);
  });
}

/** Append the tokens `ids` and yield those that follow; `tell` hears of each at once, and true from it ends them. */
export async function* generate(net, functions, ids, options = {}, tell = undefined) {
  const { tokens = 64, stop = [], temperature = 0, topK = 0, topP = 1, seed = 0 } = options;
  if (!net.table.generate) fail("generate: must be a language model with keys and values, got another network");
  const { view, point, longs, call, passed, fit, pool, threads } = net;
  const [first, ends] = [numbersOf("ids", ids), numbersOf("stop", stop)];
  const kept = (use, numbers) => {
    const at = fit(use, 8 * numbers.length);
    longs(at, numbers);
    return at;
  };
  const state = fit("generation", 112, true);
  net.told ??= functions.grow(1, callback((user, token) => net.hear(Number(token))));
  const own = (net.generation = {}); // another one that begins, and `reset`, end it
  const most = temperature > 0 ? tokens : 1; // one by one where nothing is drawn
  for (let left = tokens, next = first; left > 0; ) {
    net.open("generate");
    if (net.generation !== own) fail("generate: must go on before another begins, got one that was ended");
    const found = [];
    let over = false;
    net.hear = (token) => {
      over = found.push(token) > most || Boolean(tell?.(token));
      return Number(over);
    };
    point(state, kept("ids", next));
    longs(state + 8, [next.length, Math.min(left, most)]);
    point(state + 24, kept("stop", ends));
    longs(state + 32, [ends.length]);
    view().setFloat64(state + 40, temperature, true);
    longs(state + 48, [topK]);
    view().setFloat64(state + 56, topP, true);
    longs(state + 64, [seed]);
    point(state + 72, net.told, 0, pool);
    longs(state + 88, [threads]);
    passed(call("generate", state));
    const count = found.length;
    if (!(count > 0 && count <= most)) fail(`generate: the module must be undamaged, got ${count} tokens of ${most}`);
    yield* found;
    left -= count;
    next = found.slice(-1);
    if (over || ends.includes(next[0])) return;
    await pause();
  }
}

/** Return the numbers of an array, of any type. */
function numbersOf(name, array) {
  const numbers = array && typeof array === "object" ? Array.from(array, Number) : [NaN];
  if (numbers.every(Number.isSafeInteger)) return numbers;
  return fail(`generate: ${name}: must be an array of whole numbers, got ${array}`);
}

// ---- threads and workers

/** Return a network whose runs are shared by threads. */
export async function threaded({ module, bytes, weights, ...others }) {
  const workers = [];
  const spawn = (run, argument) => {
    const stack = code.aligned_alloc(64n, BigInt(STACK)) >>> 0;
    if (!stack) return 1;
    const worker = started({ module, memory, run, argument, stack: stack + STACK });
    if (node) worker.unref();
    workers.push(worker);
    return 0;
  };
  const initial = Math.ceil((bytes + (weights?.length ?? 0)) / PAGE) + 32;
  const memory = new WebAssembly.Memory({ initial, maximum: 32768, shared: true });
  const instance = WebAssembly.instantiate(module, { aot: host(memory, spawn) });
  const { exports: code } = await instance.catch((error) => damaged("load", error));
  guarded("load", () => code.fill_memory());
  return network({ weights, ...others }, code, workers);
}

/** Start a worker with this file, which does what `job` says. */
function started(job) {
  if (node) return new node.Worker(new URL(import.meta.url), { workerData: { aot: job } });
  const worker = new Worker(import.meta.url, { type: "module", name: "aot" });
  worker.postMessage(job);
  return worker;
}

/** Return what a module with threads imports. */
function host(memory, spawn) {
  const wait = (at, seen) => globalThis.document || Atomics.wait(new Int32Array(memory.buffer), at >>> 2, seen);
  return { memory, spawn, wait, clock: () => performance.now() };
}

/** A thread: runs a function of the module, or a network for `Remote`. */
function work({ module, memory, run, argument, stack }) {
  if (!memory) return serve();
  const code = new WebAssembly.Instance(module, { aot: host(memory, () => 1) }).exports;
  code.stack.value = stack;
  return code.table.get(run)(argument);
}

/** Answer the messages of a `Remote`: { id, name, value } with { id, token }, { id, value } or { id, error }. */
function serve() {
  let net;
  const port = node ? node.parentPort : globalThis;
  const actions = {
    load: async (parts) => void (net = await networkOf(parts)),
    run: async (inputs) => Object.entries(await net.run(inputs)).map(([name, data]) => [name, data, data.shape]),
    reset: () => net.reset(),
    generate: async ({ ids, options, ended }, id) => {
      const tell = (token) => {
        port.postMessage({ id, token });
        return ended && Atomics.load(ended, 0);
      };
      for await (const token of net.generate(ids, options, tell)) if (token < 0) break;
    },
  };
  const answer = async ({ id, name, value }) => {
    try {
      port.postMessage({ id, value: await actions[name](value, id) });
    } catch ({ name: kind, message }) {
      port.postMessage({ id, error: { kind, message } });
    }
  };
  if (node) port.on("message", answer);
  else port.onmessage = ({ data }) => answer(data);
}

/** Return a network in a worker of its own. */
export async function remote({ manifest, threads, ...others }) {
  const net = new Remote(manifest, threads);
  try {
    await net.ask("load", { manifest, threads, ...others });
  } catch (error) {
    net.close();
    throw error;
  }
  return net;
}

/** A network in a worker of its own: the thread that calls it neither computes nor waits. */
class Remote {
  #worker;
  #calls = new Map(); // by number: what a call's end and its tokens are told to
  #last = 0;

  constructor(manifest, threads) {
    Object.assign(this, { manifest, threads, ...tensorsOf(manifest) });
    this.#worker = started({});
    const broken = (error) => this.#end(`the worker must start and go on, got ${error?.message ?? error}`);
    if (node) this.#worker.on("message", (data) => this.#answer(data)).on("error", broken).unref();
    else Object.assign(this.#worker, { onmessage: ({ data }) => this.#answer(data), onerror: broken });
  }

  /** Compute outputs, by name. */
  async run(inputs) {
    const given = Object.entries(inputs ?? {}).map(([name, value]) => {
      const data = ArrayBuffer.isView(value) ? value : value?.data;
      if (!ArrayBuffer.isView(data)) return [name, value];
      if (data.length === 0) return [name, { data: new data.constructor(0), shape: value.shape }]; // or detached
      const own = data.byteLength < data.buffer.byteLength ? data.slice() : data; // a message has the whole buffer
      return [name, value.shape ? { data: own, shape: [...value.shape] } : own];
    });
    const found = await this.ask("run", Object.fromEntries(given));
    return Object.fromEntries(found.map(([name, data, shape]) => [name, Object.assign(data, { shape })]));
  }

  /** Append the tokens `ids` and yield those that follow, each as soon as it is chosen. */
  async *generate(ids, options) {
    const tokens = [];
    const ended = globalThis.SharedArrayBuffer && new Int32Array(new SharedArrayBuffer(4));
    let [over, told] = [false, () => {}];
    const tell = (token) => {
      tokens.push(...token);
      told();
    };
    const done = this.ask("generate", { ids, options, ended }, (token) => tell([token]));
    done.catch(() => {}).then(() => tell([], (over = true)));
    try {
      while (tokens.length || !over) {
        if (tokens.length) yield tokens.shift();
        else await new Promise((resolve) => (told = resolve));
      }
      await done;
    } finally {
      if (ended) Atomics.store(ended, 0, 1);
    }
  }

  reset() {
    this.ask("reset").catch(() => {});
  }

  /** End the worker and its threads; calls that are not done yet fail. */
  close() {
    this.#worker?.terminate();
    this.#end("the network must be open, got one that is closed");
  }

  ask(name, value, token) {
    return new Promise((resolve, reject) => {
      if (!this.#worker) fail(`${name}: the network must be open, got one that is closed`);
      this.#worker.postMessage({ id: ++this.#last, name, value });
      if (!this.#calls.size && node) this.#worker.ref(); // Node.js waits for it
      this.#calls.set(this.#last, { resolve, reject, token });
    });
  }

  #answer({ id, value, error, token }) {
    const call = this.#calls.get(id);
    if (token !== undefined) return call?.token(token);
    this.#calls.delete(id);
    if (!this.#calls.size && node) this.#worker?.unref();
    if (!error) return call?.resolve(value);
    return call?.reject(error.kind === "AotError" ? new AotError(error.message) : new Error(error.message));
  }

  #end(text) {
    this.#calls.forEach(({ reject }) => reject(new AotError(text)));
    this.#calls.clear();
    this.#worker = undefined;
  }
}

if (node) {
  if (node.workerData?.aot) work(node.workerData.aot);
} else if (globalThis.name === "aot" && !globalThis.document) onmessage = ({ data }) => work(data);
