// Parts of the page that need no browser: the layout, the options, and slices as text.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createServer } from "vite";
import { generator } from "./models.mjs";

let server, slicing, layout, options;

before(async () => {
  server = await createServer({ server: { middlewareMode: true, ws: false }, appType: "custom", logLevel: "error", optimizeDeps: { noDiscovery: true } });
  slicing = await server.ssrLoadModule("/src/slicing.ts");
  ({ layout } = await server.ssrLoadModule("/src/graph/layout.ts"));
  options = await server.ssrLoadModule("/src/options.ts");
});
after(() => server.close());

test("the layout puts consumers below producers, and no box over another", () => {
  const random = generator(7);
  for (const nodes of [1, 2, 12, 300]) {
    const edges = [];
    for (let node = 1; node < nodes; node++) for (let more = random(3); more >= 0; more--) edges.push([random(node), node]);
    const [widths, heights] = [Array(nodes).fill(100), Array(nodes).fill(40)];
    const { x, y, routes, width, height } = layout({ widths, heights, edges });
    edges.forEach(([from, to], edge) => {
      assert(y[from] < y[to]);
      assert.deepEqual(routes[edge].slice(0, 2), [x[from], y[from] + 20]);
      assert.deepEqual(routes[edge].slice(-2), [x[to], y[to] - 20]);
    });
    for (let a = 0; a < nodes; a++) {
      assert(x[a] >= 50 - 1e-6 && x[a] <= width - 50 + 1e-6 && y[a] <= height);
      for (let b = 0; b < a; b++) assert(Math.abs(y[a] - y[b]) >= 40 || Math.abs(x[a] - x[b]) >= 100 - 1e-6, `${a} lies over ${b}`);
    }
  }
});

test("the layout ends on cycles and on an empty graph", () => {
  const { y, routes } = layout({ widths: [9, 9, 9], heights: [9, 9, 9], edges: [[0, 1], [1, 2], [2, 0]] });
  assert.equal(new Set(y).size, 3);
  assert.equal(routes.length, 3);
  assert.deepEqual(layout({ widths: [], heights: [], edges: [] }).routes, []);
});

test("a subscript means the same through masks", () => {
  for (const text of ["x[1:, ::-2, -1]", "x[..., None, 2:7]", "x[:, 0, None, ..., ::3]", "x[:]", "x[-5:-1:2]"]) {
    const entries = slicing.subscript(text);
    assert.deepEqual(slicing.fromMasks(slicing.toMasks(entries)), entries, text);
  }
  const masks = slicing.toMasks(slicing.subscript("x[1:, ::-2, -1]"));
  assert.deepEqual([slicing.toBits(masks.masks.begin), slicing.toBits(masks.masks.end), slicing.toBits(masks.masks.shrinkAxis)], [2, 3, 4]);
  assert.deepEqual(slicing.fromBits(5, 4), [true, false, true, false]);
});

test("a subscript is written as starts, ends, axes, steps", () => {
  assert.deepEqual(slicing.toAxes(slicing.subscript("x[..., ::-2, -1]"), 4), {
    starts: ["9223372036854775807", "-1"], ends: ["-9223372036854775808", "9223372036854775807"], axes: ["2", "3"], steps: ["-2", "1"],
  });
  assert.deepEqual(slicing.toAxes(slicing.subscript("x[:, 3]"), 2), { starts: ["3"], ends: ["4"], axes: ["1"], steps: null });
  const back = slicing.fromAxes({ starts: ["1"], ends: ["2"], axes: ["-1"], steps: null }, 3);
  assert.deepEqual(back.at(-1), { kind: "range", begin: "1", end: "2", step: "1" });
  assert.equal(back.length, 3);
});

test("malformed slices are refused with a reason", () => {
  assert.throws(() => slicing.integers("1, two", "starts"), /starts: 'two' is no integer/);
  assert.throws(() => slicing.subscript("x[1:2:3:4]"), /more than two colons/);
  assert.throws(() => slicing.fromAxes({ starts: ["0", "0"], ends: ["1", "1"], axes: ["0", "-2"], steps: null }, 2), /named twice/);
  assert.throws(() => slicing.fromAxes({ starts: ["0"], ends: ["1"], axes: ["2"], steps: null }, 2), /out of range/);
});

test("options have one meaning in the URL, the command line and the call", () => {
  const query = new URLSearchParams("dim=batch%3D1&dim=seq%3D1..8&exact=&opset=17&assume=a+%3C%3D+b&model=x");
  const settings = options.fromQuery(query);
  assert.deepEqual(options.asOptions(settings), { dim: ["batch=1", "seq=1..8"], exact: true, opset: 17, assume: ["a <= b"] });
  assert.equal(options.commandLine("my model's.onnx", settings), `onnx-slice-fold 'my model'\\''s.onnx' --dim batch=1 --dim seq=1..8 --exact --opset 17 --assume 'a <= b'`);
  assert.equal(options.commandLine("-x.onnx", {}), "onnx-slice-fold ./-x.onnx");
  const again = new URLSearchParams("model=x");
  options.toQuery(settings, again);
  assert.deepEqual(options.fromQuery(again), settings);
  assert.deepEqual(options.withOptions(settings, { dim: ["batch=2"] }).dim, ["seq=1..8", "batch=2"]);
});
