// Slices resolved by the module in Node, compared with Python's rules and with the ONNX Slice that the module calls equivalent.

import assert from "node:assert/strict";
import { test } from "node:test";
import { resolveSlice } from "onnx-slice-fold";
import { generator } from "./models.mjs";

const random = generator(11);
const between = (low, high) => low + random(high - low + 1);

/** The elements of `range(size)[begin:end:step]`; `null` is an open bound. */
function elements(size, begin, end, step) {
  const [low, high] = step > 0 ? [0, size] : [-1, size - 1];
  const place = (bound, open) => (bound === null ? open : Math.min(high, Math.max(low, bound < 0 ? bound + size : bound)));
  const [from, to] = [place(begin, step > 0 ? low : high), place(end, step > 0 ? high : low)];
  const found = [];
  for (let at = from; step > 0 ? at < to : at > to; at += step) found.push(at);
  return found;
}

test("TensorFlow takes what Python takes, and the equivalent ONNX Slice takes the same", async () => {
  let equivalents = 0;
  for (let round = 0; round < 150; round++) {
    const shape = Array.from({ length: between(1, 3) }, () => between(1, 7));
    const entries = shape.map((size) => ({
      begin: between(-9, 9), end: between(-9, 9), step: between(1, 3) * (random(2) ? 1 : -1),
      isOpen: [random(3) === 0, random(3) === 0], shrinks: random(5) === 0, at: between(-size, size - 1),
    }));
    const bits = (is) => entries.reduce((mask, entry, at) => mask + (is(entry) ? 2 ** at : 0), 0);
    const resolved = await resolveSlice({
      dialect: "tensorflow", shape,
      starts: entries.map((entry) => (entry.shrinks ? entry.at : entry.begin)), ends: entries.map((entry) => entry.end),
      steps: entries.map((entry) => (entry.shrinks ? 1 : entry.step)),
      masks: { begin: bits((entry) => entry.isOpen[0]), end: bits((entry) => entry.isOpen[1]), shrinkAxis: bits((entry) => entry.shrinks) },
    });
    const expected = entries.map((entry, axis) => entry.shrinks
      ? [entry.at < 0 ? entry.at + shape[axis] : entry.at]
      : elements(shape[axis], entry.isOpen[0] ? null : entry.begin, entry.isOpen[1] ? null : entry.end, entry.step));
    assert.deepEqual(resolved.axes.map((axis) => axis.picks), expected);
    assert.deepEqual(resolved.shape, expected.filter((_, axis) => !entries[axis].shrinks).map((found) => String(found.length)));
    const { onnx } = resolved;
    assert(onnx, "all sizes are numbers, so a Slice exists");
    const again = await resolveSlice({ dialect: "onnx-13", shape, starts: onnx.starts, ends: onnx.ends, axes: onnx.axes, steps: onnx.steps });
    assert.deepEqual(again.axes.map((axis) => axis.picks), expected);
    assert.deepEqual(onnx.squeeze, entries.flatMap((entry, axis) => (entry.shrinks ? [axis] : [])));
    equivalents++;
  }
  assert.equal(equivalents, 150);
});

test("a dialect says which readings differ, and refuses what it cannot read", async () => {
  const request = { shape: [10], starts: [-1], ends: ["9223372036854775807"], axes: [0], steps: [-1] };
  const disputed = await resolveSlice({ dialect: "onnx-13", ...request });
  assert.equal(disputed.onnx, null);
  assert(disputed.notes.some((note) => note.includes("disagree")));
  assert.deepEqual((await resolveSlice({ dialect: "onnx-13", rule: "onnxruntime", ...request })).shape, ["10"]);
  assert.deepEqual((await resolveSlice({ dialect: "openvino-slice", ...request })).shape, ["0"]);
  assert.deepEqual((await resolveSlice({ dialect: "onnx-11", shape: ["n", "2*n"], starts: [1], ends: ["9223372036854775807"], axes: [-1] })).shape, ["n", "max(0, 2*n - 1)"]);
  for (const [message, wrong] of [
    ["a step is 0", { dialect: "onnx-13", ...request, steps: [0] }],
    ["Slice-1 has no steps", { dialect: "onnx-1", ...request }],
    ["there is no dialect 'numpy'", { dialect: "numpy", ...request }],
    ["axis 3 is out of range", { dialect: "onnx-13", ...request, axes: [3] }],
    ["is no dim", { dialect: "onnx-13", ...request, shape: [-1] }],
    ["'starts' should be a list of int64 numbers", { dialect: "onnx-13", ...request, starts: ["99999999999999999999"] }],
    ["it is not as long as begin_mask", { dialect: "openvino", ...request, masks: { begin: [0], end: [0, 0] } }],
  ]) {
    await assert.rejects(resolveSlice(wrong), (error) => error.message.includes(message), message);
  }
});
