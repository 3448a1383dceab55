// Original and result in ONNX Runtime Web, on the same random inputs. Loaded into the Worker on request.

import { env, InferenceSession, Tensor } from "onnxruntime-web/wasm";
import wasm from "onnxruntime-web/ort-wasm-simd-threaded.wasm?url";

export interface Comparison {
  isEqual: boolean;
  inputs: string[];
  outputs: { name: string; shape: string; difference: string }[];
  milliseconds: [number, number];
}

// One thread: more need headers that a static folder cannot send.
env.wasm.numThreads = 1;
env.wasm.wasmPaths = { wasm: new URL(wasm, import.meta.url).href };
env.logLevel = "error";

type Metadata = InferenceSession["inputMetadata"][number];

export async function compare(progress: (text: string) => void, before: Blob, after: Blob, data: Map<string, Blob>, size: number): Promise<Comparison> {
  const externalData = await Promise.all([...data].map(async ([path, blob]) => ({ path, data: new Uint8Array(await blob.arrayBuffer()) })));
  const open = async (model: Blob) =>
    InferenceSession.create(new Uint8Array(await model.arrayBuffer()), { graphOptimizationLevel: "disabled", externalData, executionProviders: ["wasm"] });
  const random = generator(1);
  let feeds: Record<string, Tensor> | undefined;
  const run = async (which: string, model: Blob) => {
    progress(`Loading ONNX Runtime, opening the ${which}…`);
    let session: InferenceSession | undefined;
    try {
      session = await open(model);
      feeds ??= Object.fromEntries(session.inputMetadata.map((input) => [input.name, tensor(input, size, random)]));
      progress(`Running the ${which}…`);
      const results = await session.run(feeds);
      // The first run includes preparations of the runtime.
      const begin = performance.now();
      await session.run(feeds);
      return { results, milliseconds: Math.round((performance.now() - begin) * 10) / 10 };
    } catch (error) {
      throw new Error(`ONNX Runtime cannot run the ${which} with ${size} for each open dim: ${(error as Error).message}`);
    } finally {
      await session?.release();
    }
  };
  const was = await run("original", before);
  const is = await run("result", after);
  const outputs = Object.entries(was.results).map(([name, tensor]) => ({ name, ...difference(tensor, is.results[name]) }));
  return {
    isEqual: outputs.every((output) => output.isEqual),
    inputs: Object.entries(feeds ?? {}).map(([name, tensor]) => `${name} ${tensor.type}[${tensor.dims.join(", ")}]`),
    outputs,
    milliseconds: [was.milliseconds, is.milliseconds],
  };
}

/** Numbers below 1 that are the same each time (mulberry32). */
function generator(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Random floats around 0; integers of 0 and 1, which index every axis of at least two elements. */
function tensor(input: Metadata, size: number, random: () => number): Tensor {
  if (!input.isTensor) throw new Error(`input ${input.name} is no tensor`);
  const dims = input.shape.map((dim) => (typeof dim === "number" && dim >= 0 ? dim : size));
  const length = dims.reduce((product, dim) => product * dim, 1);
  const fill = (of: () => number) => Array.from({ length }, of);
  const bit = () => (random() < 0.5 ? 0 : 1);
  switch (input.type) {
    case "float32":
      return new Tensor("float32", Float32Array.from(fill(() => random() * 2 - 1)), dims);
    case "float64":
      return new Tensor("float64", Float64Array.from(fill(() => random() * 2 - 1)), dims);
    case "int64":
      return new Tensor("int64", BigInt64Array.from(fill(bit), BigInt), dims);
    case "bool":
      return new Tensor("bool", Uint8Array.from(fill(bit)), dims);
    case "int32":
      return new Tensor("int32", Int32Array.from(fill(bit)), dims);
    case "uint8":
      return new Tensor("uint8", Uint8Array.from(fill(bit)), dims);
    case "int8":
      return new Tensor("int8", Int8Array.from(fill(bit)), dims);
    default:
      throw new Error(`input ${input.name} has the type ${input.type}, for which this page makes no values`);
  }
}

function difference(was: Tensor, is: Tensor | undefined): { isEqual: boolean; shape: string; difference: string } {
  const shape = `[${was.dims.join(", ")}]`;
  if (!is) return { isEqual: false, shape, difference: "missing" };
  if (was.type !== is.type || was.dims.join() !== is.dims.join()) return { isEqual: false, shape, difference: `${is.type}[${is.dims.join(", ")}] in the result` };
  const [a, b] = [was.data as ArrayLike<number | bigint | string>, is.data as ArrayLike<number | bigint | string>];
  let [most, scale] = [0, 0];
  for (let at = 0; at < a.length; at++) {
    if (a[at] === b[at] || (Number.isNaN(a[at]) && Number.isNaN(b[at]))) continue;
    if (typeof a[at] === "string") return { isEqual: false, shape, difference: "texts differ" };
    const [x, y] = [Number(a[at]), Number(b[at])];
    const apart = Math.abs(x - y);
    most = Number.isNaN(apart) ? Infinity : Math.max(most, apart);
    scale = Math.max(scale, Math.abs(x));
  }
  const isFloat = was.type.startsWith("float");
  return { isEqual: most === 0 || (isFloat && most <= 1e-4 * Math.max(1, scale)), shape, difference: most === 0 ? "0" : most.toExponential(1) };
}
