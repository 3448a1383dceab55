#!/usr/bin/env node
// The program `onnx-slice-fold` in Node. Its flags are those in the help of the native program (`help.js`) that the module has as options.

import { check, diff, explain, fold, inspect, options as moduleOptions, show, version } from "./index.js";
import { LACKING, readHelp } from "./help.js";

class Usage extends Error {}

/** Each command: the least and the most names, the flags that are no options of the module, and the call. */
const COMMANDS = {
  fold: { least: 1, most: 2, own: ["output", "report", "quiet"], run: runFold },
  show: { least: 1, most: 1, own: ["folded", "full", "dot", "mermaid", "around", "depth", "quiet"], run: runShow },
  explain: { least: 1, most: Infinity, own: ["trials", "rule", "node", "report", "quiet"], run: runExplain },
  inspect: { least: 1, most: 1, own: ["json", "quiet"], run: runInspect },
  diff: { least: 2, most: 2, own: ["quiet"], run: ([before, after]) => diff(before, after).then(print) },
};

const camel = (flag) => flag.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
/** Escapes control characters, which names in a file may contain, as the native program does. */
const printable = (text) => text.replace(/(?![\n\t])\p{Cc}/gu, (letter) => letter === "\r" ? "\\r" : `\\u{${letter.codePointAt(0).toString(16)}}`);
const print = (text) => void process.stdout.write(printable(text));
const printReport = (isJson, done) => print(isJson ? `${JSON.stringify(done.report)}\n` : done.text);

/** Parses a command line. `flags` are the flags of the command by name, `kinds` the kinds of the module's options. */
function parse(words, { flags }, kinds) {
  const names = [], options = {}, own = {};
  const rest = [...words];
  const isFlag = (word) => word.startsWith("-") && word !== "-";
  while (rest.length > 0) {
    const word = rest.shift();
    if (word === "--") {
      names.push(...rest.splice(0));
      continue;
    }
    if (!isFlag(word)) {
      names.push(word);
      continue;
    }
    const [written, given] = word.split(/=(.*)/s);
    const flag = flags.find(({ name, short }) => written === `--${name}` || (short && written === `-${short}`));
    if (!flag) {
      const isNative = LACKING.some((name) => written === `--${name}`);
      throw new Usage(isNative ? `only the native program has ${written}` : `there is no flag '${written}'; --help lists the flags`);
    }
    const value = () => {
      if (flag.value === "none") {
        if (given !== undefined) throw new Usage(`--${flag.name} has no value`);
        return true;
      }
      if (flag.value === "optional") return given ?? (/^\d+$/.test(rest[0] ?? "") ? rest.shift() : true);
      const text = given ?? rest.shift();
      if (text === undefined) throw new Usage(`--${flag.name} needs a value`);
      return text;
    };
    const option = camel(flag.name);
    if (!(option in kinds)) own[flag.name] = value();
    else if (kinds[option] === "list") (options[option] ??= []).push(value());
    else options[option] = value();
  }
  return { names, options, own };
}

async function main(words) {
  const kinds = await moduleOptions();
  const command = Object.hasOwn(COMMANDS, words[0] ?? "") ? words[0] : "fold";
  const help = await readHelp(command, (name) => camel(name) in kinds || COMMANDS[command].own.includes(name));
  const rest = words[0] === command ? words.slice(1) : words;
  const { names, options, own } = parse(rest, help, kinds);
  if (own.help) return print(help.text);
  if (own.version) return print(`onnx-slice-fold ${version}\n`);
  const { least, most, run } = COMMANDS[command];
  if (names.length < least) throw new Usage(`${command} needs ${least === 1 ? "the path of a model" : "two models"}; --help prints the usage`);
  if (names.length > most) throw new Usage(`'${names[most]}' is one name too many`);
  if (own.report !== undefined && !["text", "json"].includes(own.report)) throw new Usage("--report is text or json");
  return run(names, options, own);
}

async function runFold([model, second], options, { output: given, report, quiet }) {
  const output = given ?? second ?? model.replace(/(\.onnx)?$/, ".folded.onnx");
  const begin = performance.now();
  const done = await fold(model, { ...options, output });
  if (report === "json") return printReport(true, done);
  if (quiet) return;
  print(`${done.text}wrote ${output} in ${(performance.now() - begin).toFixed(0)} ms\n`);
  for (const { path, bytes } of done.report.files.slice(1)) print(`wrote ${path}: ${bytes} bytes of data\n`);
  if (done.checked) print(`${done.checked}\n`);
  for (const { location } of done.report.missing_data) console.error(printable(`warning: external data file '${location}' is missing; nodes that need it are kept`));
}

async function runShow([model], options, { folded, full, dot, mermaid, around, depth }) {
  const form = dot ? "dot" : mermaid ? "mermaid" : full ? "full" : "text";
  print(await show(model, { ...options, form, folded, around, depth: depth && Number(depth) }));
}

async function runExplain([model, ...names], options, { trials = 10, rule, node, report }) {
  printReport(report === "json", await explain(model, { ...options, names, trials: Number(trials), rule, node }));
}

async function runInspect([model], options, { json }) {
  printReport(json, await inspect(model, options));
}

const codes = { usage: 2, differs: 3 };

main(process.argv.slice(2)).catch((error) => {
  console.error(printable(`error: ${error.message}`));
  process.exitCode = error instanceof Usage ? 2 : codes[error.kind] ?? 1;
});
