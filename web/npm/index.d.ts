/** The version of the package. */
export const version: string;

/**
 * Loads the WebAssembly module, by default the file next to `index.js`. Calls load it themselves; with `init`, a page names another place or loads it early.
 * The compiled module is kept, and each call runs in a fresh instance.
 */
export function init(module?: string | URL | Response | Promise<Response> | BufferSource | WebAssembly.Module): Promise<void>;

/** A model: bytes, a Blob or File, or (Node) the path of a file. */
export type Source = Uint8Array | ArrayBuffer | ArrayBufferView | Blob | string | URL;

/** Options with the names of the program's flags, in camel case. `undefined`, `null` and `false` mean that a flag is not given. */
export interface Options {
  /** Fixes or bounds dims of the inputs: `["batch=1", "seq=1..4096"]`, or `{ batch: 1, seq: "1..4096" }`. */
  dim?: string | string[] | Record<string, string | number> | null;
  /** States relations between dims that hold in every run: `"past + seq <= 2048"`. */
  assume?: string | string[] | null;
  /** Sets shapes of inputs: `"x:1,3,224,224"`. */
  overwriteInputShape?: string | string[] | null;
  /** Relies on all shapes that the model declares, not only on those of its inputs. */
  trustDeclaredShapes?: boolean | null;
  /** Parses labels of inputs' dims as expressions. */
  trustInputNames?: boolean | null;
  /** Extracts the part of the model after these values, which become its inputs. */
  inputs?: string | string[] | null;
  /** Extracts the part of the model before these values, which become its outputs. */
  outputs?: string | string[] | null;
  /** Removes outputs. */
  unusedOutput?: string | string[] | null;
  /** How to read slices for which ONNX Runtime and the standard disagree. */
  sliceRule?: "agree" | "onnxruntime" | "spec" | "numpy" | null;
  /** Registers operators as strided slices: `"com.example::Crop=tensorflow"`. */
  stridedSlice?: string | string[] | null;
  /** Allows constants to enlarge the model by this share of its size, in percent. */
  maxGrowth?: number | string | null;
  /** Does not fold constants larger than this: a number of bytes, or text such as `"16K"`. */
  foldSizeThreshold?: number | string | null;
  /** Refuses a model for which every run fails. */
  strict?: boolean | null;
  /** Disables rewrite rules or passes. */
  skip?: string | string[] | null;
  /** Disables all other rewrite rules and passes. */
  only?: string | string[] | null;
  /** Replaces constructs that the consumer of the result lacks: `"Loop"`, `"negative-steps"`, `"rank>5"`. The report lists the nodes that remain. */
  avoid?: string | string[] | null;
  /** Disables all rewrite rules and passes. */
  noRules?: boolean | null;
  /** Only uses rewrites that preserve every bit of the results. */
  exact?: boolean | null;
  /** Folds DequantizeLinear of constants to floats. */
  foldDequantize?: boolean | null;
  /** Unrolls loops, as long as the model grows by at most this many nodes. */
  unroll?: number | null;
  /** Does not write the program's version and options to the model's metadata. */
  noStamp?: boolean | null;
  /** The shapes of inner tensors to write. */
  shapes?: "auto" | "all" | "keep" | "lean" | "none" | null;
  /** Short for `shapes: "lean"`. */
  lean?: boolean | null;
  /** Short for `shapes: "keep"`. */
  noNewShapes?: boolean | null;
  /** Converts the model to this operator set of the default domain. */
  opset?: number | "latest" | string | null;
  /** Stops after this many edits. */
  stopAfter?: number | null;
  /** Verifies the model after each pass that changed it. */
  verifyEach?: boolean | null;
  /** Data files by their locations (Node finds those next to a path), or the treatment of data in files. */
  externalData?: Record<string, Source> | Map<string, Source> | "keep" | "copy" | "link" | "inline" | null;
  /** Writes tensors of at least the threshold to a data file. */
  saveAsExternalData?: boolean | null;
  /** The least bytes of a tensor in a data file. */
  externalDataThreshold?: number | string | null;
  /** The name of the model in reports. */
  name?: string;
  /** Receives a short description of each step of the program. */
  onProgress?: (text: string) => void;
}

export interface FoldOptions extends Options {
  /** Compares original and result on this many generated inputs; `true` means 8. A difference is an error of kind `"differs"`. */
  check?: number | boolean | null;
  /** Fills `report.detail`. */
  detailed?: boolean;
  /** Node: the file for the result, which is written whole or not at all. `model` is null then. */
  output?: string | URL;
}

export interface Folded<Model = Uint8Array | Blob | null> {
  /** The result: a Blob for a Blob, otherwise bytes; null if it was written to `output`. */
  model: Model;
  /** Its new data file, if it has one. */
  data: { location: string; data: Uint8Array | Blob }[];
  report: Report;
  /** The report as a table. */
  text: string;
  /** What `check` found. */
  checked: string | null;
  /** The bytes of the module's memory at the end. */
  memory: number;
}

/** Folds a model: infers shapes, folds constants and rewrites the graph. */
export function fold(source: Uint8Array | ArrayBuffer | ArrayBufferView, options?: FoldOptions & { output?: undefined }): Promise<Folded<Uint8Array>>;
export function fold(source: Blob, options?: FoldOptions & { output?: undefined }): Promise<Folded<Blob>>;
export function fold(source: string | URL, options?: FoldOptions & { output?: undefined }): Promise<Folded<Uint8Array>>;
export function fold(source: Source, options?: FoldOptions): Promise<Folded>;

/** Infers and writes shapes, and changes nothing else. */
export function inferShapes(source: Uint8Array | ArrayBuffer | ArrayBufferView | string | URL, options?: FoldOptions & { output?: undefined }): Promise<Folded<Uint8Array>>;
export function inferShapes(source: Blob, options?: FoldOptions & { output?: undefined }): Promise<Folded<Blob>>;
export function inferShapes(source: Source, options?: FoldOptions): Promise<Folded>;

/** Inspects a model: operators, parameters, multiply-accumulates, peak memory. */
export function inspect(source: Source, options?: Options): Promise<{ report: Inspection; text: string }>;

/** Explains why the nodes that folding keeps are kept, and which options would remove them. */
export function explain(source: Source, options?: Options & { names?: string[]; trials?: number; rule?: undefined }): Promise<{ report: Explanation; text: string }>;

/** Explains why a rule does not apply: for each remaining node with its pattern, or for one node, the first premise that fails. */
export function explain(source: Source, options: Options & { rule: string; node?: string }): Promise<{ report: RuleExplanation; text: string }>;

/** Prints a model in the ONNX text syntax with inferred shapes, folded first on request; or draws it for Graphviz or Mermaid. */
export function show(source: Source, options?: Options & { form?: "text" | "full" | "dot" | "mermaid"; around?: string; depth?: number; folded?: boolean }): Promise<string>;

/** Compares two models by the values that their nodes compute: a line for each difference. */
export function diff(before: Source, after: Source, options?: Options): Promise<string>;

/** Folds a model, and compares original and result by the program's evaluator. */
export function check(source: Source, options?: Options & { count?: number }): Promise<{ equal: boolean; text: string; report: Report }>;

/** Returns the kind of each option. */
export function options(): Promise<Record<string, "flag" | "value" | "list">>;

/** Lists the rewrite rules and passes. */
export function rules(): Promise<{ name: string; sentence: string; law: string; exact: boolean }[]>;

/** Resolves one slice in a dialect: the elements that it selects from each axis, and the equivalent ONNX Slice. */
export function resolveSlice(request: SliceRequest): Promise<ResolvedSlice>;

type Integer = number | bigint | string;

export interface SliceRequest {
  dialect: "onnx-1" | "onnx-10" | "onnx-11" | "onnx-13" | "tensorflow" | "openvino" | "openvino-slice";
  /** Numbers, names or expressions. */
  shape: (string | number)[];
  /** `starts`, `ends` and `steps` are *begin*, *end* and *strides* of the strided dialects. An operand that is not given is left out. */
  starts: Integer[];
  ends: Integer[];
  axes?: Integer[];
  steps?: Integer[];
  /** Numbers for TensorFlow, lists for OpenVINO. */
  masks?: { begin?: number | number[]; end?: number | number[]; ellipsis?: number | number[]; newAxis?: number | number[]; shrinkAxis?: number | number[] };
  /** How to read what ONNX Runtime and the standard read differently. */
  rule?: "agree" | "onnxruntime" | "spec" | "numpy";
}

export interface ResolvedSlice {
  axes: {
    op: "keep" | "range" | "index" | "new";
    axis?: number;
    size?: string;
    start?: string;
    len?: string;
    step?: number;
    /** First element, number of elements and size, with 64 for every open size. */
    picture?: [number, number, number];
    /** The elements, in order. */
    picks?: number[];
  }[];
  shape: string[];
  onnx: { starts: (number | string)[]; ends: (number | string)[]; axes: number[]; steps: (number | string)[]; squeeze: number[]; unsqueeze: number[] } | null;
  /** Where other dialects read the request differently. */
  notes: string[];
}

/** A failure: `message` as the program prints it. */
export class FoldError extends Error {
  /** What went wrong. "trap": the module failed; other calls are not affected. */
  kind: "io" | "malformed" | "unsupported" | "limit" | "changed" | "assumption" | "extraction" | "impossible" | "not evaluated" | "usage" | "internal" | "differs" | "trap";
}

/** docs/report.md of the project describes the fields. */
export interface Report {
  schema: string;
  program: { name: string; version: string };
  model: string;
  files: { path: string; bytes: number }[];
  missing_data: { location: string; tensors: number; looked_in: string[] }[];
  before: Census;
  after: Census;
  inputs: { name: string; before: string; after: string }[];
  outputs: { name: string; before: string; after: string }[];
  rounds: number;
  seconds: number;
  rules: { name: string; edits: number; sentence: string; law: string; exact: boolean }[];
  edits: { rule: string; place: string | null }[];
  values: { name: string; before: string | null; after: string | null }[];
  avoided: { construct: string; place: string; reason: string }[];
  size_nodes: number;
  shapes_left_out: { shapes: number; reason: string } | null;
  label_relations: string[];
  passes: { name: string; runs: number; edits: number; seconds: number }[];
  notes: { kind: string; place: string; reason: string }[];
  /** With `detailed`. */
  detail?: Detail;
}

export interface Census {
  nodes: number;
  operators: Record<string, number>;
  unknown_operators: Record<string, number>;
  initializers: number;
  tensors: number;
  shapes_known: number;
  shapes_with_our_names: number;
  bytes: number | null;
  external_bytes: number | null;
}

export interface Detail {
  /** The model before, with inferred types. */
  before: Graph;
  after: Graph;
  causes: Cause[];
  /** The index maps of nodes that move elements: the first 1,000 that are known. */
  maps: {
    before: MovementMap[];
    after: MovementMap[];
    /** Composed maps: chains and trees of the model before that the rule `movement` merged. */
    merged: MovementMap[];
  };
}

export interface Graph {
  inputs: Port[];
  outputs: Port[];
  initializers: (Port & { bytes: number })[];
  /** In an order to compute in. Nodes of subgraphs follow the node that holds them. */
  nodes: GraphNode[];
}

export interface Port { name: string; type: string }

export interface GraphNode {
  operator: string;
  name: string;
  /** As in `edits[].place` and `causes[].node`. */
  label: string;
  /** Values that it reads, those of its subgraphs included. */
  inputs: string[];
  outputs: Port[];
  attributes: Record<string, string>;
  /** The index of the node whose subgraph holds it. */
  parent?: number;
  /** The parts of its name before the last one. */
  scope: string[];
  /** What became of it. Nodes are matched by their results, then by name and operator. */
  status: "unchanged" | "changed" | "removed" | "new";
  /** The index of the same node in the other graph. */
  counterpart?: number;
  /** Indices of `report.edits` that removed, changed or made it, as far as they name it. */
  edits: number[];
}

export interface Cause { node: string; operator: string; result: string; kind: string; reason: string; chain: string[] }

/** Which element of which operand, or which constant, each element of a result is. */
export interface MovementMap {
  node: string;
  operator: string;
  /** The nodes above it whose maps are composed with its map; none for the map of the node itself. */
  above: string[];
  result: MappedTensor;
  /** The operands whose elements the node moves. */
  sources: MappedTensor[];
  /** A line for each piece: `n ≤ i < n + m: out[i, j] = b[i − n, j]`. */
  lines: string[];
  /** A picture of the same as an SVG element without styles. */
  svg: string;
}

export interface MappedTensor {
  name: string;
  /** The symbol in the lines. */
  symbol: string;
  shape: string[];
}

/** docs/report.md of the project describes the fields. */
export interface Explanation {
  schema: string;
  model: string;
  headline: string;
  seconds: number;
  nodes_before: number;
  nodes: number;
  tensors: number;
  tensors_open: number;
  trials: number;
  more_to_try: boolean;
  suggestions: { flags: string; condition: string; nodes: number; tensors_open: number; options: Options }[];
  causes: Cause[];
  open_sizes: { name: string; tensor: string; tensors: number; reason: string; chain: string[] }[];
  missing_data: Report["missing_data"];
  answers: { name: string; text: string }[];
  notes: Report["notes"];
}

/** docs/report.md of the project describes the fields. */
export interface RuleExplanation {
  schema: string;
  model: string;
  rule: string;
  edits: number;
  in_force: boolean;
  nodes: { node: string; failed: { premise: string; statement: string; about: string | null; question: string | null } | null }[];
}

/** docs/report.md of the project describes the fields. */
export interface Inspection {
  schema: string;
  model: string;
  producer: { name: string; version: string };
  ir_version: number;
  opsets: Record<string, number>;
  bytes: number;
  inputs: Port[];
  inputs_with_default: string[];
  outputs: Port[];
  dynamic_dims: { name: string; places: { input: string; axis: number }[] }[];
  nodes: number;
  operators: Record<string, number>;
  unknown_operators: Record<string, number>;
  functions: unknown[];
  parameters: Record<string, { tensors: number; elements: number; bytes: number }>;
  macs: { total: unknown; operators: Record<string, unknown>; uncounted: unknown };
  peak_memory: { bytes: unknown; node: string | null; tensors_of_unknown_size: number };
  data_files: { location: string; tensors: number; bytes: number; missing: boolean }[];
  largest_tensors: { name: string; type: string; bytes: number }[];
}
