// Calls into the Worker. Cancelling ends the Worker, and a new one takes over the remaining calls.

import { spawn } from "./spawn";
import type { Calls, Reply, Request } from "./worker";
import script from "./worker.ts?worker&url";

type Tail<T> = T extends [unknown, ...infer Rest] ? Rest : [];
type Args<K extends keyof Calls> = Tail<Parameters<Calls[K]>>;
type Result<K extends keyof Calls> = Awaited<ReturnType<Calls[K]>>;

export class Failure extends Error {
  constructor(message: string, readonly kind: string) {
    super(message);
  }
}

interface Pending {
  request: Request;
  resolve: (result: unknown) => void;
  reject: (failure: Failure) => void;
  progress: (text: string) => void;
}

const pending = new Map<number, Pending>();
let worker: Worker | undefined;
let last = 0;

function start(): Worker {
  const started = spawn(script, "fold");
  started.addEventListener("message", ({ data }: MessageEvent<Reply>) => {
    const call = pending.get(data.id);
    if (data.progress !== undefined) return call?.progress(data.progress);
    pending.delete(data.id);
    if (data.error) call?.reject(new Failure(data.error.message, data.error.kind));
    else call?.resolve(data.result);
  });
  started.addEventListener("error", (event) => {
    // The Worker itself failed: its script is missing, or the tab has no memory left.
    worker = undefined;
    started.terminate();
    const failure = new Failure(event.message || "the Worker could not be started", "internal");
    for (const call of pending.values()) call.reject(failure);
    pending.clear();
  });
  return started;
}

export interface Call<T> {
  result: Promise<T>;
  cancel: () => void;
}

export function call<K extends keyof Calls>(name: K, args: Args<K>, progress: (text: string) => void = () => {}): Call<Result<K>> {
  worker ??= start();
  const request: Request = { id: ++last, call: name, args };
  const result = new Promise<Result<K>>((resolve, reject) => {
    pending.set(request.id, { request, resolve: resolve as (result: unknown) => void, reject, progress });
  });
  worker.postMessage(request);
  const cancel = () => {
    const call = pending.get(request.id);
    if (!call) return;
    pending.delete(request.id);
    worker?.terminate();
    worker = start();
    for (const other of pending.values()) worker.postMessage(other.request);
    call.reject(new Failure("cancelled", "cancelled"));
  };
  return { result, cancel };
}
