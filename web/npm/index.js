// onnx-slice-fold: simplifies ONNX models.

import { FoldError, call, init } from "./module.js";
import { assembled, filesBeside, isNode, openFileWith, openSource, openTarget } from "./sources.js";

export { FoldError, init };

/** The version of the package. */
export const version = "0.1.0";

/** The options that are no flags of the program. */
const OTHERS = new Set(["name", "detailed", "onProgress", "output", "names", "trials", "count", "form", "around", "depth", "folded", "rule", "node"]);

/** The flags among the options, as the module reads them. */
function flags(options) {
  const given = {};
  for (const [name, value] of Object.entries(options)) {
    if (OTHERS.has(name) || value === undefined || value === null || value === false) continue;
    if (name === "externalData" && typeof value === "object") continue;
    given[name] = name === "dim" && typeof value === "object" && !Array.isArray(value)
      ? Object.entries(value).map(([dim, size]) => `${dim}=${size}`)
      : value;
  }
  return given;
}

const isPath = (source) => typeof source === "string" || source instanceof URL;

/** The path of a model. */
const pathOf = (source) => source instanceof URL ? decodeURIComponent(source.pathname) : source;

function nameOf(source, options) {
  if (options.name) return options.name;
  if (isPath(source)) return pathOf(source);
  return (typeof File !== "undefined" && source instanceof File && source.name) || "model.onnx";
}

const fileName = (path) => path.split(/[/\\]/).pop() || "model.onnx";

/** Opens the models and the data files that are given with them, and runs a request on them. */
async function run(request, models, options, take = () => {}) {
  const sources = [];
  try {
    for (const model of models) sources.push(await openSource(model));
    const data = new Map();
    const given = typeof options.externalData === "object" ? options.externalData ?? {} : {};
    for (const [location, file] of given instanceof Map ? given : Object.entries(given)) {
      data.set(location, sources.length);
      sources.push(await openSource(file));
    }
    // Files are opened when the module asks for them, which cannot wait: those next to a path are known by then.
    const beside = isNode ? await Promise.all(models.map((model) => isPath(model) ? filesBeside(pathOf(model)) : null)) : [];
    const opened = isNode && beside.some(Boolean) ? await syncOpener() : null;
    const find = (model, location) => {
      if (data.has(location)) return data.get(location);
      const { path, reason } = beside[model]?.(location) ?? {};
      if (reason) return reason;
      if (!path) return -1;
      const key = `${model} ${location}`;
      if (!data.has(key)) {
        data.set(key, sources.length);
        sources.push(opened(path));
      }
      return data.get(key);
    };
    const out = (file, part) => take(file, part.source === undefined ? part : sources[part.source].slice(part.from, part.to));
    const full = { options: flags(options), name: nameOf(models[0], options), ...request };
    return { ...(await call(full, { sources, find, out, progress: options.onProgress })), kind: sources[0]?.kind };
  } finally {
    for (const source of sources) source.close();
  }
}

/** A function that opens a file of Node as a source without waiting. */
async function syncOpener() {
  const fs = await import(/* @vite-ignore */ /* webpackIgnore: true */ `node:${"fs"}`);
  return (path) => openFileWith(fs, path);
}

/** Folds a model. */
export async function fold(source, options = {}) {
  const target = options.output === undefined ? null : await openTarget(pathOf(options.output));
  const name = nameOf(source, options);
  const targetName = fileName(options.output === undefined ? name : pathOf(options.output));
  // Ranges of files are read before these are closed.
  const parts = [];
  const take = (file, part) => target ? target.write(file, part) : (parts[file] ??= []).push(part);
  let done, model, data;
  try {
    const kindOf = (kind) => kind === "file" ? "bytes" : kind;
    done = await run({ call: "fold", detailed: options.detailed === true, target: targetName }, [source], options, (file, part) => {
      take(file, part.read && !target ? assembled([part], "bytes") : part);
    });
    if (done.answer.differs) throw new FoldError(`no result was written, because ${done.answer.checked}`, "differs");
    if (target) target.finish(done.answer.data);
    else {
      model = assembled(parts[0] ?? [], kindOf(done.kind));
      if (done.answer.data) data = [{ location: done.answer.data, data: assembled(parts[1] ?? [], kindOf(done.kind)) }];
    }
  } catch (error) {
    target?.discard();
    throw error;
  }
  const { report, text, checked } = done.answer;
  return { model: model ?? null, data: data ?? [], report, text, checked: checked ?? null, memory: done.memory };
}

/** Infers and writes shapes, and changes nothing else. */
export function inferShapes(source, options = {}) {
  return fold(source, { stopAfter: 0, ...options });
}

/** Inspects a model. */
export async function inspect(source, options = {}) {
  return (await run({ call: "inspect" }, [source], options)).answer;
}

/** Explains why the nodes that folding keeps are kept. */
export async function explain(source, options = {}) {
  const { names = [], trials = 10, rule, node } = options;
  return (await run({ call: "explain", names, trials, rule, node }, [source], options)).answer;
}

/** Prints a model in the ONNX text syntax with inferred shapes, or draws it. */
export async function show(source, options = {}) {
  const { form = "text", around, depth, folded } = options;
  return (await run({ call: "show", form, around, depth, folded }, [source], options)).answer;
}

/** Compares two models by the values that their nodes compute. */
export async function diff(before, after, options = {}) {
  return (await run({ call: "diff" }, [before, after], options)).answer;
}

/** Folds a model, and compares original and result by the program's evaluator. */
export async function check(source, options = {}) {
  const { count = 8, ...others } = options;
  const { answer } = await run({ call: "fold" }, [source], { ...others, check: count });
  return { equal: !answer.differs, text: `${answer.checked}\n`, report: answer.report };
}

/** Returns the kind of each option: "flag", "value" or "list". */
export async function options() {
  return (await call({ call: "options" })).answer;
}

/** Lists the rewrite rules and passes. */
export async function rules() {
  return (await call({ call: "rules" })).answer;
}

/** Resolves one slice as a dialect reads it. */
export async function resolveSlice(request) {
  const slice = JSON.parse(JSON.stringify(request, (_, value) => (typeof value === "bigint" ? String(value) : value)));
  return (await call({ call: "resolve slice", slice })).answer;
}
