// Layouts from the layout Worker, with boxes of one size.

import { useEffect, useState } from "preact/hooks";
import { BOX_HEIGHT, BOX_WIDTH } from "./canvas";
import { spawn } from "../spawn";
import type { Placed } from "./layout";
import script from "./layout-worker.ts?worker&url";
import type { Drawn } from "./model";

const waiting = new Map<number, (placed: Placed) => void>();
let worker: Worker | undefined;
let last = 0;

function place(drawn: Drawn): Promise<Placed> {
  if (!worker) {
    worker = spawn(script, "layout");
    worker.addEventListener("message", ({ data }: MessageEvent<{ id: number; placed: Placed }>) => {
      waiting.get(data.id)?.(data.placed);
      waiting.delete(data.id);
    });
  }
  const id = ++last;
  const input = { widths: drawn.boxes.map(() => BOX_WIDTH), heights: drawn.boxes.map(() => BOX_HEIGHT), edges: drawn.edges };
  worker.postMessage({ id, input });
  return new Promise((resolve) => waiting.set(id, resolve));
}

/** Returns the drawing with its layout; the previous one while a new one is computed. */
export function usePlaced(drawn: Drawn): { drawn: Drawn; placed: Placed } | undefined {
  const [ready, setReady] = useState<{ drawn: Drawn; placed: Placed }>();
  useEffect(() => {
    let isCurrent = true;
    void place(drawn).then((placed) => isCurrent && setReady({ drawn, placed }));
    return () => void (isCurrent = false);
  }, [drawn]);
  return ready;
}
