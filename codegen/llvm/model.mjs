// Runs networks that aot has compiled for WebAssembly, in browsers, Node.js, Deno and Bun:
//   const net = await load("net.wasm");
//   const { probabilities } = await net.run({ image });

const [ABI, MANIFEST, CAPACITY] = [4, 3, 6]; // versions; the code of an error
// Fields of the model's table: name, i for 64 bits or p for a pointer.
const TABLE = `
  abi i bytes i manifest p manifest_bytes i input_count i inputs p output_count i outputs p symbol_count i
  call_count i state_size p infer p shapes p arena_size p pool_create p pool_destroy p pool_resize p
  error_text p weights p weights_bytes i output_sizes p output_dims p generate p forget p
`.trim().split(/\s+/);
// Kinds of arrays by the types of elements; those of others are Uint8Array.
const ARRAYS = {
  f64: Float64Array, f32: Float32Array, f16: Uint16Array, bf16: Uint16Array,
  i64: BigInt64Array, i32: Int32Array, i16: Int16Array, i8: Int8Array, i4: Int8Array, i2: Int8Array,
  u64: BigUint64Array, u32: Uint32Array, u16: Uint16Array,
};
const arrayOf = (dtype) => ARRAYS[dtype] ?? Uint8Array;
const product = (shape) => shape.reduce((a, b) => a * b, 1);
const isNumber = (n) => typeof n === "number";
const node = globalThis.process?.versions?.node && (await import("node:worker_threads"));
const DOUBLINGS = 40; // of a capacity, at most
const PAGE = 1 << 16; // bytes, also of the header of external weights
const STACK = 1 << 20; // bytes, of a thread
const subtle = globalThis.crypto?.subtle; // none in a page that came without TLS
const digest = async (data) => hex(new Uint8Array(await subtle.digest("SHA-256", data)));
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

export class AotError extends Error {
  name = "AotError";
}

function fail(text, cause) {
  throw new AotError(text, { cause });
}

/** Return what `f` returns; what engines throw at code and sizes of a damaged module becomes an error of ours. */
function guarded(doing, f) {
  try {
    return f();
  } catch (error) {
    return damaged(doing, error);
  }
}

function damaged(doing, error) {
  if (error instanceof AotError) throw error;
  fail(`${doing}: the module must be undamaged, got ${error.message}`, error);
}

/** Load a network from an address or path, a Response, or bytes; of several, the first that the engine takes. */
export async function load(source, options = {}) {
  const [first, ...others] = [source].flat();
  const { signal, progress, verify = true, threads = 1 } = options;
  const bytes = await bytesOf(first, signal, progress);
  const manifest = await check(bytes, verify);
  let module, lacks;
  if (manifest.features.includes("atomics") && !globalThis.SharedArrayBuffer) lacks = "no memory that threads share, as in a page without COOP and COEP";
  try {
    if (!lacks) module = await WebAssembly.compile(bytes);
  } catch (error) {
    if (!(error instanceof WebAssembly.CompileError)) throw error;
    lacks = error.message;
  }
  if (lacks && others.length) return load(others, options);
  if (lacks) fail(`load: the engine must have ${manifest.features.join(", ")}, got ${lacks}`);
  const weights = manifest.external && (await weightsOf(first, options, manifest.external));
  const pages = Math.ceil((bytes.length + (weights?.length ?? 0)) / PAGE) + 32;
  const parts = { module, manifest, weights, pages, threads };
  return options.worker ? Remote.of(parts) : networkOf(parts);
}

/** Return a network of this thread. */
async function networkOf({ module, manifest, weights, pages, threads }) {
  const made = (...values) => guarded("load", () => new Network(manifest, weights, ...values));
  const instance = (imports) => WebAssembly.instantiate(module, imports).catch((error) => damaged("load", error));
  if (!manifest.features.includes("atomics")) return made((await instance()).exports);
  const workers = [];
  const spawn = (run, argument) => {
    const stack = code.aligned_alloc(64n, BigInt(STACK)) >>> 0;
    if (!stack) return 1;
    const worker = started({ module, memory, run, argument, stack: stack + STACK });
    if (node) worker.unref();
    workers.push(worker);
    return 0;
  };
  const memory = new WebAssembly.Memory({ initial: pages, maximum: 32768, shared: true });
  const code = (await instance({ aot: host(memory, spawn) })).exports;
  guarded("load", () => code.fill_memory());
  return made(code, threads, workers);
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

async function bytesOf(source, signal, progress) {
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  const remote = source instanceof Response || /^(https?|data|blob):/.test(source);
  if (!remote && node) {
    const path = /^file:/.test(source) ? new URL(source) : source;
    return (await import("node:fs/promises")).readFile(path, { signal });
  }
  const answer = source instanceof Response ? source : await fetch(source, { signal });
  if (!answer.ok) fail(`load: ${answer.url}: must be there, got status ${answer.status}`);
  const total = Number(answer.headers.get("content-length"));
  const parts = [];
  const reader = answer.body.getReader();
  for (let done = 0, part; !(part = await reader.read()).done; progress?.(done, total)) {
    parts.push(part.value);
    done += part.value.length;
  }
  signal?.throwIfAborted();
  return joined(parts);
}

async function joined(parts) {
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** Return the external weights of a module, in whole pages, once they are found to be its own. */
async function weightsOf(module, { weights, signal, progress, verify = true }, { bytes, layout, sha256 }) {
  const place = String(module.url || module);
  const beside = place.replace(/\.wasm(?=$|[?#])/, ".weights");
  if (!weights && place === beside) fail("load: needs `weights`, a file of their own, got none");
  const file = await bytesOf(weights ?? beside, signal, progress);
  const wrong = (rule, got) => fail(`weights: must be ${rule}, got ${got}`);
  const [magic, text] = new TextDecoder().decode(file.subarray(0, PAGE)).split(/[\n\0]/, 2);
  if (magic !== "AOT WEIGHTS 1") wrong("weights of a compiled model", "another file");
  const size = PAGE * Math.max(1, Math.ceil(bytes / PAGE));
  if (file.length !== PAGE + size) wrong(`of ${PAGE + size} bytes`, file.length);
  if (!text.includes(`"layout": "${layout}"`)) wrong("those of this model", "those of another");
  const found = verify && subtle ? await digest(file.subarray(PAGE, PAGE + bytes)) : sha256;
  if (found !== sha256) wrong(`with the hash ${sha256.slice(0, 12)}`, found.slice(0, 12));
  return file.subarray(PAGE);
}

/** Return the manifest of a module, once its digests are found to be those it was written with. */
async function check(bytes, verify) {
  const broken = (what) => fail(`load: must be a whole compiled model, got ${what}`);
  const segments = []; // begin and end of the program, the manifest, the weights, the seal
  let at = 8;
  const number = () => {
    for (let value = 0, shift = 0; shift < 35; shift += 7) {
      value += (bytes[at] & 127) * 2 ** shift;
      if (!(bytes[at++] & 128)) return value;
    }
    return broken("a damaged number");
  };
  if (hex(bytes.subarray(0, 8)) !== "0061736d01000000") broken("another file");
  while (at < bytes.length) {
    const kind = bytes[at++];
    const end = number() + at;
    if (end > bytes.length) broken("one that is cut short");
    if (kind === 11) {
      for (let count = number(); count && at < end; count--) {
        if (!bytes[at]) {
          at += 2; // with an address, i32.const
          number();
        }
        at += 1;
        const begin = number() + at;
        segments.push([at, (at = begin)]);
      }
    } else if (kind === 0) segments.push([end - 32, end]);
    at = end;
  }
  if (segments.length !== 3 && segments.length !== 4) broken("a module of something else");
  const [, text, weights] = segments.map((place) => bytes.subarray(...place));
  let manifest;
  try {
    manifest = JSON.parse(new TextDecoder().decode(text)) ?? {};
  } catch {
    broken("a damaged manifest");
  }
  for (const [key, known] of Object.entries({ manifest: MANIFEST, abi: ABI })) {
    if (manifest[key] === known) continue;
    fail(`load: ${key} version must be ${known}, got ${manifest[key]}; compile it again, or take its own loader`);
  }
  const { inputs, outputs, features, external } = manifest;
  if (![inputs, outputs, features].every(Array.isArray) || ![...inputs, ...outputs].every(isTensor)) {
    broken("a damaged manifest");
  }
  if (!external !== (segments.length === 4)) broken("a damaged manifest");
  if (verify && subtle) {
    const [last] = segments.at(-1); // the seal
    const [begin, end] = external ? [last, last] : segments[2];
    const whole = await joined([bytes.subarray(0, begin), bytes.subarray(end, last), bytes.subarray(last + 32)]);
    const { bytes: size, sha256 } = manifest.embedded ?? {};
    const right = (await digest(whole)) === hex(bytes.subarray(last, last + 32));
    if (!right || (!external && (await digest(weights.subarray(0, size))) !== sha256)) {
      fail("load: must have the digest it was written with, got another: it is damaged");
    }
  }
  return manifest;
}

/** Return inputs and outputs as programs see them. */
function tensorsOf(manifest) {
  const told = ({ name, dtype, shape }) => ({ name, dtype, shape: shape.map((n) => n.symbol ?? n.expr ?? n.late ?? n) });
  return { inputs: manifest.inputs.map(told), outputs: manifest.outputs.map(told) };
}

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

/** True if an entry of a manifest describes an input or output. */
function isTensor({ name, names, dtype, shape }) {
  const texts = [name, dtype, ...[names].flat()];
  return texts.every((text) => typeof text === "string") && Array.isArray(names) && Array.isArray(shape);
}

class Network {
  #code; // the module's exports
  #table = {};
  #at = {}; // addresses of the request, and of what it points to
  #blocks = {}; // memory by use: { at, size }
  #told; // place in the table of the function that hears of tokens
  #hear; // what it does with one: true ends the generation
  #pool;
  #workers;

  constructor(manifest, weights, code, threads = 1, workers = []) {
    this.#code = code;
    this.threads = threads;
    this.#workers = workers;
    this.manifest = manifest;
    Object.assign(this, tensorsOf(manifest));
    const query = Object.keys(code).find((name) => name.startsWith("aot_query_"));
    let at = code[query](ABI) >>> 0;
    for (let k = 0; k < TABLE.length; k += 2) {
      const wide = TABLE[k + 1] === "i";
      if (wide) at = (at + 7) & ~7;
      this.#table[TABLE[k]] = wide ? this.#long(at) : this.#view().getUint32(at, true);
      at += wide ? 8 : 4;
    }
    if (weights) this.#array(Uint8Array, this.#table.weights, weights.length).set(weights);
    const ranks = (infos) => infos.reduce((sum, { shape }) => sum + shape.length, 0);
    const [ins, outs] = [this.inputs, this.outputs];
    const words = [8, this.#table.symbol_count, ins.length, outs.length, ranks(ins), ranks(outs), outs.length];
    const names = ["request", "symbols", "inputs", "outputs", "inputDims", "outputDims", "sizes"];
    let place = this.#fit("request", 8 * words.reduce((a, b) => a + b), true);
    names.forEach((name, k) => {
      this.#at[name] = place;
      place += 8 * words[k];
    });
    this.#point(this.#at.request, [this.#at.inputs, this.#at.outputs, this.#at.symbols]);
    this.#pool = threads > 1 ? this.#call("pool_create", BigInt(threads)) : 0;
    this.#point(this.#at.request + 20, [this.#pool]);
    this.#longs(this.#at.request + 24, [threads]);
  }

  /** Compute outputs, by name. */
  async run(inputs) {
    const { inputs: infos, outputs } = this.manifest;
    const known = new Set(infos.flatMap(({ name, names }) => [name, ...names]));
    const wrong = Object.keys(inputs).find((name) => !known.has(name));
    if (wrong !== undefined) fail(`inputs: must be one of ${infos.map(({ name }) => name).join(", ")}, got '${wrong}'`);
    const given = infos.map((info) => this.#given(info, [info.name, ...info.names].map((name) => inputs[name])));
    this.#longs(this.#at.inputDims, given.flatMap(({ shape }) => shape));
    let code = CAPACITY;
    for (let tries = DOUBLINGS * (1 + (this.manifest.capacities?.length ?? 0)); code === CAPACITY && tries; tries--) {
      this.#size();
      given.forEach(({ data, shape }, k) => {
        const at = data ? this.#fit(`input ${k}`, data.byteLength) : this.#table.weights + infos[k].default;
        if (data) this.#array(arrayOf(infos[k].dtype), at, data.length).set(data);
        this.#point(this.#at.inputs + 4 * k, [at]);
      });
      code = this.#call("infer", this.#at.request);
    }
    if (code) fail(this.#text(code));
    this.#call("output_dims", this.#at.symbols, this.#at.outputDims);
    const results = {};
    let place = this.#at.outputDims;
    outputs.forEach(({ name, dtype, shape }, k) => {
      const dims = shape.map(() => this.#long((place += 8) - 8));
      const at = this.#view().getUint32(this.#at.outputs + 4 * k, true);
      results[name] = this.#array(arrayOf(dtype), at, product(dims)).slice();
      results[name].shape = dims;
    });
    return results;
  }

  /** Append the tokens `ids` and yield those that follow; the last one is yielded, but not appended. */
  async *generate(ids, { tokens = 64, stop = [], temperature = 0, topK = 0, topP = 1, seed = 0 } = {}, tell) {
    if (!this.#table.generate) fail("generate: must be a language model with keys and values, got another network");
    const state = this.#fit("generation", 112, true);
    this.#told ??= this.#code.table.grow(1, callback((user, token) => this.#hear(Number(token))));
    const most = temperature > 0 ? tokens : 1; // one by one where nothing is drawn
    for (let left = tokens, next = ids; left > 0; ) {
      const found = [];
      let ends = false;
      this.#hear = (token) => {
        ends = found.push(token) > most || Boolean(tell?.(token));
        return Number(ends);
      };
      this.#point(state, [this.#kept("ids", next)]);
      this.#longs(state + 8, [next.length, Math.min(left, most)]);
      this.#point(state + 24, [this.#kept("stop", stop)]);
      this.#longs(state + 32, [stop.length]);
      this.#view().setFloat64(state + 40, temperature, true);
      this.#longs(state + 48, [topK]);
      this.#view().setFloat64(state + 56, topP, true);
      this.#longs(state + 64, [seed]);
      this.#point(state + 72, [this.#told, 0, this.#pool]);
      this.#longs(state + 88, [this.threads]);
      const code = this.#call("generate", state);
      if (code) fail(this.#text(code));
      const count = found.length;
      if (!(count > 0 && count <= most)) fail(`generate: the module must be undamaged, got ${count} tokens of ${most}`);
      yield* found;
      left -= found.length;
      next = found.slice(-1);
      if (ends || stop.includes(next[0])) return;
      await pause();
    }
  }

  /** End the threads; the network cannot be used any more. */
  close() {
    this.#workers.forEach((worker) => worker.terminate());
  }

  /** Forget what earlier runs have kept in variables, and all tokens. */
  reset() {
    const { at, size } = this.#blocks.state ?? { at: 0, size: 0 };
    this.#array(Uint8Array, at, size).fill(0);
    if (this.#blocks.generation) this.#call("forget", this.#blocks.generation.at);
  }

  /** Return the array of an input and its shape. */
  #given({ name, dtype, shape: wanted, default: usual }, values) {
    const value = values.find((found) => found !== undefined);
    if (value === undefined && usual !== undefined) return { shape: wanted };
    if (value === undefined) fail(`input '${name}': needs an array, got none`);
    const text = wanted.map((n) => n.symbol ?? n.expr ?? n);
    const wrong = (what) => fail(`input '${name}': expected ${dtype}[${text}], got ${what}`);
    const data = ArrayBuffer.isView(value) ? value : value?.data;
    if (!(data instanceof arrayOf(dtype))) {
      wrong(`${data?.constructor?.name ?? typeof value}, not ${arrayOf(dtype).name}`);
    }
    const open = wanted.filter((n) => !isNumber(n));
    if (!value.shape && open.length > 1) wrong("an array without its shape");
    const shape = value.shape ?? wanted.map((n) => (isNumber(n) ? n : data.length / product(wanted.filter(isNumber))));
    const fits = (n, k) => Number.isSafeInteger(n) && n >= 0 && (!isNumber(wanted[k]) || wanted[k] === n);
    if (shape.length !== wanted.length || product(shape) !== data.length || !shape.every(fits)) {
      wrong(`[${shape}] of ${data.length} elements`);
    }
    wanted.forEach(({ symbol, min, max }, k) => {
      if (shape[k] >= (min ?? 0) && shape[k] <= (max ?? Infinity)) return;
      const most = max === null ? "or more" : `to ${max}`;
      fail(`input '${name}': dimension ${k} '${symbol}' must be ${min} ${most}, got ${shape[k]}`);
    });
    return { data, shape };
  }

  /** Compute sizes from those of the inputs, and take memory for them. */
  #size() {
    const { request, symbols, inputDims, outputDims, outputs, sizes } = this.#at;
    const code = this.#call("shapes", inputDims, symbols, outputDims);
    if (code) fail(`inputs: ${this.#text(code)}`);
    const arena = this.#fit("arena", Number(this.#call("arena_size", symbols, BigInt(this.threads))));
    this.#point(request + 12, [arena, this.#fit("state", Number(this.#call("state_size", symbols)), true)]);
    this.#call("output_sizes", symbols, sizes);
    this.outputs.forEach((_, k) => {
      this.#point(outputs + 4 * k, [this.#fit(`output ${k}`, this.#long(sizes + 8 * k))]);
    });
  }

  /** Return the address of a block of memory at least so large; if it is `kept`, with what was in it, then zeros. */
  #fit(use, size, kept = false) {
    const old = this.#blocks[use] ?? { at: 0, size: 0 };
    if (old.at && size <= old.size) return old.at;
    const at = size >= 0 && size < 2 ** 32 && guarded("memory", () => this.#code.aligned_alloc(64n, BigInt(size)) >>> 0);
    if (!at) fail(`memory: the engine has no ${size} bytes left`);
    const memory = this.#array(Uint8Array, 0, at + size);
    if (kept) {
      memory.copyWithin(at, old.at, old.at + old.size).fill(0, at + old.size);
    }
    this.#code.free(old.at);
    this.#blocks[use] = { at, size };
    return at;
  }

  #kept(use, numbers) {
    const at = this.#fit(use, 8 * numbers.length);
    this.#longs(at, numbers);
    return at;
  }

  #call(name, ...values) {
    return guarded(name, () => this.#code.table.get(this.#table[name])(...values));
  }

  #array(Type, at, length) {
    return guarded("memory", () => new Type(this.#code.memory.buffer, at, length));
  }

  #view() {
    return new DataView(this.#code.memory.buffer);
  }

  #long(at) {
    return Number(this.#view().getBigInt64(at, true));
  }

  #longs(at, numbers) {
    numbers.forEach((n, k) => this.#view().setBigInt64(at + 8 * k, BigInt(n), true));
  }

  #point(at, addresses) {
    addresses.forEach((address, k) => this.#view().setUint32(at + 4 * k, address, true));
  }

  #text(code) {
    const at = this.#call("error_text", code) >>> 0;
    const text = new Uint8Array(this.#code.memory.buffer).slice(at, at + 200);
    return new TextDecoder().decode(text.subarray(0, text.indexOf(0)));
  }
}

/** A network in a worker of its own: the thread that calls it neither computes nor waits. */
class Remote {
  #worker;
  #calls = new Map(); // by number: what a call's end and its tokens are told to
  #last = 0;

  static async of({ manifest, threads, ...parts }) {
    const net = new Remote(manifest, threads);
    try {
      await net.#ask("load", { manifest, threads, ...parts });
    } catch (error) {
      net.close();
      throw error;
    }
    return net;
  }

  constructor(manifest, threads) {
    Object.assign(this, { manifest, threads, ...tensorsOf(manifest) });
    this.#worker = started({});
    const broken = (error) => this.#end(`the worker must start and go on, got ${error?.message ?? error}`);
    if (node) this.#worker.on("message", (data) => this.#answer(data)).on("error", broken).unref();
    else Object.assign(this.#worker, { onmessage: ({ data }) => this.#answer(data), onerror: broken });
  }

  /** Compute outputs, by name. */
  async run(inputs) {
    const given = Object.entries(inputs).map(([name, value]) => {
      const data = ArrayBuffer.isView(value) ? value : value?.data;
      if (!ArrayBuffer.isView(data)) return [name, value];
      if (data.length === 0) return [name, { data: new data.constructor(0), shape: value.shape }]; // or detached
      const own = data.byteLength < data.buffer.byteLength ? data.slice() : data; // a message has the whole buffer
      return [name, value.shape ? { data: own, shape: [...value.shape] } : own];
    });
    const found = await this.#ask("run", Object.fromEntries(given));
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
    const done = this.#ask("generate", { ids: [...ids], options, ended }, (token) => tell([token]));
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
    this.#ask("reset").catch(() => {});
  }

  /** End the worker and its threads; calls that are not done yet fail. */
  close() {
    this.#worker?.terminate();
    this.#end("the network must be open, got one that is closed");
  }

  #ask(name, value, token) {
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
