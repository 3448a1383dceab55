// Slices as text: parses the input, and writes one slice with the operands of each dialect.

import type { SliceRequest } from "onnx-slice-fold";

export type Dialect = SliceRequest["dialect"];

export const DIALECTS: readonly { id: Dialect; name: string; operands: "axes" | "masks" }[] = [
  { id: "onnx-13", name: "ONNX Slice-13", operands: "axes" },
  { id: "onnx-11", name: "ONNX Slice-11", operands: "axes" },
  { id: "onnx-10", name: "ONNX Slice-10", operands: "axes" },
  { id: "onnx-1", name: "ONNX Slice-1", operands: "axes" },
  { id: "tensorflow", name: "TensorFlow StridedSlice", operands: "masks" },
  { id: "openvino", name: "OpenVINO StridedSlice-1", operands: "masks" },
  { id: "openvino-slice", name: "OpenVINO Slice-8", operands: "axes" },
];

/** An integer as text: JavaScript numbers cannot hold every int64. */
export type Int = string;

/** One entry of a slice, independent of the dialect. An open bound is `null`. */
export type Entry =
  | { kind: "range"; begin: Int | null; end: Int | null; step: Int }
  | { kind: "index"; at: Int }
  | { kind: "new" }
  | { kind: "ellipsis" };

export class Mistake extends Error {}

const INT64_MAX = "9223372036854775807";
const INT64_MIN = "-9223372036854775808";

const NAMES: Record<string, Int> = { INT64_MAX, INT64_MIN, INT32_MAX: "2147483647", INT_MAX: "2147483647", INT_MIN: "-2147483648" };

/** Writes a number, or its name if it is a limit of int64. */
export const named = (number: number | string) => ({ [INT64_MAX]: "INT64_MAX", [INT64_MIN]: "INT64_MIN" })[number] ?? String(number);

/** Reads integers between commas or blanks. `INT_MAX` and the like are words for the ends that exporters write. */
export function integers(text: string, field: string): Int[] {
  return text.replace(/[[\](){}]/g, " ").split(/[\s,]+/).filter(Boolean).map((word) => {
    const known = NAMES[word.toUpperCase()];
    if (known) return known;
    if (!/^[-+]?\d+$/.test(word)) throw new Mistake(`${field}: '${word}' is no integer`);
    return word.replace(/^\+/, "");
  });
}

export const dims = (text: string) => text.replace(/[[\](){}]/g, " ").split(",").map((dim) => dim.trim()).filter(Boolean);

/** Reads a Python subscript: `x[1:, ::-2, None, 3]`. */
export function subscript(text: string): Entry[] {
  const inner = text.trim().replace(/^[\w.]*\[/, "").replace(/\]$/, "");
  const one = (word: string): Entry => {
    if (word === "...") return { kind: "ellipsis" };
    if (word === "None" || word === "newaxis" || word === "np.newaxis") return { kind: "new" };
    const parts = word.split(":").map((part) => part.trim());
    if (parts.length > 3) throw new Mistake(`'${word}' has more than two colons`);
    const number = (part: string | undefined) => (part ? (integers(part, `'${word}'`)[0] ?? null) : null);
    if (parts.length === 1) return { kind: "index", at: integers(word, "index")[0] ?? "0" };
    return { kind: "range", begin: number(parts[0]), end: number(parts[1]), step: number(parts[2]) ?? "1" };
  };
  return inner.split(",").map((word) => word.trim()).filter(Boolean).map(one);
}

export interface AxesForm {
  starts: Int[];
  ends: Int[];
  axes: Int[] | null;
  steps: Int[] | null;
}

/** Bits of each mask, by entry. */
export interface MasksForm {
  begin: Int[];
  end: Int[];
  strides: Int[] | null;
  masks: Record<MaskName, boolean[]>;
}

export const MASKS = ["begin", "end", "ellipsis", "newAxis", "shrinkAxis"] as const;
export type MaskName = (typeof MASKS)[number];

const isBackward = (step: Int) => step.startsWith("-");

/** Writes entries as `starts, ends, axes, steps`. These operands cannot express new axes, nor the removal of indexed axes. */
export function toAxes(entries: readonly Entry[], rank: number): AxesForm {
  const real = entries.filter((entry) => entry.kind === "range" || entry.kind === "index").length;
  const form = { starts: [] as Int[], ends: [] as Int[], axes: [] as Int[], steps: [] as Int[] };
  let axis = 0;
  for (const entry of entries) {
    if (entry.kind === "ellipsis") axis += Math.max(0, rank - real);
    if (entry.kind === "index") {
      form.starts.push(entry.at);
      form.ends.push(entry.at === "-1" ? INT64_MAX : String(BigInt(entry.at) + 1n));
      form.axes.push(String(axis++));
      form.steps.push("1");
    }
    if (entry.kind === "range") {
      if (entry.begin !== null || entry.end !== null || entry.step !== "1") {
        form.starts.push(entry.begin ?? (isBackward(entry.step) ? INT64_MAX : "0"));
        form.ends.push(entry.end ?? (isBackward(entry.step) ? INT64_MIN : INT64_MAX));
        form.axes.push(String(axis));
        form.steps.push(entry.step);
      }
      axis++;
    }
  }
  return { ...form, steps: form.steps.every((step) => step === "1") ? null : form.steps };
}

/** Writes entries as `begin, end, strides` and masks. */
export function toMasks(entries: readonly Entry[]): MasksForm {
  const range = (entry: Entry) => (entry.kind === "range" ? entry : undefined);
  return {
    begin: entries.map((entry) => (entry.kind === "index" ? entry.at : (range(entry)?.begin ?? "0"))),
    end: entries.map((entry) => (entry.kind === "index" ? String(BigInt(entry.at) + 1n) : (range(entry)?.end ?? "0"))),
    strides: entries.map((entry) => range(entry)?.step ?? "1"),
    masks: {
      begin: entries.map((entry) => range(entry)?.begin === null),
      end: entries.map((entry) => range(entry)?.end === null),
      ellipsis: entries.map((entry) => entry.kind === "ellipsis"),
      newAxis: entries.map((entry) => entry.kind === "new"),
      shrinkAxis: entries.map((entry) => entry.kind === "index"),
    },
  };
}

/** Reads `starts, ends, axes, steps` as entries in the order of the axes. */
export function fromAxes({ starts, ends, axes, steps }: AxesForm, rank: number): Entry[] {
  const places = starts.map((_, at) => {
    const axis = Number(axes?.[at] ?? at);
    const place = axis < 0 ? axis + rank : axis;
    if (!(place >= 0 && place < rank)) throw new Mistake(`axis ${axis} is out of range for rank ${rank}`);
    return place;
  });
  if (new Set(places).size !== places.length) throw new Mistake("an axis is named twice, which masks cannot say");
  const all = { kind: "range", begin: null, end: null, step: "1" } as const;
  return Array.from({ length: Math.max(0, ...places.map((place) => place + 1)) }, (_, axis): Entry => {
    const at = places.indexOf(axis);
    return at < 0 ? all : { kind: "range", begin: starts[at]!, end: ends[at] ?? "0", step: steps?.[at] ?? "1" };
  });
}

/** Reads masks as TensorFlow does: ellipsis before new axis before shrink. */
export function fromMasks({ begin, end, strides, masks }: MasksForm): Entry[] {
  return begin.map((at, entry): Entry => {
    if (masks.ellipsis[entry]) return { kind: "ellipsis" };
    if (masks.newAxis[entry]) return { kind: "new" };
    if (masks.shrinkAxis[entry]) return { kind: "index", at };
    return { kind: "range", begin: masks.begin[entry] ? null : at, end: masks.end[entry] ? null : (end[entry] ?? "0"), step: strides?.[entry] ?? "1" };
  });
}

/** The bits of a mask as TensorFlow's number, with bit 0 for entry 0. */
export const toBits = (mask: readonly boolean[]) => mask.reduce((bits, isSet, at) => bits + (isSet ? 2 ** at : 0), 0);
export const toList = (mask: readonly boolean[]) => mask.map(Number);

export const fromBits = (bits: number, entries: number) => Array.from({ length: entries }, (_, at) => Math.floor(bits / 2 ** at) % 2 === 1);

export function request(dialect: Dialect, shape: string[], axes: AxesForm, masks: MasksForm): SliceRequest {
  const operands = DIALECTS.find(({ id }) => id === dialect)!.operands;
  if (operands === "axes") {
    // Slice-1 has no steps, and Slice-8 needs them.
    const steps = axes.steps ?? (dialect === "openvino-slice" ? axes.starts.map(() => "1") : null);
    return {
      dialect, shape, starts: axes.starts, ends: axes.ends,
      ...(axes.axes && { axes: axes.axes.map(Number) }),
      ...(steps && { steps }),
    };
  }
  const write = dialect === "tensorflow" ? toBits : toList;
  return {
    dialect, shape, starts: masks.begin, ends: masks.end,
    ...(masks.strides && { steps: masks.strides }),
    masks: Object.fromEntries(MASKS.map((mask) => [mask, write(masks.masks[mask])])),
  };
}
