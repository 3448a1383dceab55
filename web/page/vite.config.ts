import { createHash } from "node:crypto";
import { defineConfig, type Plugin } from "vite";

/** Files that the service worker fetches on first use only: the runtime for comparisons is larger than everything else together. */
const LAZY = /ort-wasm.*\.wasm$/;

/** Writes the list of files, and a version that changes with any of them, into the service worker. */
function listFiles(): Plugin {
  return {
    name: "list-files",
    enforce: "post",
    generateBundle(_, bundle) {
      const worker = bundle["sw.js"];
      if (worker?.type !== "chunk") throw new Error("the service worker was not built");
      const files = Object.keys(bundle).filter((name) => name !== "sw.js" && !LAZY.test(name));
      const version = createHash("sha256");
      for (const name of files.sort()) {
        const file = bundle[name]!;
        version.update(name).update(file.type === "chunk" ? file.code : file.source);
      }
      worker.code = worker.code
        .replace("__VERSION__", version.digest("hex").slice(0, 16))
        .replace(/["'`]__FILES__["'`]/, JSON.stringify(["./", "icon.svg", ...files.filter((name) => name !== "index.html")]));
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [listFiles()],
  // The package and the sample models lie outside of this folder.
  server: { fs: { allow: ["../.."] } },
  worker: { format: "es" },
  build: {
    target: "es2023",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1000,
    rollupOptions: {
      input: { index: "index.html", sw: "src/service-worker.ts" },
      output: { entryFileNames: (chunk) => (chunk.name === "sw" ? "sw.js" : "assets/[name]-[hash].js") },
    },
  },
});
