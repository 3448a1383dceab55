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
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  return [...varint((number << 3) | 2), ...varint(bytes.length), ...bytes];
};
const int = (number, value) => [...varint(number << 3), ...varint(value)];

const dim = (size) => field(1, typeof size === "string" ? field(2, size) : int(1, size));
const value = (name, shape, type = 1) => [...field(1, name), ...field(2, field(1, [...int(1, type), ...field(2, shape.flatMap(dim))]))];
const node = (op, inputs, output, attributes = []) => [inputs.flatMap((name) => field(1, name)), field(2, output), field(4, op), attributes].flat();
const joined = (parts) => Buffer.concat(parts.map((part) => Buffer.from(part)));
const graph = (nodes, inputs, outputs) => {
  const fields = (number, parts) => parts.map((bytes) => field(number, bytes));
  return joined([...fields(1, nodes), field(2, "g"), ...fields(11, inputs), ...fields(12, outputs)]);
};
const modelOf = (graph) => joined([int(1, 8), varint((7 << 3) | 2), varint(graph.length), graph, field(8, int(2, 17))]);

/** Models that are deep in one way each, by name: a chain of nodes, sums of symbols, nested expressions and nested subgraphs. */
export const DEEP = {
  chain: (length = 100_000) => {
    const name = (at) => (at === 0 ? "x" : at === length ? "y" : `v${at}`);
    const nodes = Array.from({ length }, (_, at) => node(["Sigmoid", "Tanh", "Softplus"][at % 3], [name(at)], name(at + 1)));
    return modelOf(graph(nodes, [value("x", ["n"])], [value("y", ["n"])]));
  },
  constants: (length = 100_000) => {
    const name = (at) => (at === length ? "y" : `v${at}`);
    const constant = node("Constant", [], "v0", field(5, [...field(1, "value_float"), ...varint((2 << 3) | 5), 0, 0, 0x80, 0x3f, ...int(20, 1)]));
    const nodes = Array.from({ length }, (_, at) => node("Neg", [name(at)], name(at + 1)));
    return modelOf(graph([constant, ...nodes], [], [value("y", [])]));
  },
  sum: (count = 20_000) => {
    const names = Array.from({ length: count }, (_, at) => `x${at}`);
    return modelOf(graph([node("Concat", names, "y", field(5, [...field(1, "axis"), ...int(3, 0), ...int(20, 2)]))], names.map((name) => value(name, [`s${name}`])), [value("y", ["m"])]));
  },
  label: (depth = 20_000) => {
    const label = `${"(".repeat(depth)}n + 1${")".repeat(depth)}`;
    return modelOf(graph([node("Concat", ["x", "x"], "y", field(5, [...field(1, "axis"), ...int(3, 0), ...int(20, 2)]))], [value("x", [label])], [value("y", ["m"])]));
  },
  quotients: (length = 600) => {
    const one = (name, number) => node("Constant", [], name, field(5, [...field(1, "value_ints"), ...int(8, number), ...int(20, 7)]));
    const nodes = Array.from({ length }, (_, at) => node(["Add", "Div", "Mul"][at % 3], [`s${at}`, ["one", "two", "three"][at % 3]], `s${at + 1}`));
    const ends = [node("Shape", ["x"], "s0"), node("ConstantOfShape", [`s${length}`], "y")];
    return modelOf(graph([one("one", 1), one("two", 2), one("three", 3), ends[0], ...nodes, ends[1]], [value("x", ["n"])], [value("y", ["m"])]));
  },
  subgraphs: (depth = 30) => {
    const branch = (level) => {
      const inner = level === 0 ? node("Neg", ["x"], `r${level}`) : choice(level);
      return graph([inner], [], [value(`r${level}`, ["n"])]);
    };
    const choice = (level) => {
      const attribute = (name) => field(5, [...field(1, name), ...field(6, branch(level - 1)), ...int(20, 5)]);
      const other = field(5, [...field(1, "else_branch"), ...field(6, graph([node("Abs", ["x"], `e${level}`)], [], [value(`e${level}`, ["n"])])), ...int(20, 5)]);
      return node("If", ["c"], `r${level}`, [...attribute("then_branch"), ...other]);
    };
    return modelOf(graph([choice(depth)], [value("x", ["n"]), value("c", [], 9)], [value(`r${depth}`, ["n"])]));
  },
  "too many subgraphs": () => DEEP.subgraphs(60),
};

/**
 * The parts of a model `y = ((x · w₀) · w₁) …` with square weights of this size: bytes, and numbers that stand for so many bytes of a payload. The first weight is
 * transposed by a node, which folding does.
 */
export function chain(size, count) {
  const payload = size * size * 4;
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
