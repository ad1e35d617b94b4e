// Runs networks that aot has compiled for WebAssembly, in browsers, Node.js, Deno and Bun:
//   const net = await load("net.wasm");
//   const { probabilities } = await net.run({ image });
// What not every program needs is in model-more.mjs, which is imported when it is used first.

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
const DOUBLINGS = 40; // of a capacity, at most
const arrayOf = (dtype) => ARRAYS[dtype] ?? Uint8Array;
const product = (shape) => shape.reduce((a, b) => a * b, 1);
const isNumber = (n) => typeof n === "number";
const isTexts = (...values) => values.every((value) => typeof value === "string");
const more = () => import("./model-more.mjs");
const { crypto, process } = globalThis;
const subtle = crypto?.subtle; // none in a page that came without TLS
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const digest = async (data) => hex(new Uint8Array(await subtle.digest("SHA-256", data)));
const joined = async (parts) => new Uint8Array(await new Blob(parts).arrayBuffer());

export class AotError extends Error {
  name = "AotError";
}

function fail(text, cause) {
  throw new AotError(text, { cause });
}

function damaged(doing, error) {
  if (error instanceof AotError) throw error;
  fail(`${doing}: the module must be undamaged, got ${error.message}`, error);
}

/** Return what `f` returns; what engines throw at code and sizes of a damaged module becomes an error of ours. */
function guarded(doing, f) {
  try {
    return f();
  } catch (error) {
    return damaged(doing, error);
  }
}

/** Load a network from an address or path, a Response, a Blob, or bytes; of several, the first that the engine takes. */
export async function load(source, options = {}) {
  const [first, ...others] = [source].flat();
  const { threads = 1, verify = true, worker } = options;
  const bytes = await bytesOf(first, options);
  const manifest = await check(bytes, verify);
  const { external, features } = manifest;
  let module, lacks;
  if (features.includes("atomics") && !globalThis.SharedArrayBuffer) lacks = "no memory that threads share, as in a page without COOP and COEP";
  else module = await WebAssembly.compile(bytes).catch(({ message }) => void (lacks = message));
  if (lacks && others.length) return load(others, options);
  if (lacks) fail(`load: the engine must have ${features.join(", ")}, got ${lacks}`);
  const weights = external && (await (await more()).weightsOf(first, options, external));
  const parts = { module, manifest, weights, threads, bytes: bytes.length };
  return worker ? (await more()).remote(parts) : networkOf(parts);
}

/** Return a network of this thread. */
async function networkOf(parts) {
  if (parts.manifest.features.includes("atomics")) return (await more()).threaded(parts);
  const { exports } = await WebAssembly.instantiate(parts.module).catch((error) => damaged("load", error));
  return network({ ...parts, threads: 1 }, exports);
}

async function bytesOf(source, { signal, progress }) {
  signal?.throwIfAborted();
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  if (source instanceof ArrayBuffer) return guarded("load", () => new Uint8Array(source));
  let answer = source;
  if (!source?.arrayBuffer) {
    if (!isTexts(source) && !(source instanceof URL)) fail(`load: needs an address, a Response, a Blob or bytes, got ${source}`);
    if (process?.versions?.node && !/^(https?|data|blob):/.test(source)) {
      return (await import("node:fs/promises")).readFile(/^file:/.test(source) ? new URL(source) : source, { signal });
    }
    answer = await fetch(source, { signal });
  }
  if (answer.ok === false) fail(`load: ${answer.url}: must be there, got status ${answer.status}`);
  if (progress) return (await more()).followed(answer, signal, progress);
  return new Uint8Array(await answer.arrayBuffer());
}

/** Return the manifest of a module, once its digests are found to be those it was written with. */
async function check(bytes, verify) {
  const broken = (what) => fail(`load: must be a whole compiled model, got ${what}`);
  const places = []; // begin and end of the program, the manifest, the weights, the seal
  let at = 8;
  const number = (shift = 0) => {
    const byte = bytes[at++];
    return (byte & 127) * 2 ** shift + (byte & 128 && shift < 35 ? number(shift + 7) : 0);
  };
  if (hex(bytes.subarray(0, at)) !== "0061736d01000000") broken("another file");
  while (at < bytes.length) {
    const kind = bytes[at++];
    const end = number() + at;
    if (end > bytes.length) broken("one that is cut short");
    if (!kind) places.push([end - 32, end]);
    if (kind === 11) {
      for (let count = number(); count-- && at < end; ) {
        if (!bytes[at++]) {
          at += 1; // with an address: i32.const, its number, end
          number();
          at += 1;
        }
        const size = number();
        places.push([at, (at += size)]);
      }
    }
    at = end;
  }
  const [, text, weights] = places.map((place) => bytes.subarray(...place));
  let manifest;
  try {
    manifest = JSON.parse(new TextDecoder().decode(text));
  } catch {}
  const other = "a module of something else, or a damaged manifest";
  if (!manifest) broken(other);
  for (const [key, known] of Object.entries({ manifest: MANIFEST, abi: ABI })) {
    if (manifest[key] === known) continue;
    fail(`load: ${key} version must be ${known}, got ${manifest[key]}; compile it again, or take its own loader`);
  }
  const { inputs, outputs, features, external, embedded } = manifest;
  const isTensor = ({ name, names, dtype, shape }) => isTexts(name, dtype, ...[names].flat()) && [names, shape].every(Array.isArray);
  if (places.length !== (external ? 3 : 4) || ![inputs, outputs, features].every(Array.isArray) || ![...inputs, ...outputs].every(isTensor)) {
    broken(other);
  }
  if (verify && subtle) {
    const [last] = places.at(-1); // the seal
    const [begin, end] = external ? [last, last] : places[2];
    const whole = await joined([bytes.subarray(0, begin), bytes.subarray(end, last), bytes.subarray(last + 32)]);
    const right = (await digest(whole)) === hex(bytes.subarray(last, last + 32));
    if (!right || (!external && (await digest(weights.subarray(0, embedded?.bytes))) !== embedded?.sha256)) {
      fail("load: must have the digest it was written with, got another: it is damaged");
    }
  }
  return manifest;
}

/** Return inputs and outputs as programs see them. */
function tensorsOf({ inputs, outputs }) {
  const told = ({ name, dtype, shape }) => ({ name, dtype, shape: shape.map((n) => n.symbol ?? n.expr ?? n.late ?? n) });
  return { inputs: inputs.map(told), outputs: outputs.map(told) };
}

/** Return a network that computes with `code`, the exports of its module. */
const network = (...given) => guarded("load", () => made(...given));

function made({ manifest, weights, threads }, code, workers = []) {
  const { inputs: infos, outputs: results, capacities } = manifest;
  const table = {};
  const blocks = {}; // memory by use: { at, size }

  const view = () => new DataView(code.memory.buffer);
  const array = (Type, at, length) => guarded("memory", () => new Type(code.memory.buffer, at, length));
  const pointer = (at) => view().getUint32(at, true);
  const long = (at) => Number(view().getBigInt64(at, true));
  const point = (at, ...addresses) => addresses.forEach((address, k) => view().setUint32(at + 4 * k, address, true));
  const longs = (at, numbers) => numbers.forEach((n, k) => view().setBigInt64(at + 8 * k, BigInt(n), true));
  const call = (name, ...values) => guarded(name, () => code.table.get(table[name])(...values));
  const open = (doing) => code ?? fail(`${doing}: the network must be open, got one that is closed`);

  /** Fail with the text of an error's code, unless there is none. */
  const passed = (error, doing = "") => {
    if (!error) return;
    const at = call("error_text", error) >>> 0;
    const text = new Uint8Array(code.memory.buffer).slice(at, at + 200);
    fail(doing + new TextDecoder().decode(text.subarray(0, text.indexOf(0))));
  };

  /** Return the address of a block of memory at least so large; if it is `kept`, with what was in it, then zeros. */
  const fit = (use, size, kept) => {
    const old = blocks[use] ?? { at: 0, size: 0 };
    if (old.at && size <= old.size) return old.at;
    const at = size >= 0 && size < 2 ** 32 && guarded("memory", () => code.aligned_alloc(64n, BigInt(size)) >>> 0);
    if (!at) fail(`memory: the engine has no ${size} bytes left`);
    const memory = array(Uint8Array, 0, at + size);
    if (kept) memory.copyWithin(at, old.at, old.at + old.size).fill(0, at + old.size);
    code.free(old.at);
    blocks[use] = { at, size };
    return at;
  };

  /** Return the array of an input and its shape. */
  const taken = ({ name, names, dtype, shape: wanted, default: usual }, inputs) => {
    const value = inputs[[name, ...names].find((one) => inputs[one] !== undefined)];
    if (value === undefined && usual !== undefined) return { shape: wanted };
    if (value === undefined) fail(`input '${name}': needs an array, got none`);
    const wrong = (got) => fail(`input '${name}': expected ${dtype}[${wanted.map((n) => n.symbol ?? n.expr ?? n)}], got ${got}`);
    const data = ArrayBuffer.isView(value) ? value : value?.data;
    const Type = arrayOf(dtype);
    if (!(data instanceof Type)) wrong(`${data?.constructor?.name ?? typeof value}, not ${Type.name}`);
    const fixed = wanted.filter(isNumber);
    if (!value.shape && wanted.length - fixed.length > 1) wrong("an array without its shape");
    const shape = Array.from(value.shape ?? wanted.map((n) => (isNumber(n) ? n : data.length / product(fixed))));
    const fits = (n, k) => Number.isSafeInteger(n) && n >= 0 && (!isNumber(wanted[k]) || wanted[k] === n);
    if (shape.length !== wanted.length || !shape.every(fits) || product(shape) !== data.length) {
      wrong(`[${shape}] of ${data.length} elements`);
    }
    wanted.forEach(({ symbol, min, max }, k) => {
      if (shape[k] >= (min ?? 0) && shape[k] <= (max ?? Infinity)) return;
      fail(`input '${name}': dimension ${k} '${symbol}' must be ${min} ${max === null ? "or more" : `to ${max}`}, got ${shape[k]}`);
    });
    return { data, shape };
  };

  /** Compute sizes from those of the inputs, and take memory for them. */
  const size = () => {
    passed(call("shapes", inputDims, symbols, outputDims), "inputs: ");
    const arena = fit("arena", Number(call("arena_size", symbols, BigInt(threads))));
    point(request + 12, arena, fit("state", Number(call("state_size", symbols)), true));
    call("output_sizes", symbols, sizes);
    results.forEach((_, k) => point(outputs + 4 * k, fit(`output ${k}`, long(sizes + 8 * k))));
  };

  const run = async (inputs) => {
    open("run");
    inputs ??= {};
    const known = infos.flatMap(({ name, names }) => [name, ...names]);
    const wrong = Object.keys(inputs).find((name) => !known.includes(name));
    if (wrong !== undefined) fail(`inputs: must be one of ${infos.map(({ name }) => name).join(", ")}, got '${wrong}'`);
    const given = infos.map((info) => taken(info, inputs));
    longs(inputDims, given.flatMap(({ shape }) => shape));
    let error = CAPACITY;
    for (let tries = DOUBLINGS * (1 + (capacities?.length ?? 0)); error === CAPACITY && tries; tries--) {
      size();
      given.forEach(({ data }, k) => {
        const at = data ? fit(`input ${k}`, data.byteLength) : table.weights + infos[k].default;
        if (data) array(data.constructor, at, data.length).set(data);
        point(places + 4 * k, at);
      });
      error = call("infer", request);
    }
    passed(error);
    call("output_dims", symbols, outputDims);
    let place = outputDims;
    const found = results.map(({ name, dtype, shape }, k) => {
      const dims = shape.map(() => long((place += 8) - 8));
      const data = array(arrayOf(dtype), pointer(outputs + 4 * k), product(dims)).slice();
      return [name, Object.assign(data, { shape: dims })];
    });
    return Object.fromEntries(found);
  };

  let at = code[Object.keys(code).find((name) => name.startsWith("aot_query_"))](ABI) >>> 0;
  for (let k = 0; k < TABLE.length; k += 2) {
    const wide = TABLE[k + 1] === "i";
    if (wide) at = (at + 7) & ~7;
    table[TABLE[k]] = wide ? long(at) : pointer(at);
    at += wide ? 8 : 4;
  }
  if (weights) array(Uint8Array, table.weights, weights.length).set(weights);
  const ranks = (infos) => infos.flatMap(({ shape }) => shape).length;
  // The request, and what it points to, in words of 64 bits.
  const words = [8, table.symbol_count, infos.length, results.length, ranks(infos), ranks(results), results.length];
  const [request, symbols, places, outputs, inputDims, outputDims, sizes] = words.map((count, k) => fit(k, 8 * count + 8, true));
  point(request, places, outputs, symbols);
  const pool = threads > 1 ? call("pool_create", BigInt(threads)) : 0;
  point(request + 20, pool);
  longs(request + 24, [threads]);
  const core = { table, blocks, threads, pool, open, view, point, longs, call, passed, fit };
  return {
    manifest,
    threads,
    ...tensorsOf(manifest),
    run,
    async *generate(...given) {
      yield* (await more()).generate(core, open("generate").table, ...given);
    },
    reset() {
      if (!code) return;
      const { at, size } = blocks.state ?? { at: 0, size: 0 };
      array(Uint8Array, at, size).fill(0);
      if (core.generation) call("forget", blocks.generation.at);
      core.generation = undefined;
    },
    close() {
      workers.forEach((worker) => worker.terminate());
      code = undefined;
    },
  };
}

/** What model-more.mjs is made of. */
export const parts = { fail, damaged, guarded, subtle, digest, joined, bytesOf, networkOf, network, tensorsOf };
