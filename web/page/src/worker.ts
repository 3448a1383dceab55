// The Worker in which models are folded. The page ends it to cancel.

import * as engine from "onnx-slice-fold";
import type { FoldOptions, Options, Source } from "onnx-slice-fold";

type Progress = (text: string) => void;

const calls = {
  fold: (progress: Progress, source: Source, options: FoldOptions) => engine.fold(source, { ...options, onProgress: progress }),
  check: (progress: Progress, source: Source, options: Options, count: number) =>
    engine.check(source, { ...options, count, onProgress: progress }),
  explain: (_: Progress, source: Source, options: Options, names: string[], trials?: number) =>
    engine.explain(source, trials === undefined ? { ...options, names } : { ...options, names, trials }),
  explainRule: (_: Progress, source: Source, options: Options, rule: string, node: string) => engine.explain(source, { ...options, rule, node }),
  inspect: (_: Progress, source: Source, options: Options) => engine.inspect(source, options),
  rules: () => engine.rules(),
  version: async () => engine.version,
  resolveSlices: async (_: Progress, requests: engine.SliceRequest[]) => {
    const one = (request: engine.SliceRequest) =>
      engine.resolveSlice(request).then(
        (resolved) => ({ resolved, error: "" }),
        (error: Error) => ({ resolved: null, error: error.message }),
      );
    return Promise.all(requests.map(one));
  },
  /** Runs two models in ONNX Runtime Web, which is fetched from this origin at the first call. */
  compare: async (progress: Progress, before: Blob, after: Blob, data: Map<string, Blob>, size: number) =>
    (await import("./runtime")).compare(progress, before, after, data, size),
};

export type Calls = typeof calls;
export type Request = { id: number; call: keyof Calls; args: unknown[] };
export type Reply = { id: number; progress?: string; result?: unknown; error?: { message: string; kind: string } };

const reply = (message: Reply) => self.postMessage(message);

self.addEventListener("message", async ({ data: { id, call, args } }: MessageEvent<Request>) => {
  const run = calls[call] as (progress: Progress, ...args: unknown[]) => Promise<unknown>;
  try {
    reply({ id, result: await run((progress) => reply({ id, progress }), ...args) });
  } catch (error) {
    const { message, kind = "internal" } = error as Error & { kind?: string };
    reply({ id, error: { message, kind } });
  }
});
