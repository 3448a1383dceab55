// What the tests share: a writer of small models, and where things are.

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../../..", import.meta.url));
export const model = `${root}models/bert_dy18d.onnx`;

/** The native program, if there is one. */
export const native = [process.env.ONNX_SLICE_FOLD, `${root}target/debug/onnx-slice-fold`].find((path) => path && existsSync(path));

const varint = (value) => {
  const bytes = [];
  for (value = BigInt(value); value >= 128n; value >>= 7n) bytes.push(Number(value & 127n) | 128);
  return [...bytes, Number(value)];
};
const field = (number, content) => {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  return [...varint((number << 3) | 2), ...varint(bytes.length), ...bytes];
};
const int = (number, value) => [...varint(number << 3), ...varint(value)];

/**
 * The parts of a model `y = ((x · w₀) · w₁) …` with square weights of this size: bytes, and numbers that stand for so many bytes of a payload. The first weight is
 * transposed by a node, which folding does.
 */
export function chain(size, count) {
  const payload = size * size * 4;
  const dims = (dim) => field(1, typeof dim === "string" ? field(2, dim) : int(1, dim));
  const value = (name, shape) => field(1, name).concat(field(2, field(1, int(1, 1).concat(field(2, shape.flatMap(dims))))));
  const node = (op, inputs, output) => inputs.flatMap((name) => field(1, name)).concat(field(2, output), field(4, op));
  let graph = field(1, node("Transpose", ["w0"], "t"));
  for (let at = 0; at < count; at++) {
    const result = at === count - 1 ? "y" : `h${at}`;
    graph.push(...field(1, node("MatMul", [at === 0 ? "x" : `h${at - 1}`, at === 0 ? "t" : `w${at}`], result)));
  }
  graph.push(...field(2, "g"));
  const ends = [...field(11, value("x", ["n", size])), ...field(12, value("y", ["n", size]))];
  const parts = [];
  let length = graph.length + ends.length;
  for (let at = 0; at < count; at++) {
    const head = [...int(1, size), ...int(1, size), ...int(2, 1), ...field(8, `w${at}`)];
    const raw = [...varint((9 << 3) | 2), ...varint(payload)];
    const inner = head.length + raw.length + payload;
    const begin = [...varint((5 << 3) | 2), ...varint(inner), ...head, ...raw];
    parts.push(new Uint8Array(begin), payload);
    length += begin.length + payload;
  }
  const start = [...int(1, 8), ...varint((7 << 3) | 2), ...varint(length), ...graph];
  return [new Uint8Array(start), ...parts, new Uint8Array(ends), new Uint8Array(field(8, int(2, 17)))];
}
