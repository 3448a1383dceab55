// onnx-slice-fold: simplifies ONNX models.

import { FoldError, call, init } from "./module.js";
import { assembled, openSource } from "./sources.js";

export { FoldError, init };

/** The version of the package. */
export const version = "0.1.0";

/** What of the options is no flag of the program. */
const OTHERS = new Set(["name", "externalData", "detailed", "onProgress", "output", "check", "names", "trials", "count", "form", "around", "depth"]);

/** The flags among the options, as the module reads them. */
function flags(options) {
  const given = {};
  for (const [name, value] of Object.entries(options)) {
    if (OTHERS.has(name) || value === undefined || value === null || value === false) continue;
    given[name] = name === "dim" && typeof value === "object" && !Array.isArray(value)
      ? Object.entries(value).map(([dim, size]) => `${dim}=${size}`)
      : value;
  }
  return given;
}

function nameOf(source, options) {
  if (options.name) return options.name;
  if (typeof source === "string") return source;
  return (typeof File !== "undefined" && source instanceof File && source.name) || "model.onnx";
}

async function run(request, models, options, out) {
  const sources = [];
  try {
    for (const model of models) sources.push(await openSource(model));
    return await call(
      { options: flags(options), name: nameOf(models[0], options), ...request },
      { sources, progress: options.onProgress, out: (file, part) => out(file, Array.isArray(part) ? sources[part[0]].slice(part[1], part[2]) : part, sources[0].kind) },
    );
  } finally {
    for (const source of sources) source.close();
  }
}

/** Folds a model. */
export async function fold(source, options = {}) {
  const check = options.check === true ? 8 : options.check || undefined;
  const parts = [];
  let kind;
  const { answer, memory } = await run({ call: "fold", check, detailed: options.detailed === true }, [source], options, (file, part, of) => {
    (parts[file] ??= []).push(part);
    kind = of;
  });
  if (answer.differs) throw new FoldError(answer.text, "differs");
  return { model: assembled(parts[0] ?? [], kind), report: answer.report, text: answer.text, memory };
}

/** Infers and writes shapes, and changes nothing else. */
export function inferShapes(source, options = {}) {
  return fold(source, { stopAfter: 0, ...options });
}

/** Inspects a model. */
export async function inspect(source, options = {}) {
  return (await run({ call: "inspect" }, [source], options, () => {})).answer;
}

/** Explains why the nodes that folding keeps are kept. */
export async function explain(source, options = {}) {
  const { names = [], trials = 10 } = options;
  return (await run({ call: "explain", names, trials }, [source], { shapes: "all", ...options }, () => {})).answer;
}

/** Prints a model in the ONNX text syntax. */
export async function show(source, options = {}) {
  return (await run({ call: "show" }, [source], options, () => {})).answer;
}

/** Compares two models by what their nodes compute. */
export async function diff(before, after, options = {}) {
  return (await run({ call: "diff" }, [before, after], options, () => {})).answer;
}

/** Folds a model and compares original and result by the program's evaluator. */
export async function check(source, options = {}) {
  const { answer } = await run({ call: "fold", check: options.count ?? 8 }, [source], options, () => {});
  return { equal: !answer.differs, text: answer.text, report: answer.report };
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
