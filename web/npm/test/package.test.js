// The functions of the package.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { closeSync, ftruncateSync, linkSync, mkdirSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { FoldError, check, diff, explain, fold, inferShapes, init, inspect, options, resolveSlice, rules, show, version } from "../index.js";
import { LACKING } from "../help.js";
import { chain, model, native, root } from "./support.js";

const bytes = readFileSync(model);
/** The number of nodes of the folded model. */
const FOLDED = 80;
const directory = mkdtempSync(join(tmpdir(), "onnx-slice-fold-"));
process.on("exit", () => rmSync(directory, { recursive: true, force: true }));

/** Checks that a call fails with this kind of error, and a message that fits. */
const fails = (call, kind, message) => assert.rejects(call, (error) => {
  assert.ok(error instanceof FoldError, String(error));
  assert.equal(error.kind, kind, error.message);
  assert.match(error.message, message);
  return true;
});

test("bytes, a Blob and a path give the same result", async () => {
  const folded = await fold(bytes);
  assert.ok(folded.model instanceof Uint8Array);
  assert.equal(folded.report.before.nodes, 104);
  assert.equal(folded.report.after.nodes, FOLDED);
  assert.equal(folded.report.after.bytes, folded.model.length);
  const ofBlob = await fold(new Blob([bytes]));
  assert.ok(ofBlob.model instanceof Blob);
  assert.deepEqual(new Uint8Array(await ofBlob.model.arrayBuffer()), folded.model);
  assert.deepEqual((await fold(model)).model, folded.model);
  const output = join(directory, "out.onnx");
  const written = await fold(model, { output });
  assert.equal(written.model, null);
  assert.deepEqual(new Uint8Array(readFileSync(output)), folded.model);
  // The file that is read may be the one that is written.
  await fold(output, { output });
  assert.deepEqual(readdirSync(directory).filter((name) => name.endsWith(".tmp")), []);
});

test("options are those of the command line", async () => {
  const both = async (options, args) => {
    const folded = await fold(bytes, options);
    if (!native) return folded;
    const output = join(directory, "native.onnx");
    execFileSync(native, [model, "-o", output, ...args], { stdio: "ignore" });
    assert.ok(readFileSync(output).equals(folded.model), args.join(" "));
    return folded;
  };
  const fixed = await both({ dim: { s33: 1, s50: "1..512" } }, ["--dim", "s33=1", "--dim", "s50=1..512"]);
  assert.match(fixed.report.inputs[0].after, /\[1,s50\]/);
  await both({ dim: ["s33=1", "s50=8"], exact: true }, ["--dim", "s33=1", "--dim", "s50=8", "--exact"]);
  await both({ opset: 20, lean: true, skip: "reshape-to-constant" }, ["--opset", "20", "--lean", "--skip", "reshape-to-constant"]);
  await both({ noStamp: true, shapes: "none" }, ["--no-stamp", "--shapes", "none"]);
  await both({ overwriteInputShape: ["input_ids:s33,16"], assume: ["s33 <= 4"] }, ["--overwrite-input-shape", "input_ids:s33,16", "--assume", "s33 <= 4"]);
  await both({ maxGrowth: 10, foldSizeThreshold: "16K", unroll: 4 }, ["--max-growth", "10", "--fold-size-threshold", "16K", "--unroll", "4"]);
  await both({ outputs: ["layer_norm_4"], exact: null, strict: undefined, noRules: false }, ["--outputs", "layer_norm_4"]);
});

test("wrong options name the right ones", async () => {
  await fails(fold(bytes, { dims: ["a=1"] }), "usage", /there is no option 'dims'; did you mean 'dim'\?/);
  await fails(fold(bytes, { shapes: "some" }), "usage", /expected auto, all, keep, lean, none/);
  await fails(fold(bytes, { exact: "yes" }), "usage", /option 'exact' is "yes"; expected true or false/);
  await fails(fold(bytes, { opset: "newest" }), "usage", /expected a number from 1 to \d+, or 'latest'/);
  await fails(fold(bytes, { skip: ["no-such-rule"] }), "usage", /no-such-rule/);
  await fails(fold(bytes, { lean: true, shapes: "all" }), "usage", /exclude one another/);
  await fails(fold(bytes, { dim: ["s34=1"] }), "assumption", /dimension "s34" not found; [^]* did you mean s33\?/);
  await assert.rejects(fold(42), TypeError);
});

test("a file that is no model is an error, and the next call works", async () => {
  await fails(fold(new Uint8Array([0x50, 0x4b, 3, 4])), "malformed", /this is a ZIP archive, not an ONNX model/);
  await fails(fold(new Uint8Array()), "malformed", /the file is empty/);
  for (const length of [1, 100, 5000, bytes.length - 1]) {
    await assert.rejects(fold(bytes.subarray(0, length)), (error) => error instanceof FoldError && !["trap", "internal"].includes(error.kind));
  }
  await assert.rejects(fold(join(directory, "none.onnx")), /ENOENT/);
  assert.equal((await inspect(bytes)).report.nodes, 104);
});

test("calls run at the same time", async () => {
  const all = await Promise.all([fold(bytes), inspect(bytes), fold(bytes, { exact: true }), fold(new Uint8Array([1])).catch((error) => error)]);
  assert.equal(all[0].report.after.nodes, FOLDED);
  assert.ok(all[3] instanceof FoldError);
});

test("shapes, text, reasons and differences", async () => {
  const inferred = await inferShapes(bytes);
  assert.equal(inferred.report.after.nodes, 104);
  assert.equal(inferred.report.after.shapes_known, 104);
  assert.match(await show(bytes), /^<\n/);
  assert.match(await show(bytes, { form: "dot", around: "layer_norm_4", depth: 1 }), /^digraph/);
  const { report, text } = await explain(bytes, { trials: 3 });
  assert.equal(report.nodes, FOLDED);
  assert.match(text, new RegExp(`\\b${FOLDED}\\b`));
  assert.equal(await diff(bytes, bytes), "");
  assert.match(await diff(bytes, inferred.model), /~/);
  assert.match((await inspect(bytes)).text, /pytorch/);
  const checked = await check(bytes, { count: 2 });
  assert.equal(checked.equal, true);
  assert.match(checked.text, /checked/);
  assert.ok((await rules()).some((rule) => rule.name === "reshape-to-constant"));
  assert.equal(version, JSON.parse(readFileSync(new URL("../package.json", import.meta.url))).version);
});

test("details match the nodes before and after", async () => {
  const { report } = await fold(bytes, { detailed: true });
  const { before, after, maps, causes } = report.detail;
  assert.equal(before.nodes.length, 104);
  assert.equal(after.nodes.length, FOLDED);
  assert.equal(causes.length, FOLDED);
  for (const [graph, other, kinds] of [[before, after, ["unchanged", "changed", "removed"]], [after, before, ["unchanged", "changed", "new"]]]) {
    for (const [at, node] of graph.nodes.entries()) {
      assert.ok(kinds.includes(node.status));
      if (node.counterpart !== undefined) assert.equal(other.nodes[node.counterpart].counterpart, at);
      for (const edit of node.edits) assert.ok(report.edits[edit].rule);
      if (node.status === "removed") assert.ok(node.counterpart === undefined);
      if (node.status === "unchanged") assert.equal(node.operator, other.nodes[node.counterpart].operator);
    }
  }
  const removed = before.nodes.filter((node) => node.status === "removed");
  assert.ok(removed.filter((node) => node.edits.length > 0).length > removed.length / 2, "most name the edit");
  assert.ok(before.nodes.flatMap((node) => node.outputs).filter((port) => port.type).length >= 99, "types are inferred");
  const lines = (operator, all) => all.filter((map) => map.operator === operator).flatMap((map) => map.lines);
  assert.ok(lines("Transpose", maps.before).includes("out[i, j, k, l] = data[i, k, j, l]"));
  assert.ok(lines("Gather", maps.before).length > 0);
  const zoo = await fold(`${root}models/slice_zoo_ts13d.onnx`, { detailed: true });
  const slices = zoo.report.detail.maps.before.filter((map) => map.operator === "Slice");
  assert.ok(slices.length > 3 && slices.every((map) => map.svg.startsWith("<svg") && map.result.symbol === "out"));
});

test("one slice as each dialect reads it", async () => {
  const slice = await resolveSlice({ dialect: "onnx-13", shape: ["n", 8], starts: [-3], ends: ["9223372036854775807"], axes: [1], steps: [2] });
  assert.deepEqual(slice.shape, ["n", "2"]);
  assert.deepEqual(slice.axes[1].picks, [5, 7]);
  const strided = await resolveSlice({ dialect: "tensorflow", shape: [4, 8], starts: [1, 0], ends: [2, 0], steps: [1, 1], masks: { shrinkAxis: 1, end: 2 } });
  assert.deepEqual(strided.shape, ["8"]);
  assert.deepEqual(strided.onnx.squeeze, [0]);
  await fails(resolveSlice({ dialect: "onnx-13", shape: [4], starts: [0], ends: [4], steps: [0] }), "usage", /step/);
});

test("weights stay outside of the module's memory", async () => {
  const [size, count] = [4096, 4];
  const path = join(directory, "large.onnx");
  const file = openSync(path, "w");
  let at = 0;
  for (const part of chain(size, count)) {
    if (typeof part === "number") at += part;
    else at += writeSync(file, part, 0, part.length, at);
  }
  ftruncateSync(file, at);
  closeSync(file);
  const output = join(directory, "large.folded.onnx");
  const { report, memory } = await fold(path, { output });
  assert.ok(at > 256 << 20 && memory < 64 << 20, `${memory} bytes for a model of ${at}`);
  assert.equal(report.after.operators.Transpose, undefined);
  assert.equal(statSync(output).size, report.after.bytes);
  if (native) {
    const expected = join(directory, "large.native.onnx");
    execFileSync(native, [path, "-o", expected], { stdio: "ignore" });
    assert.ok(readFileSync(output).equals(readFileSync(expected)));
  }
});

test("external data are found next to a path, and given with bytes", async () => {
  const apart = await fold(bytes, { saveAsExternalData: true, name: "apart.onnx" });
  assert.deepEqual(apart.data.map((file) => file.location), ["apart.onnx.data"]);
  writeFileSync(join(directory, "apart.onnx"), apart.model);
  const missing = await fold(apart.model);
  assert.equal(missing.report.missing_data[0].location, "apart.onnx.data");
  writeFileSync(join(directory, "apart.onnx.data"), apart.data[0].data);
  const whole = await fold(bytes);
  const found = await fold(join(directory, "apart.onnx"), { externalData: "inline" });
  assert.equal(found.report.missing_data.length, 0);
  assert.equal(found.report.after.nodes, whole.report.after.nodes);
  const given = await fold(apart.model, { externalData: { "apart.onnx.data": apart.data[0].data } });
  assert.equal(given.report.missing_data.length, 0);
  assert.equal(given.report.after.nodes, whole.report.after.nodes);
});

test("the module is loaded from bytes", async () => {
  await init(readFileSync(new URL("../onnx-slice-fold.wasm", import.meta.url)));
  assert.equal((await inspect(bytes)).report.nodes, 104);
});

test("the program", () => {
  const run = (...args) => spawnSync(process.execPath, [`${root}web/npm/cli.js`, ...args], { encoding: "utf8" });
  const output = join(directory, "program.onnx");
  const folded = run(model, "-o", output, "--dim", "s33=1", "--check=1");
  assert.equal(folded.status, 0, folded.stderr);
  assert.match(folded.stdout, /all nodes +104 +78[^]*wrote [^]*checked/);
  assert.match(run("inspect", model).stdout, /pytorch/);
  assert.equal(run("diff", output, output).stdout, "");
  assert.equal(JSON.parse(run(model, output, "--report", "json").stdout).after.nodes, FOLDED);
  assert.equal(JSON.parse(run("explain", model, "--rule", "movement", "--report=json").stdout).rule, "movement");
  assert.match(run("show", model, "--dot", "--around", "layer_norm_4", "--depth", "1").stdout, /^digraph/);
  assert.equal(JSON.parse(run("inspect", model, "--json").stdout).nodes, 104);
  assert.equal(run(model, "--exactly").status, 2);
  assert.equal(run(join(directory, "none.onnx")).status, 1);
  assert.equal(run().status, 2);
  // Names of the file reach the terminal without control characters.
  const hostile = join(directory, "hostile.onnx");
  writeFileSync(hostile, Buffer.from(bytes).fill("\x1b[31m", bytes.indexOf("input_ids"), bytes.indexOf("input_ids") + 5));
  const { stdout, stderr } = run(hostile);
  assert.doesNotMatch(stdout + stderr, /\x1b/);
  assert.match(stdout + stderr, /\\u\{1b\}\[31m/);
});

test("the program has the flags of the native program", { skip: native ? false : "there is no native program" }, async () => {
  const kinds = await options();
  for (const command of ["fold", "show", "explain", "inspect", "diff"]) {
    const words = command === "fold" ? [] : [command];
    const told = execFileSync(native, [...words, "-h"], { encoding: "utf8" }).split("\n");
    const ours = execFileSync(process.execPath, [`${root}web/npm/cli.js`, ...words, "--help"], { encoding: "utf8" }).split("\n");
    const flagsOf = (lines) => lines.flatMap((line) => /^ +(?:-\w, )?--([\w-]+)/.exec(line)?.[1] ?? []);
    const others = told.findIndex((line) => line.startsWith("Flags of other tools"));
    const flags = flagsOf(others < 0 ? told : told.slice(0, others));
    assert.deepEqual(flags.filter((flag) => !LACKING.includes(flag)).sort(), flagsOf(ours).sort(), command);
    // All but the note at the end are lines of the native program.
    const note = ours.findIndex((line) => line.startsWith("This is the program as a WebAssembly module"));
    assert.deepEqual(ours.slice(0, note).filter((line) => !told.includes(line)), [], command);
    if (command === "fold") {
      assert.deepEqual(LACKING.filter((flag) => !flags.includes(flag)), []);
      const camel = (flag) => flag.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
      assert.deepEqual(Object.keys(kinds).filter((option) => !flags.map(camel).includes(option)), []);
    }
  }
});

test("the flags of a value, of several values and of none are told apart", () => {
  const run = (...args) => spawnSync(process.execPath, [`${root}web/npm/cli.js`, ...args], { encoding: "utf8" });
  const output = join(directory, "flags.onnx");
  const folded = run(model, output, "--dim=s33=1", "--dim", "s50=8", "--skip", "reshape-to-constant", "--opset", "19", "--opset=20", "--exact", "--quiet");
  assert.equal(folded.status, 0, folded.stderr);
  assert.equal(folded.stdout, "");
  if (native) {
    const expected = join(directory, "flags.native.onnx");
    execFileSync(native, [model, expected, "--dim", "s33=1", "--dim", "s50=8", "--skip", "reshape-to-constant", "--opset", "20", "--exact", "--quiet"]);
    assert.ok(readFileSync(output).equals(readFileSync(expected)));
  }
  for (const [message, ...args] of [[/--exact has no value/, "--exact=1"], [/--opset needs a value/, "--opset"], [/only the native program has --jobs/, "--jobs=2"], [/there is no flag '--exactly'/, "--exactly"]]) {
    const { status, stderr } = run(model, ...args);
    assert.equal(status, 2);
    assert.match(stderr, message);
  }
});

test("data files that lead out of the directory are refused", async () => {
  const apart = await fold(bytes, { saveAsExternalData: true, name: "w.onnx" });
  const inner = join(directory, "inner");
  mkdirSync(inner);
  writeFileSync(join(directory, "secret.data"), apart.data[0].data);
  writeFileSync(join(inner, "w.onnx"), apart.model);
  const data = join(inner, "w.onnx.data");
  for (const [make, message] of [
    [() => symlinkSync("../secret.data", data), /external data file 'w.onnx.data' is a symbolic link that leads to '.*secret.data', outside of/],
    [() => symlinkSync("w.onnx.data", data), /is a symbolic link that leads to itself/],
    [() => linkSync(join(directory, "secret.data"), data), /has 2 hard links/],
    [() => mkdirSync(data), /is a directory, not a regular file/],
  ]) {
    make();
    await assert.rejects(fold(join(inner, "w.onnx")), (error) => error instanceof FoldError && message.test(error.message));
    rmSync(data, { recursive: true });
  }
  writeFileSync(join(inner, "real.data"), apart.data[0].data);
  symlinkSync("real.data", data);
  assert.deepEqual((await fold(join(inner, "w.onnx"))).report.missing_data, []);
});
