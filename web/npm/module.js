// The compiled module, and one instance of it for each call.

let compiled;

/** Loads the module from where it is told, or from the file next to this one. */
export function init(module) {
  if (module !== undefined) compiled = load(module);
  compiled ??= load(new URL("./onnx-slice-fold.wasm", import.meta.url));
  return compiled.then(() => {});
}

async function load(module) {
  module = await module;
  if (module instanceof WebAssembly.Module) return module;
  if (module instanceof ArrayBuffer || ArrayBuffer.isView(module)) return WebAssembly.compile(module);
  if (typeof Response !== "undefined" && module instanceof Response) return compileResponse(module);
  const url = new URL(module, import.meta.url);
  if (url.protocol === "file:") {
    const { readFile } = await import(/* @vite-ignore */ "node:fs/promises");
    return WebAssembly.compile(await readFile(url));
  }
  return compileResponse(await fetch(url));
}

async function compileResponse(response) {
  if (!response.ok) throw new Error(`the module cannot be loaded: ${response.status} ${response.statusText}`);
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("application/wasm")) return WebAssembly.compileStreaming(response);
  return WebAssembly.compile(await response.arrayBuffer());
}

/** What a call could not do: the program's message, and the kind of error. */
export class FoldError extends Error {
  constructor(message, kind) {
    super(message);
    this.name = "FoldError";
    this.kind = kind;
  }
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * Runs a request in a fresh instance, so that nothing is left of it whatever happens.
 * `sources` are read, `find(location)` gives the number of a data file among them, and `out(file, part)` takes the result: bytes, or [source, from, to].
 */
export async function call(request, { sources = [], find = () => -1, out = () => {}, progress = () => {} } = {}) {
  await init();
  const module = await compiled;
  let memory, answer, failure, hostFailure;
  const bytes = (at, length) => new Uint8Array(memory.buffer, at >>> 0, length >>> 0);
  const text = (at, length) => decoder.decode(bytes(at, length));
  const host = {
    now: () => performance.now(),
    answer: (at, length) => { answer = JSON.parse(text(at, length)); },
    fail: (at, length) => { failure = JSON.parse(text(at, length)); },
    progress: (at, length) => progress(text(at, length)),
    size: (source) => sources[source].size,
    read(source, from, at, length) {
      try {
        sources[source].read(from, bytes(at, length));
        return 1;
      } catch (error) {
        hostFailure ??= error;
        return 0;
      }
    },
    find: (at, length) => find(text(at, length)),
    write: (file, at, length) => out(file, bytes(at, length).slice()),
    copy: (file, source, from, length) => out(file, [source, from, from + length]),
  };
  const instance = await WebAssembly.instantiate(module, { host });
  memory = instance.exports.memory;
  const encoded = encoder.encode(JSON.stringify(request));
  try {
    const at = instance.exports.reserve(encoded.length);
    bytes(at, encoded.length).set(encoded);
    instance.exports.run();
  } catch (error) {
    if (!(error instanceof WebAssembly.RuntimeError || error instanceof RangeError)) throw error;
    failure ??= { kind: "trap", message: `the module failed: ${error.message}` };
  }
  if (failure) {
    const error = new FoldError(failure.message, failure.kind);
    if (hostFailure) error.cause = hostFailure;
    throw error;
  }
  return { answer, memory: memory.buffer.byteLength };
}
