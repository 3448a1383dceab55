// Results of the module, byte for byte those of the native program: over the models of the repository, and of the folder MODELS.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { fold } from "../index.js";
import { DEEP, native, root } from "./support.js";

const folders = [`${root}models`, process.env.MODELS].filter(Boolean);
const models = folders.flatMap((folder) => readdirSync(folder).filter((name) => name.endsWith(".onnx")).sort().map((name) => join(folder, name)));

test("results are those of the native program", { skip: native ? false : "there is no native program" }, async () => {
  const directory = mkdtempSync(join(tmpdir(), "onnx-slice-fold-"));
  const [different, times] = [[], []];
  try {
    for (const path of models) {
      const expected = join(directory, "model.onnx");
      const begin = performance.now();
      const { model, report } = await fold(path);
      const took = performance.now() - begin;
      const seconds = JSON.parse(execFileSync(native, [path, "-o", expected, "--report", "json"], { stdio: ["ignore", "pipe", "ignore"], maxBuffer: 1 << 30 })).seconds;
      times.push({ path, took, seconds: report.seconds, native: seconds });
      if (!readFileSync(expected).equals(model)) different.push(path);
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  if (process.env.TIMES) {
    for (const { path, took, seconds, native } of times) console.log(`${path} ${took.toFixed(1)} ${(seconds * 1000).toFixed(1)} ${(native * 1000).toFixed(1)}`);
  }
  console.log(`${models.length - different.length} of ${models.length} models are equal`);
  assert.deepEqual(different, []);
});

test("deep models fit the default stack, with the result or the message of the native program", { skip: native ? false : "there is no native program" }, async () => {
  const directory = mkdtempSync(join(tmpdir(), "onnx-slice-fold-"));
  const [path, expected] = [join(directory, "deep.onnx"), join(directory, "expected.onnx")];
  try {
    for (const [name, make] of Object.entries(DEEP)) {
      const bytes = make();
      writeFileSync(path, bytes);
      const options = name === "label" ? { trustInputNames: true } : {};
      const flags = name === "label" ? ["--trust-input-names"] : [];
      const { status, stderr } = spawnSync(native, [path, "-o", expected, "--quiet", "--no-config", ...flags], { encoding: "utf8" });
      const done = await fold(bytes, options).catch((error) => error);
      if (status === 0) assert.ok(readFileSync(expected).equals(done.model ?? Buffer.from(String(done))), `${name}: ${done.message ?? "other bytes"}`);
      else assert.equal(`error: ${done.message}`, stderr.trim().replace(`'${path}'`, "the model"), name);
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
