// The page in Chromium, driven like a user and compared with the native program.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { launch, serve } from "./browser.mjs";
import { DEEP } from "../../npm/test/support.js";
import { chain, external } from "./models.mjs";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const MODELS = process.env.MODELS ?? join(ROOT, "models");
const PROGRAM = process.env.ONNX_SLICE_FOLD ?? join(ROOT, "target/debug/onnx-slice-fold");
const AXE = await readFile(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const WIDTHS = [360, 1024, 1920];
const SCHEMES = ["light", "dark"];

let browser, server, folder, requests, contexts;

before(async () => {
  server = await serve();
  browser = await launch();
  folder = await mkdtemp(join(tmpdir(), "page-"));
  requests = [];
  contexts = [];
});
afterEach(async () => {
  await Promise.all(contexts.splice(0).map((context) => context.close()));
});
after(async () => {
  await browser?.close();
  await server?.close();
  if (folder) await rm(folder, { recursive: true });
});

/** Opens the page. Errors of its scripts fail the test. */
async function open(query = "", { width = 1440, scheme = "light", at = server.url, offline = false } = {}) {
  const context = await browser.newContext({
    viewport: { width, height: 900 }, colorScheme: scheme, serviceWorkers: offline ? "allow" : "block", acceptDownloads: true,
    permissions: ["clipboard-read", "clipboard-write"],
  });
  contexts.push(context);
  context.on("request", (request) => requests.push(request.url()));
  const page = await context.newPage();
  page.on("pageerror", (error) => assert.fail(`the page threw: ${error.message}`));
  await page.goto(at + query);
  return page;
}

async function drop(page, files) {
  const contents = files.map(({ name, bytes }) => ({ name, base64: Buffer.from(bytes).toString("base64") }));
  const transfer = await page.evaluateHandle(async (contents) => {
    const transfer = new DataTransfer();
    for (const { name, base64 } of contents) transfer.items.add(new File([Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))], name));
    return transfer;
  }, contents);
  await page.dispatchEvent("main", "drop", { dataTransfer: transfer });
}

/** Waits for the result of the current fold. */
const done = (page) => page.locator(".summary:not([aria-busy=true])").waitFor({ timeout: 60_000 });

async function download(page) {
  const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: /^Download/ }).click()]);
  return { name: saved.suggestedFilename(), bytes: await readFile(await saved.path()) };
}

/** The program's result for a file, or its message. */
async function native(path, ...flags) {
  const result = join(folder, "native.onnx");
  try {
    await promisify(execFile)(PROGRAM, [path, "-o", result, "--no-config", "--quiet", ...flags]);
    return { bytes: await readFile(result) };
  } catch (error) {
    return { message: error.stderr.trim().replace(/^error: /, "") };
  }
}

async function models(count) {
  const names = (await readdir(MODELS)).filter((name) => name.endsWith(".onnx")).sort();
  return names.slice(0, count).map((name) => join(MODELS, name));
}

const command = (page) => page.getByLabel("Command line that does the same").innerText();

test("is interactive in under a second", async () => {
  const times = [];
  for (let run = 0; run < 3; run++) {
    const page = await open();
    await page.getByRole("button", { name: "Choose files" }).waitFor();
    times.push(await page.evaluate(() => performance.getEntriesByName("interactive")[0].startTime));
  }
  assert(Math.min(...times) < 1000, `${times} ms`);
});

test("folds dropped models to the bytes of the native program", async () => {
  const paths = await models(5);
  const page = await open();
  await drop(page, await Promise.all(paths.map(async (path) => ({ name: basename(path), bytes: await readFile(path) }))));
  for (const path of paths) {
    const name = basename(path);
    await page.getByRole("list", { name: "Models" }).getByRole("button", { name }).first().click();
    await done(page);
    const saved = await download(page);
    assert.equal(saved.name, name.replace(".onnx", ".folded.onnx"));
    assert((await native(path)).bytes.equals(saved.bytes), `${name} differs from the native program's result`);
  }
});

test("changes a dim, keeps it in the URL, and writes the command line", async () => {
  const page = await open("?model=bert_dy18d");
  await done(page);
  const field = page.getByRole("textbox", { name: /s33/ });
  await field.fill("1");
  await field.press("Enter");
  await page.waitForURL(/dim=s33%3D1/);
  await done(page);
  assert.equal(await command(page), "onnx-slice-fold bert_dy18d.onnx --dim s33=1");
  await page.getByRole("button", { name: "Copy" }).click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "onnx-slice-fold bert_dy18d.onnx --dim s33=1");
  const { bytes } = await native(join(ROOT, "models/bert_dy18d.onnx"), "--dim", "s33=1");
  assert(bytes.equals((await download(page)).bytes));
  await page.reload();
  await done(page);
  assert.equal(await command(page), "onnx-slice-fold bert_dy18d.onnx --dim s33=1");
});

test("follows a suggestion", async () => {
  const page = await open("?model=slice_zoo_ts13d");
  await done(page);
  await page.getByRole("tab", { name: /Remaining/ }).click();
  // Where folding is slow, suggestions are searched on request.
  const search = page.getByRole("button", { name: /Search for suggestions/ });
  if (await search.isVisible()) await search.click();
  const suggestion = page.getByRole("listitem").filter({ has: page.getByRole("button", { name: /^Fold with/ }) }).first();
  const flags = (await suggestion.getByRole("button").innerText()).replace(/^Fold with\s*/, "");
  const promised = (await suggestion.innerText()).match(/→ (\d+) nodes/)[1];
  await suggestion.getByRole("button").click();
  await page.getByLabel("Command line that does the same").filter({ hasText: flags }).waitFor();
  await done(page);
  assert.match(await page.getByRole("region", { name: "Summary", exact: true }).innerText(), new RegExp(`→\\s*${promised}`));
  const { bytes } = await native(join(ROOT, "models/slice_zoo_ts13d.onnx"), ...flags.match(/'[^']*'|[^ ]+/g).map((word) => word.replace(/^'(.*)'$/, "$1")));
  assert(bytes.equals((await download(page)).bytes));
});

test("shows the program's message for a hostile file, and folds the next model", async () => {
  const page = await open();
  const whole = await readFile(join(ROOT, "models/focus_ts13d.onnx"));
  const hostile = [["cut.onnx", whole.subarray(0, whole.length >> 1)], ["noise.onnx", Buffer.from("8b1f".repeat(400), "hex")], ["empty.onnx", Buffer.alloc(0)]];
  for (const [name, bytes] of hostile) {
    await writeFile(join(folder, name), bytes);
    const { message } = await native(join(folder, name));
    await drop(page, [{ name, bytes }]);
    await page.getByRole("heading", { name: `${name} was not folded` }).waitFor();
    const shown = await page.locator(".program-message").innerText();
    // The native program names the path before the reason.
    const reason = message.split(": ").slice(1).join(": ");
    assert(reason && shown.includes(reason), `${JSON.stringify(shown)} lacks ${JSON.stringify(reason)}`);
  }
  await drop(page, [{ name: "focus.onnx", bytes: whole }]);
  await done(page);
});

test("folds deep models in a Worker", async () => {
  const page = await open();
  // The page draws graphs of any length, but reports of 100,000 nodes take their time: Node folds the longest chains.
  for (const [name, size] of [["chain", 20_000], ["constants", 20_000], ["sum"], ["label"], ["quotients"], ["subgraphs"], ["too many subgraphs"]]) {
    const bytes = DEEP[name](size);
    const path = join(folder, "deep.onnx");
    await writeFile(path, bytes);
    const { bytes: expected, message } = await native(path);
    await drop(page, [{ name: "deep.onnx", bytes }]);
    if (message) {
      await page.getByRole("heading", { name: "deep.onnx was not folded" }).waitFor();
      assert((await page.locator(".program-message").innerText()).includes(message.split(": ").slice(1).join(": ")));
    } else {
      await done(page);
      assert(expected.equals((await download(page)).bytes), name);
    }
    await page.getByRole("button", { name: "Close deep.onnx" }).click();
  }
});

test("takes external data from a dropped file, and says which is missing", async () => {
  const { model, data } = external();
  const page = await open();
  const nodes = (count) => page.locator(".tile", { hasText: "Nodes" }).locator("strong").getByText(String(count), { exact: true });
  await drop(page, [{ name: "ext.onnx", bytes: model }]);
  await page.getByText(/Data files are missing: weights.bin/).waitFor();
  await nodes(2).waitFor();
  await drop(page, [{ name: "weights.bin", bytes: data }]);
  await nodes(1).waitFor();
  assert.equal(await page.getByText(/Data files are missing/).count(), 0);
});

test("cancels a fold, and folds again", async () => {
  const page = await open();
  await drop(page, [{ name: "long.onnx", bytes: chain(20_000) }]);
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByText("Cancelled before the end").waitFor();
  await drop(page, [{ name: "focus.onnx", bytes: await readFile(join(ROOT, "models/focus_ts13d.onnx")) }]);
  await done(page);
});

test("draws thousands of nodes without freezing", async () => {
  const page = await open();
  await page.evaluate(() => {
    window.longest = 0;
    new PerformanceObserver((list) => list.getEntries().forEach(({ duration }) => (window.longest = Math.max(window.longest, duration)))).observe({ type: "longtask" });
  });
  await drop(page, [{ name: "long.onnx", bytes: chain(5_000) }]);
  await done(page);
  await page.locator("canvas").nth(1).waitFor();
  await page.getByLabel("Scopes").selectOption({ label: "expand all" });
  await page.waitForFunction(() => !document.querySelector(".side [aria-busy=true]"));
  await page.locator("canvas").nth(1).focus();
  for (const key of ["Home", "ArrowDown", "ArrowDown", "-", "-", "0", "+"]) await page.keyboard.press(key);
  await page.getByRole("heading", { name: /node_1$/ }).waitFor();
  const longest = await page.evaluate(() => window.longest);
  assert(longest < 1500, `a task of ${longest} ms`);
});

test("moves along edges by keys, and explains the node", async () => {
  const page = await open("?model=focus_ts13d&skip=movement-into-weights");
  await done(page);
  const canvas = page.locator("canvas").nth(1);
  await canvas.focus();
  for (const key of ["ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
  const panel = page.getByRole("region", { name: "Selected node" });
  await panel.getByRole("heading", { name: /^Slice/ }).waitFor();
  assert.match(await panel.innerText(), /floor\(\(?[hw]/);
  assert.match(await panel.innerText(), /movement/);
  assert.equal(await panel.locator("svg.movement").count(), 1);
  assert.match(await panel.innerText(), /out\[i, j, k, l\] = data\[i, j, 2·k/);
  await page.keyboard.press("ArrowDown");
  await panel.getByRole("heading", { name: /^Concat/ }).waitFor();
  await page.keyboard.press("ArrowUp");
  await panel.getByRole("heading", { name: /^Slice/ }).waitFor();
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Selected node");
});

test("draws the index map of each node that moves elements", async () => {
  const page = await open("?model=slice_zoo_ts13d");
  await done(page);
  await page.getByRole("tab", { name: /Data movement/ }).click();
  const pictures = page.getByRole("img", { name: /^index map of / });
  assert((await pictures.count()) > 10);
  for (const width of [1440, 360]) {
    await page.setViewportSize({ width, height: 900 });
    // Every bar lies within its picture, and both within the page.
    const wrong = await pictures.evaluateAll((all) => all.flatMap((picture) => {
      const outer = picture.getBoundingClientRect();
      const inner = [...picture.querySelectorAll("rect, line")].map((part) => part.getBoundingClientRect());
      const right = Math.max(...inner.map((box) => box.right));
      return right > outer.right + 1 || outer.right > document.documentElement.clientWidth ? [picture.getAttribute("aria-label")] : [];
    }));
    assert.deepEqual(wrong, []);
  }
  const description = await pictures.first().locator("desc").textContent();
  assert.match(description, /^out\b/);
});

test("explains why a rule does not apply to the selected node", async () => {
  const page = await open("?model=slice_zoo_ts13d");
  await done(page);
  const canvas = page.locator("canvas").nth(1);
  await canvas.focus();
  const panel = page.getByRole("region", { name: "Selected node" });
  for (let steps = 0; steps < 20 && !(await panel.getByRole("heading", { name: /^(Slice|Concat|Reshape|Gather)/ }).count()); steps++) await page.keyboard.press("ArrowDown");
  await panel.getByText("Why does a rule not apply here?").click();
  const choice = panel.getByRole("combobox", { name: /^Rule/ });
  await choice.locator("option", { hasText: "movement" }).first().waitFor({ state: "attached" });
  await choice.selectOption("movement");
  await panel.getByText(/The premise .* fails|has not the pattern of movement|The rule matches the node/).waitFor({ timeout: 30_000 });
});

test("compares both models by the evaluator and in ONNX Runtime", async () => {
  const page = await open("?model=focus_ts13d");
  await done(page);
  await page.getByRole("tab", { name: "Check" }).click();
  await page.getByRole("button", { name: "Check", exact: true }).click();
  await page.getByText("No difference", { exact: true }).waitFor({ timeout: 60_000 });
  await page.getByRole("button", { name: "Compare" }).click();
  await page.getByText("Equal up to rounding").waitFor({ timeout: 120_000 });
});

test("resolves a slice in seven dialects, and marks the deviations", async () => {
  const page = await open("?slices");
  const card = (name) => page.locator("article").filter({ has: page.getByRole("heading", { name, exact: true }) });
  await card("ONNX Slice-13").getByText("[max(0, n - 1), 5").waitFor();
  assert.equal(await page.locator("article").count(), 7);
  assert.match(await card("TensorFlow StridedSlice").innerText(), /→ \[max\(0, n - 1\), 5\]/);
  assert.match(await card("ONNX Slice-1").innerText(), /refused/);
  await page.getByRole("button", { name: "Backward to INT64_MAX" }).click();
  await card("OpenVINO Slice-8").locator(".shape", { hasText: "→ [0]" }).waitFor();
});

test("lets no request leave, neither from the page nor from a Worker", async () => {
  const stranger = await serve();
  for (const offline of [false, true]) {
    const page = await open("?model=focus_ts13d", { offline });
    await done(page);
    const send = (url) => fetch(url).then(() => "sent", (error) => error.name);
    assert(page.workers().length >= 1);
    for (const place of [page, ...page.workers()]) assert.equal(await place.evaluate(send, stranger.url), "TypeError");
    assert.equal(await page.evaluate(() => fetch("./").then((response) => response.status)), 200);
  }
  assert.deepEqual(stranger.seen, []);
  await stranger.close();
});

test("works without a network", async () => {
  const own = await serve();
  const page = await open("", { at: own.url, offline: true });
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.reload();
  await page.waitForFunction(() => navigator.serviceWorker.controller);
  const policy = await page.evaluate(async () => (await fetch("./")).headers.get("content-security-policy"));
  assert.match(policy, /default-src 'self'/);
  await own.close();
  await page.reload();
  await page.getByRole("button", { name: /BERT/ }).click();
  await done(page);
  assert((await native(join(ROOT, "models/bert_dy18d.onnx"))).bytes.equals((await download(page)).bytes));
});

for (const scheme of SCHEMES) {
  for (const width of WIDTHS) {
    test(`has no violation of accessibility rules at ${width} pixels, ${scheme}`, async () => {
      const page = await open("", { width, scheme });
      const check = async (where) => {
        await page.evaluate(AXE);
        const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
        const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
        assert.deepEqual(told, [], where);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert(overflow <= 0, `${where} is ${overflow} pixels too wide`);
      };
      await check("empty page");
      await page.getByRole("button", { name: /YOLOv5/ }).click();
      await done(page);
      for (const tab of await page.getByRole("tab").all()) {
        await tab.click();
        await page.waitForTimeout(150);
        await check(await tab.innerText());
      }
      await drop(page, [{ name: "noise.onnx", bytes: Buffer.from("8b1f".repeat(400), "hex") }]);
      await page.getByRole("heading", { name: /was not folded/ }).waitFor();
      await check("failure");
      await page.getByRole("link", { name: "Slicing playground" }).click();
      await page.getByRole("heading", { name: "ONNX Slice-13" }).waitFor();
      await check("playground");
    });
  }
}

test("sends every request to its own origin", () => {
  const strangers = requests.filter((url) => !url.startsWith("http://127.0.0.1:") && !/^(blob|data):/.test(url));
  assert(requests.length > 50);
  assert.deepEqual(strangers, []);
});
