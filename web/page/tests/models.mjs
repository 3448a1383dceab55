// Models for the tests, encoded field by field.

const varint = (number) => {
  const bytes = [];
  for (let rest = BigInt(number); ; rest >>= 7n) {
    const low = Number(rest & 127n);
    if (rest < 128n) return [...bytes, low];
    bytes.push(low | 128);
  }
};
const bytesOf = (value) => (typeof value === "string" ? [...Buffer.from(value)] : value);
const text = (field, value) => {
  const bytes = bytesOf(value);
  return [...varint((field << 3) | 2), ...varint(bytes.length), ...bytes];
};
const number = (field, value) => [...varint(field << 3), ...varint(value)];

const dim = (size) => text(1, typeof size === "number" ? number(1, size) : text(2, size));
const port = (name, shape) => [...text(1, name), ...text(2, text(1, [...number(1, 1), ...text(2, shape.flatMap(dim))]))];
const node = (operator, inputs, outputs, name) => [
  ...inputs.flatMap((input) => text(1, input)), ...outputs.flatMap((output) => text(2, output)), ...text(3, name), ...text(4, operator),
];

function model(nodes, inputs, outputs, initializers = []) {
  // Concatenated as buffers: a list of a million numbers is no argument list.
  const parts = [
    ...nodes.map((each) => text(1, each)), text(2, "graph"), ...initializers.map((each) => text(5, each)),
    ...inputs.map((each) => text(11, each)), ...outputs.map((each) => text(12, each)),
  ];
  const graph = Buffer.concat(parts.map((part) => Buffer.from(part)));
  const head = Buffer.from([...number(1, 8), ...text(8, number(2, 17)), ...varint((7 << 3) | 2), ...varint(graph.length)]);
  return Buffer.concat([head, graph]);
}

/** `length` alternating nodes in blocks of ten, each block a name scope. */
export function chain(length) {
  const value = (at) => (at === 0 ? "x" : at === length ? "y" : `v${at}`);
  const operators = ["Relu", "Sigmoid", "Tanh", "Softplus", "Sin"];
  const nodes = Array.from({ length }, (_, at) => node(operators[at % 5], [value(at)], [value(at + 1)], `/block.${Math.floor(at / 10)}/node_${at}`));
  return model(nodes, [port("x", ["n", 8])], [port("y", ["n", 8])]);
}

/** An Add whose second operand is the negative of a weight in the data file `weights.bin`: with the file, Neg is folded. */
export function external() {
  const entry = (key, value) => text(13, [...text(1, key), ...text(2, value)]);
  const weight = [...number(1, 8), ...number(2, 1), ...text(8, "w"), ...entry("location", "weights.bin"), ...entry("offset", "0"), ...entry("length", "32"), ...number(14, 1)];
  const data = Buffer.from(new Float32Array([1, 2, 3, 4, 5, 6, 7, 8]).buffer);
  const nodes = [node("Neg", ["w"], ["negative"], "neg"), node("Add", ["x", "negative"], ["y"], "add")];
  return { model: model(nodes, [port("x", ["n", 8])], [port("y", ["n", 8])], [weight]), data };
}

/** Returns a function that gives integers from 0 up to a limit, the same ones each time. */
export function generator(seed) {
  return (limit) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * limit);
  };
}
