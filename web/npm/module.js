// The compiled module, and an instance of it for each call.

import { isNode } from "./sources.js";

let compiled;

/** Loads the module: from `module`, or from the file next to this one. */
export function init(module) {
  if (module !== undefined) compiled = load(module);
  compiled ??= load(new URL("./onnx-slice-fold.wasm", import.meta.url));
  // A failure is not kept.
  compiled.catch(() => { compiled = undefined; });
  return compiled.then(() => {});
}

async function load(module) {
  module = await module;
  if (module instanceof WebAssembly.Module) return module;
  if (module instanceof ArrayBuffer || ArrayBuffer.isView(module)) return WebAssembly.compile(module);
  if (typeof Response !== "undefined" && module instanceof Response) return compileResponse(module);
  const url = new URL(module, import.meta.url);
  if (url.protocol === "file:" && isNode) {
    const { readFile } = await import(/* @vite-ignore */ /* webpackIgnore: true */ `node:${"fs/promises"}`);
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

/** A failure of a call: the program's message, and the kind of error. */
export class FoldError extends Error {
  constructor(message, kind, options) {
    super(message, options);
    this.name = "FoldError";
    this.kind = kind;
  }
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * Runs a request in a fresh instance, so that a failure leaves nothing behind. `sources` are read, `find(model, location)` returns the number of a data file among
 * them, -1, or the reason why the file must not be read, and `out(file, part)` takes the result: bytes, or { source, from, to }.
 */
export async function call(request, { sources = [], find = () => -1, out = () => {}, progress = () => {} } = {}) {
  await init();
  const module = await compiled;
  let memory, answer, failure, hostFailure, reason;
  const bytes = (at, length) => new Uint8Array(memory.buffer, at >>> 0, length >>> 0);
  const text = (at, length) => decoder.decode(bytes(at, length));
  const host = {
    now: () => performance.now(),
    answer: (at, length) => { answer = JSON.parse(text(at, length)); },
    fail: (at, length) => { failure = JSON.parse(text(at, length)); },
    progress: (at, length) => progress(text(at, length)),
    size: (source) => sources[source]?.size ?? 0,
    read(source, from, at, length) {
      try {
        sources[source].read(from, bytes(at, length));
        return 1;
      } catch (error) {
        hostFailure ??= error;
        return 0;
      }
    },
    find(model, at, length) {
      const found = find(model, text(at, length));
      if (typeof found === "number") return found;
      reason = encoder.encode(found);
      return -2 - reason.length;
    },
    reason: (at, length) => bytes(at, length).set(reason),
    write: (file, at, length) => out(file, bytes(at, length).slice()),
    copy: (file, source, from, length) => out(file, { source, from, to: from + length }),
  };
  const instance = await WebAssembly.instantiate(module, { host });
  memory = instance.exports.memory;
  try {
    const encoded = encoder.encode(JSON.stringify(request));
    const at = instance.exports.reserve(encoded.length);
    bytes(at, encoded.length).set(encoded);
    instance.exports.run();
  } catch (error) {
    // What the host threw, a full disk for example, passes through the module.
    if (!(error instanceof WebAssembly.RuntimeError || error instanceof RangeError)) throw error;
    const full = memory.buffer.byteLength > 4e9;
    const message = full ? "the model needs more memory than a WebAssembly module can have" : `the module failed: ${error.message}`;
    failure ??= { kind: full ? "limit" : "trap", message };
  }
  if (failure) throw new FoldError(failure.message, failure.kind, hostFailure && { cause: hostFailure });
  return { answer, memory: memory.buffer.byteLength };
}
