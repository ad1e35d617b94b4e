// Runs networks that aot has compiled for WebAssembly, in browsers, Node.js, Deno and Bun:
//
//   const net = await load("net.wasm");
//   const { probabilities } = await net.run({ image });

const [ABI, MANIFEST, CAPACITY] = [4, 3, 6]; // versions; the code of an error
const TABLE = `
  abi i bytes i manifest p manifest_bytes i input_count i inputs p output_count i outputs p symbol_count i
  call_count i state_size p infer p shapes p arena_size p pool_create p pool_destroy p pool_resize p
  error_text p weights p weights_bytes i output_sizes p output_dims p generate p forget p
`.trim().split(/\s+/); // fields of the model's table: name, i for 64 bits or p for a pointer
const ARRAYS = {
  f64: Float64Array, f32: Float32Array, f16: Uint16Array, bf16: Uint16Array,
  i64: BigInt64Array, i32: Int32Array, i16: Int16Array, i8: Int8Array, i4: Int8Array, i2: Int8Array,
  u64: BigUint64Array, u32: Uint32Array, u16: Uint16Array,
}; // of all other types: Uint8Array

export class AotError extends Error {
  name = "AotError";
}

function fail(text) {
  throw new AotError(text);
}

/** Load a network from an address or path, a Response, or bytes. See the types beside this file. */
export async function load(source, { signal, progress, verify = true } = {}) {
  const bytes = await bytesOf(source, signal, progress);
  const manifest = await check(bytes, verify);
  return new Network((await WebAssembly.instantiate(bytes, {})).instance.exports, manifest);
}

async function bytesOf(source, signal, progress) {
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  const local = !(source instanceof Response) && !/^(https?|data|blob):/.test(source);
  if (local && globalThis.process?.versions?.node) {
    const { readFile } = await import("node:fs/promises");
    return readFile(source, { signal });
  }
  const answer = source instanceof Response ? source : await fetch(source, { signal });
  if (!answer.ok) fail(`load: ${answer.url}: must be there, got status ${answer.status}`);
  const total = Number(answer.headers.get("content-length"));
  const parts = [];
  let done = 0;
  for (const reader = answer.body.getReader(); ; ) {
    const { done: ended, value } = await reader.read();
    if (ended) break;
    parts.push(value);
    done += value.length;
    progress?.(done, total);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** Return the manifest of a module, once its digests are found to be those it was written with. */
async function check(bytes, verify) {
  const broken = (what) => fail(`load: must be a whole compiled model, got ${what}`);
  let at = 8;
  const number = () => {
    for (let value = 0, shift = 0; ; shift += 7) {
      value += (bytes[at] & 127) * 2 ** shift;
      if (!(bytes[at++] & 128)) return value;
    }
  };
  const segments = []; // begin and end of the program, the manifest, the weights, the seal
  if (bytes.length < 8 || String.fromCharCode(...bytes.subarray(1, 4)) !== "asm") broken("another file");
  while (at < bytes.length) {
    const kind = bytes[at++];
    const size = number();
    const end = at + size;
    if (!(end <= bytes.length)) broken("one that is cut short");
    if (kind === 11) {
      for (let count = number(); count > 0 && at < end; count--) {
        at += 2; // kind of segment, i32.const
        number();
        at += 1; // end
        const length = number();
        segments.push([at, (at += length)]);
      }
    } else if (kind === 0 && segments.length === 3) segments.push([end - 32, end]);
    at = end;
  }
  if (segments.length !== 4) broken("a module of something else");
  const [, text, weights, seal] = segments;
  let manifest;
  try {
    manifest = JSON.parse(new TextDecoder().decode(bytes.subarray(...text)));
  } catch {
    broken("a damaged manifest");
  }
  for (const [key, known] of [["manifest", MANIFEST], ["abi", ABI]]) {
    if (manifest[key] !== known) {
      fail(`load: ${key} version must be ${known}, got ${manifest[key]}; compile it again, or take its own loader`);
    }
  }
  const subtle = globalThis.crypto?.subtle; // none in a page that came without TLS
  if (verify && subtle) {
    const digest = async (data) => hex(new Uint8Array(await subtle.digest("SHA-256", data)));
    const rest = new Blob([bytes.subarray(0, weights[0]), bytes.subarray(weights[1], seal[0]), bytes.subarray(seal[1])]);
    const { bytes: size, sha256 } = manifest.embedded;
    const sealed = (await digest(await rest.arrayBuffer())) === hex(bytes.subarray(...seal));
    if (!sealed || (await digest(bytes.subarray(weights[0], weights[0] + size))) !== sha256) {
      fail("load: must have the digest it was written with, got another: it is damaged");
    }
  }
  return manifest;
}

function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function product(shape) {
  return shape.reduce((a, b) => a * b, 1);
}

class Network {
  #code; // the module's exports
  #table = {};
  #infos;
  #request; // address of the request, and of the arrays that it points to
  #blocks = {}; // memory by use: { at, size }

  constructor(code, manifest) {
    this.manifest = manifest;
    this.#code = code;
    const query = Object.keys(code).find((name) => name.startsWith("aot_query_"));
    let at = code[query](ABI) >>> 0;
    for (let k = 0; k < TABLE.length; k += 2) {
      const wide = TABLE[k + 1] === "i";
      if (wide) at = (at + 7) & ~7;
      this.#table[TABLE[k]] = wide ? this.#long(at) : this.#view().getUint32(at, true);
      at += wide ? 8 : 4;
    }
    this.#infos = { inputs: manifest.inputs, outputs: manifest.outputs };
    const named = ({ name, dtype, shape }) => ({ name, dtype, shape: shape.map((n) => n.symbol ?? n.expr ?? n.late ?? n) });
    this.inputs = manifest.inputs.map(named);
    this.outputs = manifest.outputs.map(named);
    const sizes = { request: 40, symbols: 8 * this.#table.symbol_count, bytes: 8 * manifest.outputs.length };
    for (const kind of ["inputs", "outputs"]) {
      sizes[kind] = 4 * manifest[kind].length;
      sizes[kind + "Dims"] = 8 * manifest[kind].reduce((sum, info) => sum + info.shape.length, 0);
    }
    this.#request = {};
    let end = this.#fit("request", 1024 + Object.values(sizes).reduce((a, b) => a + b + 8, 0), true);
    for (const [name, size] of Object.entries(sizes)) {
      this.#request[name] = end;
      end += (size + 7) & ~7;
    }
    const { request, symbols, inputs, outputs } = this.#request;
    this.#point(request, [inputs, outputs, symbols]);
    this.#view().setBigInt64(request + 24, 1n, true); // threads
  }

  /** Compute outputs, by name; typed arrays, with their shapes as `shape`. */
  async run(inputs) {
    const { inputs: infos, outputs } = this.manifest;
    const known = new Set(infos.flatMap(({ name, names }) => [name, ...names]));
    for (const name of Object.keys(inputs)) {
      if (!known.has(name)) fail(`inputs: must be one of ${infos.map((i) => i.name).join(", ")}, got '${name}'`);
    }
    const given = infos.map((info, k) => this.#given(k, info, [info.name, ...info.names].map((n) => inputs[n])));
    const { request, symbols, inputsDims, outputsDims } = this.#request;
    const { infer, output_dims } = this.#table;
    given.flatMap(({ shape }) => shape).forEach((n, k) => this.#view().setBigInt64(inputsDims + 8 * k, BigInt(n), true));
    let code = CAPACITY;
    while (code === CAPACITY) {
      this.#size();
      given.forEach(({ data, value }, k) => {
        if (value !== undefined) return this.#point(this.#request.inputs + 4 * k, [this.#table.weights + value]);
        const at = this.#fit(`input ${k}`, data.byteLength);
        new Uint8Array(this.#code.memory.buffer, at, data.byteLength).set(
          new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
        );
        this.#point(this.#request.inputs + 4 * k, [at]);
      });
      code = this.#call(infer, request);
    }
    if (code) fail(this.#text(code));
    this.#call(output_dims, symbols, outputsDims);
    const results = {};
    let place = outputsDims;
    outputs.forEach(({ name, dtype, shape }, k) => {
      const dims = shape.map((_, i) => this.#long(place + 8 * i));
      place += 8 * shape.length;
      const at = this.#view().getUint32(this.#request.outputs + 4 * k, true);
      results[name] = new (ARRAYS[dtype] ?? Uint8Array)(this.#code.memory.buffer, at, product(dims)).slice();
      results[name].shape = dims;
    });
    return results;
  }

  /** Forget what earlier runs have kept in variables. */
  reset() {
    const { at, size } = this.#blocks.state ?? { at: 0, size: 0 };
    new Uint8Array(this.#code.memory.buffer, at, size).fill(0);
  }

  /** Return the array of an input and its shape. */
  #given(k, info, values) {
    const value = values.find((found) => found !== undefined);
    const wanted = `${info.dtype}[${this.inputs[k].shape.join(",")}]`;
    if (value === undefined && info.default !== undefined) return { value: info.default, shape: info.shape };
    if (value === undefined) fail(`input '${info.name}': needs an array, got none`);
    const data = ArrayBuffer.isView(value) ? value : value?.data;
    const Type = ARRAYS[info.dtype] ?? Uint8Array;
    if (!(data instanceof Type)) {
      fail(`input '${info.name}': expected ${wanted} as ${Type.name}, got ${data?.constructor?.name ?? typeof value}`);
    }
    const open = info.shape.filter((n) => typeof n !== "number");
    let shape = value.shape;
    if (shape === undefined && open.length < 2) {
      const rest = data.length / product(info.shape.filter((n) => typeof n === "number"));
      shape = info.shape.map((n) => (typeof n === "number" ? n : rest));
    }
    if (shape === undefined) fail(`input '${info.name}': expected ${wanted} with its shape, got an array without one`);
    const fits = shape.length === info.shape.length && product(shape) === data.length;
    const same = shape.every((n, i) => Number.isSafeInteger(n) && n >= 0 && (n === info.shape[i] || info.shape[i]?.symbol || info.shape[i]?.expr));
    if (!fits || !same) {
      fail(`input '${info.name}': expected ${wanted}, got ${info.dtype}[${shape.join(",")}] of ${data.length} elements`);
    }
    info.shape.forEach(({ symbol, min, max }, i) => {
      if (symbol !== undefined && (shape[i] < min || (max !== null && shape[i] > max))) {
        const most = max === null ? "or more" : `to ${max}`;
        fail(`input '${info.name}': dimension ${i} '${symbol}' must be ${min} ${most}, got ${shape[i]}`);
      }
    });
    return { data, shape };
  }

  /** Compute sizes from those of the inputs, and take memory for them. */
  #size() {
    const { request, symbols, inputsDims, outputsDims, outputs, bytes } = this.#request;
    const { shapes, arena_size, state_size, output_sizes } = this.#table;
    const code = this.#call(shapes, inputsDims, symbols, outputsDims);
    if (code) fail(`inputs: ${this.#text(code)}`);
    const arena = this.#fit("arena", Number(this.#call(arena_size, symbols, 1n)));
    this.#point(request + 12, [arena, this.#fit("state", Number(this.#call(state_size, symbols)), true)]);
    this.#call(output_sizes, symbols, bytes);
    this.manifest.outputs.forEach((_, k) => {
      this.#point(outputs + 4 * k, [this.#fit(`output ${k}`, this.#long(bytes + 8 * k))]);
    });
  }

  /** Return the address of a block of memory at least so large; if it is `kept`, with what was in it, then zeros. */
  #fit(use, size, kept = false) {
    const old = this.#blocks[use] ?? { at: 0, size: 0 };
    if (old.at && size <= old.size) return old.at;
    const at = this.#code.aligned_alloc(64n, BigInt(size)) >>> 0;
    if (!at) fail(`memory: the engine has no ${size} bytes left`);
    if (kept) {
      const memory = new Uint8Array(this.#code.memory.buffer);
      memory.copyWithin(at, old.at, old.at + old.size).fill(0, at + old.size, at + size);
    }
    this.#code.free(old.at);
    this.#blocks[use] = { at, size };
    return at;
  }

  #call(pointer, ...values) {
    return this.#code.table.get(pointer)(...values);
  }

  #view() {
    return new DataView(this.#code.memory.buffer);
  }

  #long(at) {
    return Number(this.#view().getBigInt64(at, true));
  }

  #point(at, addresses) {
    addresses.forEach((address, k) => this.#view().setUint32(at + 4 * k, address, true));
  }

  #text(code) {
    const memory = new Uint8Array(this.#code.memory.buffer);
    const at = this.#call(this.#table.error_text, code) >>> 0;
    return new TextDecoder().decode(memory.subarray(at, memory.indexOf(0, at)));
  }
}
