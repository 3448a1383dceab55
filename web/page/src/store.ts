// The models of the page, the calls that run for each of them, and the URL with the options of the current one.

import type { Explanation, Folded, Inspection, Options, RuleExplanation } from "onnx-slice-fold";
import { useEffect, useState } from "preact/hooks";
import { call, Failure, type Call } from "./engine";
import { asOptions, fromQuery, toQuery, withOptions, type Settings } from "./options";
import { sample } from "./samples";

export type Run =
  | { state: "working"; progress: string }
  | { state: "done"; folded: Folded }
  | { state: "failed"; message: string; kind: string }
  | { state: "cancelled" };

/** An answer that is computed on request. */
export type Answer<T> = { state: "working"; cancel: () => void } | { state: "done"; value: T } | { state: "failed"; message: string };

export interface Item {
  id: number;
  name: string;
  file: Blob;
  /** Data files by location. */
  data: ReadonlyMap<string, Blob>;
  /** The name of a sample model, for the URL. */
  sample?: string;
  settings: Settings;
  run: Run;
  /** The result of the last successful fold, for display while another fold runs. */
  last?: Folded;
  inspection?: Inspection;
  explanation?: Answer<{ report: Explanation }>;
  check?: Answer<{ equal: boolean; text: string }>;
}

interface State {
  items: readonly Item[];
  current: number | undefined;
  /** A failure that belongs to no model. */
  notice: string;
}

let state: State = { items: [], current: undefined, notice: "" };
const listeners = new Set<() => void>();
const running = new Map<number, Call<unknown>>();
let last = 0;

function set(change: Partial<State>): void {
  state = { ...state, ...change };
  listeners.forEach((listener) => listener());
}

function update(id: number, change: Partial<Item>): void {
  set({ items: state.items.map((item) => (item.id === id ? { ...item, ...change } : item)) });
}

const get = (id: number) => state.items.find((item) => item.id === id);

export function useStore(): State {
  const [seen, setSeen] = useState(state);
  useEffect(() => {
    const listener = () => setSeen(state);
    listeners.add(listener);
    listener();
    return () => void listeners.delete(listener);
  }, []);
  return seen;
}

export const currentOf = ({ items, current }: State) => items.find((item) => item.id === current);

/** A file and where it lies below the folder that was dropped. */
export interface Dropped {
  file: File;
  path: string;
}

const IS_MODEL = /\.(onnx|onnxtxt|pb|pbtxt)$/i;

/** Opens models. The other files are external data of each new model; without a new model, of the open models that lack data. */
export function open(files: readonly Dropped[]): void {
  if (!files.length) return;
  const models = files.filter(({ file }) => IS_MODEL.test(file.name));
  const rest = files.filter((dropped) => !models.includes(dropped));
  const waiting = state.items.filter((item) => item.run.state === "done" && item.run.folded.report.missing_data?.length);
  if (!models.length && waiting.length) {
    for (const item of waiting) {
      update(item.id, { data: new Map([...item.data, ...beside("", rest)]) });
      fold(item.id);
    }
    return;
  }
  const items = (models.length ? models : rest).map(({ file, path }): Item => ({
    id: ++last,
    name: file.name,
    file,
    data: models.length ? beside(path.slice(0, path.length - file.name.length), rest) : new Map(),
    settings: startSettings(),
    run: { state: "working", progress: "waiting" },
  }));
  add(items);
}

/** Data files by their location, which is relative to the folder of the model. */
function beside(folder: string, files: readonly Dropped[]): Map<string, Blob> {
  const found = new Map<string, Blob>();
  for (const { file, path } of files) {
    found.set(file.name, file);
    if (path.startsWith(folder)) found.set(path.slice(folder.length), file);
  }
  return found;
}

/** Settings of the URL, for the first models that are opened. */
const startSettings = () => (state.items.length ? {} : fromQuery(new URLSearchParams(location.search)));

export async function openSample(id: string): Promise<void> {
  const there = state.items.find((item) => item.sample === id);
  if (there) return select(there.id);
  try {
    const file = await sample(id);
    add([{ id: ++last, name: file.name, file, data: new Map(), sample: id, settings: startSettings(), run: { state: "working", progress: "waiting" } }]);
  } catch (error) {
    set({ notice: (error as Error).message });
  }
}

function add(items: Item[]): void {
  set({ items: [...state.items, ...items], current: items[0]?.id, notice: "" });
  toUrl();
  for (const { id } of items) {
    fold(id);
    inspect(id);
  }
}

export function select(id: number): void {
  set({ current: id, notice: "" });
  toUrl();
}

export function close(id: number): void {
  running.get(id)?.cancel();
  const closed = get(id);
  if (closed) stopAnswers(closed);
  const at = state.items.findIndex((item) => item.id === id);
  const items = state.items.filter((item) => item.id !== id);
  set({ items, current: state.current === id ? items[Math.min(at, items.length - 1)]?.id : state.current });
  toUrl();
}

export function settle(id: number, settings: Settings): void {
  update(id, { settings });
  toUrl();
  fold(id);
}

export function apply(id: number, options: Options): void {
  const item = get(id);
  if (item) settle(id, withOptions(item.settings, options));
}

export function cancel(id: number): void {
  running.get(id)?.cancel();
}

function optionsOf(item: Item): Options {
  return { ...asOptions(item.settings), name: item.name, externalData: new Map(item.data) };
}

export function fold(id: number): void {
  const item = get(id);
  if (!item) return;
  running.get(id)?.cancel();
  stopAnswers(item);
  update(id, { run: { state: "working", progress: "waiting" }, explanation: undefined, check: undefined });
  const current = call("fold", [item.file, { ...optionsOf(item), detailed: true }], (progress) => {
    if (running.get(id) === current) update(id, { run: { state: "working", progress } });
  });
  running.set(id, current);
  const end = (run: Run) => {
    if (running.get(id) !== current) return;
    running.delete(id);
    update(id, { run, last: run.state === "done" ? run.folded : undefined });
  };
  current.result.then(
    (folded) => end({ state: "done", folded }),
    (error: Failure) => end(error.kind === "cancelled" ? { state: "cancelled" } : { state: "failed", message: error.message, kind: error.kind }),
  );
}

function inspect(id: number): void {
  const item = get(id);
  if (!item) return;
  const options: Options = { name: item.name, externalData: new Map(item.data) };
  // Folding reports a model that cannot be read.
  call("inspect", [item.file, options]).result.then(({ report }) => update(id, { inspection: report }), () => {});
}

/** Fills a field of an item with the answer of a call, unless the model was folded again meanwhile. */
function answer<T>(id: number, field: "explanation" | "check", asked: Call<T>): void {
  const was = get(id)?.run;
  update(id, { [field]: { state: "working", cancel: asked.cancel } });
  const end = (answer: Answer<T> | undefined) => {
    if (get(id)?.run === was) update(id, { [field]: answer });
  };
  asked.result.then(
    (value) => end({ state: "done", value }),
    (error: Failure) => end(error.kind === "cancelled" ? undefined : { state: "failed", message: error.message }),
  );
}

/** Cancels explanations and checks of the previous result, so that a new fold does not wait for them. */
function stopAnswers({ explanation, check }: Item): void {
  for (const answer of [explanation, check]) if (answer?.state === "working") answer.cancel();
}

export function explain(id: number, trials = 10): void {
  const item = get(id);
  if (item) answer(id, "explanation", call("explain", [item.file, optionsOf(item), [], trials]));
}

export async function explainNames(id: number, names: string[]): Promise<Explanation> {
  const item = get(id);
  if (!item) throw new Error("the model was closed");
  return (await call("explain", [item.file, optionsOf(item), names]).result).report;
}

/** The first premise of a rule that fails at a node of the result, or `null` if the rule matches the node. Throws where the rule's pattern does not fit. */
export async function explainRule(id: number, rule: string, node: string): Promise<RuleExplanation["nodes"][number]["failed"]> {
  const item = get(id);
  if (!item) throw new Error("the model was closed");
  const { report } = await call("explainRule", [item.file, optionsOf(item), rule, node]).result;
  const [found] = report.nodes;
  if (!found) throw new Error(`the node has not the pattern of ${rule}`);
  return found.failed;
}

export function check(id: number, count: number): void {
  const item = get(id);
  if (item) answer(id, "check", call("check", [item.file, optionsOf(item), count]));
}

/** Writes the options of the current model into the URL. */
function toUrl(): void {
  const url = new URL(location.href);
  const item = currentOf(state);
  toQuery(item?.settings ?? {}, url.searchParams);
  url.searchParams.delete("model");
  if (item?.sample) url.searchParams.set("model", item.sample);
  history.replaceState(null, "", url);
}

/** Opens the sample model that the URL names. */
export function fromUrl(): void {
  const id = new URLSearchParams(location.search).get("model");
  if (id) void openSample(id);
}
