// A static server without special headers, and Chromium on it. Shared by the tests and the script that takes screenshots.

import { createReadStream } from "node:fs";
import { access, stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const DIST = fileURLToPath(new URL("../dist", import.meta.url));
export const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".wasm": "application/wasm" };

/** Serves a folder; `close` ends the server, which is how the tests take the network away. */
export async function serve(folder = DIST) {
  const seen = [];
  const server = createServer(async (request, response) => {
    seen.push(request.url);
    // Any page may read the answers, so that only the policy of the page can refuse a request.
    response.setHeader("Access-Control-Allow-Origin", "*");
    const path = normalize(decodeURIComponent(new URL(request.url, "http://localhost").pathname));
    const file = join(folder, path.endsWith("/") ? `${path}index.html` : path);
    if (!file.startsWith(folder) || !(await stat(file).catch(() => null))?.isFile()) return response.writeHead(404).end();
    response.writeHead(200, { "Content-Type": TYPES[extname(file)] ?? "application/octet-stream" });
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); });
  return { seen, url: `http://127.0.0.1:${server.address().port}/`, close };
}

export const isThere = (path) => access(path).then(() => true, () => false);

export const launch = () => chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
