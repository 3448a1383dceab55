#!/usr/bin/env node
// The program `onnx-slice-fold` in Node: the main flags of the command line.

import { check, diff, explain, fold, inspect, show, version } from "./index.js";

const HELP = `Simplify an ONNX model: symbolic shape inference, constant folding and graph rewriting

Usage: onnx-slice-fold [OPTIONS] MODEL [RESULT]
       onnx-slice-fold COMMAND [OPTIONS] MODEL

Commands:
  show MODEL               Print a model in the ONNX text syntax, with inferred shapes
  explain MODEL [NAME...]  Print why each remaining node is kept, and which options would remove it
  inspect MODEL            Print operators, parameters, multiply-accumulates and peak memory
  diff BEFORE AFTER        Compare two models by the values that their nodes compute

Output:
  -o, --output FILE             Path of the result; the default for model.onnx is model.folded.onnx
      --report FORMAT           Format of the report: text, json
      --opset VERSION           Convert to this operator set: a number, or latest
      --shapes WHICH            Shapes of inner tensors to write: auto, all, keep, lean, none
      --no-stamp                Do not write the program's version and options to the model
  -q, --quiet                   Print only errors

Input shapes:
      --dim NAME=SIZE           Fix or bound a dim of the inputs: batch=1, seq=1..4096. Repeatable
      --assume RELATION         State a relation between dims that holds in every run. Repeatable
      --overwrite-input-shape [INPUT:]SHAPE
                                Set the shape of an input: x:1,3,224,224. Repeatable
      --trust-declared-shapes   Rely on all shapes that the model declares
      --trust-input-names       Parse labels of inputs' dims as expressions

Optimization:
      --exact                   Only use rewrites that preserve every bit of the results
      --skip RULE               Disable a rewrite rule or pass. Repeatable
      --only RULE               Disable all other rewrite rules and passes. Repeatable
      --no-rules                Disable all rewrite rules and passes
      --strict                  Refuse a model for which every run fails
      --fold-dequantize         Fold DequantizeLinear of constants to floats
      --unroll N                Unroll loops, as long as the model grows by at most N nodes
      --max-growth PERCENT      Allow constants to enlarge the model by this share
      --fold-size-threshold SIZE
                                Do not fold constants larger than this
      --slice-rule RULE         How to read disputed slices: agree, onnxruntime, spec, numpy
      --strided-slice OP=DIALECT
                                Register an operator as a strided slice. Repeatable

Parts of the model:
      --inputs NAME             Extract the part after these values. Repeatable
      --outputs NAME            Extract the part before these values. Repeatable
      --unused-output NAME      Remove an output. Repeatable

External data:
      --external-data HOW       keep, copy, link or inline
      --save-as-external-data   Write large tensors to a data file
      --external-data-threshold SIZE

Debugging:
      --check[=N]               Compare original and result on N generated inputs; on a difference, exit with code 3
      --stop-after COUNT        Stop after this many edits
      --verify-each             Verify the model after each pass that changed it

  -h, --help                    Print help
  -V, --version                 Print version

This is the program as a WebAssembly module. It lacks what the native program has in addition: several models at once, patterns of names,
standard input and output, configuration files, timings, HTML reports, NumPy inputs for --check, and the commands ops and rules.
`;

const FLAGS = ["trust-declared-shapes", "trust-input-names", "strict", "no-rules", "exact", "fold-dequantize", "no-stamp", "lean",
  "no-new-shapes", "verify-each", "save-as-external-data"];
const LISTS = ["dim", "assume", "overwrite-input-shape", "inputs", "outputs", "unused-output", "strided-slice", "skip", "only"];
const VALUES = ["slice-rule", "max-growth", "fold-size-threshold", "unroll", "shapes", "opset", "stop-after", "external-data",
  "external-data-threshold", "output", "report", "trials"];
const COMMANDS = { show, explain, inspect, diff };

class Usage extends Error {}

const camel = (flag) => flag.replace(/-(.)/g, (_, letter) => letter.toUpperCase());

/** The command, the names and the options of a command line. */
function parse(words) {
  const names = [], options = {};
  const rest = [...words];
  const command = Object.hasOwn(COMMANDS, rest[0] ?? "") ? rest.shift() : "fold";
  while (rest.length > 0) {
    const word = rest.shift();
    if (word === "--") {
      names.push(...rest.splice(0));
    } else if (word === "-h" || word === "--help") {
      return { help: true };
    } else if (word === "-V" || word === "--version") {
      return { version: true };
    } else if (word === "-q" || word === "--quiet") {
      options.quiet = true;
    } else if (!word.startsWith("-") || word === "-") {
      names.push(word);
    } else {
      const [flag, given] = word === "-o" ? ["output"] : word.replace(/^--/, "").split(/=(.*)/s);
      const value = () => {
        const text = given ?? rest.shift();
        if (text === undefined) throw new Usage(`--${flag} needs a value`);
        return text;
      };
      if (flag === "check") options.check = given === undefined ? (/^\d+$/.test(rest[0] ?? "") ? Number(rest.shift()) : 8) : Number(given);
      else if (FLAGS.includes(flag)) options[camel(flag)] = true;
      else if (LISTS.includes(flag)) (options[camel(flag)] ??= []).push(value());
      else if (VALUES.includes(flag)) options[camel(flag)] = value();
      else throw new Usage(`there is no flag '${word}'; --help lists the flags`);
    }
  }
  return { command, names, options };
}

/** The default path of a result. */
const beside = (model) => model.replace(/(\.onnx)?$/, ".folded.onnx");

async function main(words) {
  const { help, version: wantsVersion, command, names, options } = parse(words);
  if (help) return void process.stdout.write(HELP);
  if (wantsVersion) return void console.log(`onnx-slice-fold ${version}`);
  const { quiet, report, trials, ...others } = options;
  const [model, second] = names;
  const most = { fold: 2, show: 1, inspect: 1, diff: 2, explain: Infinity }[command];
  if (model === undefined) throw new Usage("the path of a model is missing; --help prints the usage");
  if (names.length > most) throw new Usage(`'${names[most]}' is one name too many`);
  if (report !== undefined && !["text", "json"].includes(report)) throw new Usage("--report is text or json");
  const print = (done) => process.stdout.write(report === "json" ? `${JSON.stringify(done.report)}\n` : done.text);
  if (command === "diff") {
    if (second === undefined) throw new Usage("diff needs two models");
    return void process.stdout.write(await diff(model, second));
  }
  if (command === "show") return void process.stdout.write(await show(model, others));
  if (command === "inspect") return void print(await inspect(model, others));
  if (command === "explain") return void print(await explain(model, { ...others, names: names.slice(1), trials: Number(trials ?? 10) }));
  const output = others.output ?? second ?? beside(model);
  const begin = performance.now();
  const done = await fold(model, { ...others, output });
  if (report === "json") return void print(done);
  if (quiet) return;
  process.stdout.write(`${done.text}wrote ${output} in ${(performance.now() - begin).toFixed(0)} ms\n`);
  for (const [path, bytes] of done.report.files.slice(1).map(({ path, bytes }) => [path, bytes])) console.log(`wrote ${path}: ${bytes} bytes of data`);
  if (done.checked) console.log(done.checked);
  for (const data of done.report.missing_data) console.error(`warning: external data file '${data.location}' is missing; nodes that need it are kept`);
}

const codes = { usage: 2, differs: 3 };

main(process.argv.slice(2)).catch((error) => {
  console.error(`error: ${error.message}`);
  process.exitCode = error instanceof Usage ? 2 : codes[error.kind] ?? 1;
});
