// Lays graphs out, so that a large one does not block the page.

import { layout, type Input } from "./layout";

self.addEventListener("message", ({ data: { id, input } }: MessageEvent<{ id: number; input: Input }>) => {
  self.postMessage({ id, placed: layout(input) });
});
