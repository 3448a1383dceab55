// The options of the page: one table, from which the form, the URL, the command line and the call follow.

import type { Options } from "onnx-slice-fold";

/** Values by flag. A flag without value has one empty text. */
export type Settings = Readonly<Record<string, readonly string[]>>;

export interface Flag {
  flag: string;
  kind: "switch" | "text" | "choice" | "list";
  label: string;
  help: string;
  choices?: readonly (readonly [value: string, label: string])[];
  placeholder?: string;
}

const OPSETS = Array.from({ length: 22 }, (_, at) => String(28 - at));

/** The form has a row per dim of the model for `--dim`, the first flag. */
export const FLAGS: readonly Flag[] = [
  { flag: "dim", kind: "list", label: "Dims", help: "A size, a range or a multiple for a dim: batch=1, seq=1..4096, seq=8..4096:8." },
  { flag: "exact", kind: "switch", label: "Keep every bit", help: "Only rewrites that keep results equal bit for bit." },
  {
    flag: "opset", kind: "choice", label: "Operator set", help: "Converts the model to this version of the default domain.",
    choices: [["", "as in the model"], ...OPSETS.map((version) => [version, version] as const)],
  },
  {
    flag: "shapes", kind: "choice", label: "Shapes to write", help: "Which inferred shapes the result states.",
    choices: [["", "auto"], ["all", "all"], ["lean", "lean: not larger than before"], ["keep", "keep: no new ones"], ["none", "none"]],
  },
  { flag: "skip", kind: "list", label: "Rules to skip", help: "Rewrite rules or passes that are not used.", placeholder: "movement" },
  { flag: "assume", kind: "list", label: "Relations between dims", help: "A relation that always holds.", placeholder: "past + seq <= 2048" },
  { flag: "trust-input-names", kind: "switch", label: "Trust input labels", help: "Reads a label such as past + 1 as the expression that it spells." },
  { flag: "trust-declared-shapes", kind: "switch", label: "Trust declared shapes", help: "Takes declared shapes of inner tensors as facts." },
  { flag: "fold-dequantize", kind: "switch", label: "Fold dequantized constants", help: "Makes floats of quantized constants." },
  { flag: "strict", kind: "switch", label: "Strict", help: "Refuses a model that no run can execute." },
  {
    flag: "slice-rule", kind: "choice", label: "Disputed slices", help: "Which reading to use where ONNX Runtime and the specification disagree.",
    choices: [["", "agree: leave them"], ["onnxruntime", "ONNX Runtime"], ["spec", "specification"], ["numpy", "NumPy"]],
  },
  { flag: "overwrite-input-shape", kind: "list", label: "Input shapes", help: "Overwrites the shape of an input.", placeholder: "x:1,3,224,224" },
];

const camel = (flag: string) => flag.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());

/** Returns a copy with other values for a flag; none removes the flag. */
export function withFlag(settings: Settings, flag: string, values: readonly string[]): Settings {
  const { [flag]: _, ...rest } = settings;
  return values.length ? { ...rest, [flag]: values } : rest;
}

const isNumber = (text: string | undefined) => text !== undefined && /^\d+$/.test(text);

export function asOptions(settings: Settings): Options {
  const options: Record<string, unknown> = {};
  for (const { flag, kind } of FLAGS) {
    const values = settings[flag];
    if (values) options[camel(flag)] = kind === "switch" ? true : kind === "list" ? [...values] : isNumber(values[0]) ? Number(values[0]) : values[0];
  }
  return options as Options;
}

/** Adds the options of a suggestion. A dim that is set already gets the suggested size. */
export function withOptions(settings: Settings, options: Options): Settings {
  const nameOf = (dim: string) => dim.split("=")[0];
  for (const { flag, kind } of FLAGS) {
    const added = (options as Record<string, unknown>)[camel(flag)];
    if (added === undefined || added === null || added === false) continue;
    const values = kind === "switch" ? [""] : [added].flat().map(String);
    const same = (value: string) => values.some((other) => (flag === "dim" ? nameOf(other) === nameOf(value) : other === value));
    const before = kind === "list" ? (settings[flag] ?? []).filter((value) => !same(value)) : [];
    settings = withFlag(settings, flag, [...before, ...values]);
  }
  return settings;
}

/** Reads the settings that a URL states. */
export function fromQuery(query: URLSearchParams): Settings {
  let settings: Settings = {};
  for (const { flag } of FLAGS) settings = withFlag(settings, flag, query.getAll(flag));
  return settings;
}

export function toQuery(settings: Settings, query: URLSearchParams): void {
  for (const { flag } of FLAGS) {
    query.delete(flag);
    for (const value of settings[flag] ?? []) query.append(flag, value);
  }
}

/** Quotes a word for a POSIX shell, if it needs quotes. */
const quoted = (word: string) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** The command line that does the same. */
export function commandLine(file: string, settings: Settings): string {
  const words = ["onnx-slice-fold", file.startsWith("-") ? `./${file}` : file];
  for (const { flag, kind } of FLAGS) {
    for (const value of settings[flag] ?? []) words.push(`--${flag}`, ...(kind === "switch" ? [] : [value]));
  }
  return words.map(quoted).join(" ");
}
