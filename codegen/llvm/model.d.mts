/** Runs networks that aot has compiled for WebAssembly. */

export type TypedArray =
  | Float64Array | Float32Array | BigInt64Array | BigUint64Array | Int32Array | Uint32Array
  | Int16Array | Uint16Array | Int8Array | Uint8Array;

/** An input or output: element type as in the network, sizes as numbers or, where they vary, as text. */
export interface Tensor {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly (number | string)[];
}

/** Elements in row-major order. f16 and bf16 are bits in a Uint16Array; shorter types take a byte each. */
export type Input = TypedArray | { data: TypedArray; shape: readonly number[] };
export type Output = TypedArray & { shape: number[] };

export interface Options {
  /** Ends the downloads. */
  signal?: AbortSignal;
  /** Threads that work on a run, of a module of --target wasm-threads; 1. */
  threads?: number;
  /** True to compute in a worker: the caller's thread stays free, and need not spin for other threads; false. */
  worker?: boolean;
  /** External weights; those beside the module: net.weights of net.wasm. */
  weights?: Source;
  /** Called while the module arrives, then its external weights; `total` is 0 if the server does not tell it. */
  progress?: (bytes: number, total: number) => void;
  /** False to leave out the digests of module and weights, which pages without TLS cannot compute anyway. */
  verify?: boolean;
}

export interface Sampling {
  /** Tokens at most; 64. */
  tokens?: number;
  stop?: ArrayLike<number | bigint>;
  /** 0 takes the most likely token. */
  temperature?: number;
  topK?: number;
  topP?: number;
  seed?: number | bigint;
}

export interface Network {
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  /** All facts about the model, as `aot info --json` tells them. */
  readonly manifest: Readonly<Record<string, unknown>>;
  /** Compute outputs, by name. An input with more than one size that varies needs its shape. */
  run(inputs: Readonly<Record<string, Input>>): Promise<Record<string, Output>>;
  /**
   * Append the tokens `ids`, of a language model, and yield those that follow. It ends after a token of `stop`. The last
   * token is yielded, but not appended: the next call may begin with it. Each is yielded as soon as it is chosen; with a
   * temperature above 0, in a worker only: elsewhere all are drawn before the first is yielded. The tokens are those that
   * `aot generate` draws. One that begins, and `reset`, end the one before it, whose next token is an error.
   */
  generate(ids: ArrayLike<number | bigint>, options?: Sampling): AsyncGenerator<number>;
  /** Forget what earlier runs have kept in variables, and all tokens. */
  reset(): void;
  /** Threads that work on a run. */
  readonly threads: number;
  /** End threads and worker; the network cannot be used any more, and calls in a worker that are not done yet fail. */
  close(): void;
}

/** An error of a module or of inputs, in a sentence that says the rule and what was there instead. */
export class AotError extends Error {}

export type Source = string | URL | Response | Blob | ArrayBuffer | ArrayBufferView;

/**
 * Load a network from an address or path, a Response, a Blob, or bytes; of several modules, the first that the engine takes.
 * Throws AotError for a damaged or other module, for one with instructions that the engine lacks, and for no source.
 */
export function load(source: Source | readonly Source[], options?: Options): Promise<Network>;
