// Serves the page without a network, and lets no request of the page or its Workers leave the origin.
//
// The page's policy is in its markup, since a static server may send no header; here every response gets it as a header as well.

export {};
const worker = self as unknown as ServiceWorkerGlobalScope;
const CACHE = "onnx-slice-fold-__VERSION__";
const FILES = "__FILES__" as unknown as string[];
const POLICY = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

worker.addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(FILES)).then(() => worker.skipWaiting()));
});

worker.addEventListener("activate", (event) => {
  const drop = async () => {
    for (const name of await caches.keys()) if (name.startsWith("onnx-slice-fold-") && name !== CACHE) await caches.delete(name);
    await worker.clients.claim();
  };
  event.waitUntil(drop());
});

worker.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (url.protocol === "blob:" || url.protocol === "data:") return;
  event.respondWith(url.origin === worker.location.origin && event.request.method === "GET" ? answer(event.request) : Response.error());
});

async function answer(request: Request): Promise<Response> {
  const cache = await caches.open(CACHE);
  const key = request.mode === "navigate" ? "./" : request;
  let response = await cache.match(key, { ignoreSearch: true });
  if (!response) {
    response = await fetch(request);
    if (response.ok) await cache.put(request, response.clone());
  }
  const headers = new Headers(response.headers);
  headers.set("Content-Security-Policy", POLICY);
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}
