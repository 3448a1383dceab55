#!/usr/bin/env node
// Opens pages of `--report html` in Chromium at three widths, light and dark.
//
//     scripts/check_report.mjs --binary target/debug/onnx-slice-fold [--pictures DIRECTORY] [MODEL...]
//
// Checks each page, with closed and with opened details:
// - axe-core finds no violation (contrast included);
// - nothing is wider than the page, no text leaves its box, no line breaks inside a word, no label is wider than its box in a graph;
// - the page loads nothing, its script reports no error, and it has at most 2 MB;
// and once per page, by keyboard: Tab reaches each control and shows the focus, the search filters, Enter draws the graph around a node and
// moves there, and the copy button copies the flags.
//
// Needs Node 18 and a Chromium (`--browser`, CHROMIUM or the search path). Without one of them it prints that nothing was checked.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, delimiter, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PACKAGES = ["playwright-core@1.65.1", "axe-core@4.14.1"];
const WIDTHS = [360, 768, 1920];
const SCHEMES = ["light", "dark"];
const MOST_BYTES = 2_000_000;

const options = { binary: "target/debug/onnx-slice-fold", browser: process.env.CHROMIUM, pictures: undefined };
const models = [];
for (let words = process.argv.slice(2); words.length; words = words.slice(1)) {
  const name = words[0].replace(/^--/, "");
  if (words[0].startsWith("--") && name in options) options[name] = (words = words.slice(1))[0];
  else models.push(words[0]);
}
if (!models.length) {
  models.push(...["bert_dy18d", "focus_ts13d", "slice_zoo_ts13d", "scripted_loop_slice_ts16d"].map((name) => join(ROOT, "models", name + ".onnx")));
}

function found(names) {
  const folders = (process.env.PATH || "").split(delimiter);
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find((path) => existsSync(path));
}

function untested(reason) {
  console.log(`${reason}: the HTML report was not checked`);
  process.exit(0);
}

/** Installs the driver and axe-core under target/, and returns a function that loads them. */
function tools() {
  const folder = join(ROOT, "target", "check_report");
  mkdirSync(folder, { recursive: true });
  const has = () => PACKAGES.every((name) => {
    const [packageName, version] = name.split("@");
    const file = join(folder, "node_modules", packageName, "package.json");
    return existsSync(file) && JSON.parse(readFileSync(file, "utf8")).version === version;
  });
  if (!has()) {
    writeFileSync(join(folder, "package.json"), "{\"private\": true}\n");
    const done = spawnSync("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", ...PACKAGES], { cwd: folder, encoding: "utf8" });
    if (done.status !== 0) untested(`npm cannot install ${PACKAGES.join(" and ")}: ${(done.stderr || String(done.error)).trim().split("\n")[0]}`);
  }
  return createRequire(join(folder, "package.json"));
}

/** Runs in the page: returns what is wrong with its layout. */
function layout() {
  const wrong = [];
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) wrong.push(`the document is ${document.documentElement.scrollWidth} px wide`);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  const scrolls = (element) => element.closest(".drawing") !== null;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!element || ["SCRIPT", "STYLE", "TITLE", "title", "OPTION", "NOSCRIPT"].includes(element.tagName) || scrolls(element) || element.closest(".skip, thead")) continue;
    let box = element;
    while (getComputedStyle(box).display.startsWith("inline") && box.tagName !== "BUTTON") box = box.parentElement;
    range.selectNodeContents(node);
    const right = Math.max(...[...range.getClientRects()].map((rect) => rect.right), 0);
    const edge = Math.min(box.getBoundingClientRect().right, width);
    if (right > edge + 1) wrong.push(`'${node.data.trim().slice(0, 40)}' ends ${Math.round(right - edge)} px right of its box`);
    for (const word of node.data.matchAll(/(?<![\p{L}\p{N}_.])[\p{L}\p{N}_.]{1,20}(?![\p{L}\p{N}_.])/gu)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].filter((rect) => rect.width > 0).map((rect) => Math.round(rect.top)));
      if (lines.size > 1) wrong.push(`a line breaks inside '${word[0]}'`);
    }
  }
  for (const label of document.querySelectorAll("g.node text")) {
    const [text, box] = [label.getBBox(), label.parentElement.querySelector("rect").getBBox()];
    if (text.x < box.x || text.x + text.width > box.x + box.width) wrong.push(`the label '${label.textContent}' is wider than its box`);
  }
  return [...new Set(wrong)];
}

async function axe(page, source) {
  await page.evaluate(source);
  const { violations } = await page.evaluate("axe.run(document, { resultTypes: ['violations'] })");
  return violations.flatMap(({ id, help, nodes }) => `axe: ${id} (${help}) at ${nodes[0].target.join(" ")}, ${nodes.length} places`);
}

/** Uses the page by keyboard, and returns what does not work. */
async function use(page) {
  const wrong = [];
  const focus = () => page.evaluate(() => {
    const held = document.activeElement;
    return [held.id, held.className, getComputedStyle(held).outlineStyle !== "none"];
  });
  const reached = new Set();
  const controls = await page.locator("a, summary, button:enabled, input, select").count();
  for (let at = 0; at < Math.min(controls + 20, 80); at++) {
    await page.keyboard.press("Tab");
    const [id, , shows] = await focus();
    if (id) reached.add(id);
    if (!shows && at < controls) wrong.push(`'${id}' does not show that it has the focus`);
  }
  if (controls < 60) wrong.push(...["query", "side"].filter((id) => !reached.has(id)).map((id) => `Tab does not reach '${id}'`));
  const copy = page.locator("button.copy").first();
  if (await copy.count()) {
    await copy.focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => [...document.querySelectorAll("button.copy")].some((button) => button.textContent === "Copied"), undefined, { timeout: 3000 })
      .catch(() => wrong.push("the copy button does not copy"));
    const [copied, flags] = [await page.evaluate("navigator.clipboard.readText()"), await copy.getAttribute("data-copy")];
    if (copied !== flags) wrong.push(`the copy button copies '${copied}' and not '${flags}'`);
  }
  if (await page.locator("#rows button").count()) {
    const word = (await page.locator("#rows td").first().innerText()).trim();
    await page.focus("#query");
    await page.keyboard.type(word);
    for (const row of await page.locator("#rows tr").allInnerTexts()) {
      if (!row.toLowerCase().includes(word.toLowerCase())) wrong.push(`the search for '${word}' leaves '${row.slice(0, 60)}'`);
    }
    await page.locator("#rows button").first().focus();
    await page.keyboard.press("Enter");
    if ((await focus())[0] !== "chosen") wrong.push("Enter on a node does not lead to its graph");
    const others = page.locator("#graph-after g.node:not(.chosen)");
    if (await others.count()) {
      const name = await others.first().locator("title").textContent();
      await others.first().focus();
      await page.keyboard.press("Enter");
      if ((await page.locator("#graph-after g.chosen title").textContent()) !== name) wrong.push(`Enter on '${name}' does not choose it`);
    }
  }
  return wrong;
}

const executablePath = options.browser || found(["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]);
if (!executablePath) untested("found no Chromium");
if (!found(["npm"])) untested("found no npm");
const load = tools();
const { chromium } = load("playwright-core");
const source = readFileSync(load.resolve("axe-core/axe.min.js"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "report-"));
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] }).catch((error) => untested(`${executablePath} does not start: ${String(error).split("\n")[0]}`));
let failures = 0, pages = 0;
try {
  for (const model of models) {
    const name = basename(model).replace(/\.onnx$/, "");
    const file = join(folder, name + ".html");
    execFileSync(resolve(options.binary), ["--no-config", "--quiet", model, "/dev/null", "--report", "html", "-o", file]);
    const wrong = [];
    if (readFileSync(file).length > MOST_BYTES) wrong.push(`the page has ${readFileSync(file).length} bytes`);
    const address = pathToFileURL(file).href;
    for (const colorScheme of SCHEMES) for (const width of WIDTHS) {
      const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, permissions: ["clipboard-read", "clipboard-write"] });
      const page = await context.newPage();
      const note = (texts) => wrong.push(...texts.map((text) => `${width} px, ${colorScheme}: ${text}`));
      page.on("pageerror", (error) => note([`the script fails: ${error}`]));
      page.on("console", (message) => message.type() === "error" && note([`the browser reports: ${message.text()}`]));
      page.on("request", (request) => request.url() !== address && note([`the page loads ${request.url()}`]));
      await page.goto(address);
      note(await page.evaluate(layout));
      await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
      note(await page.evaluate(layout));
      note(await axe(page, source));
      if (options.pictures) {
        mkdirSync(options.pictures, { recursive: true });
        await page.reload();
        await page.screenshot({ path: join(options.pictures, `${name}.${width}.${colorScheme}.png`), fullPage: true });
      }
      if (width === WIDTHS[1] && colorScheme === SCHEMES[0]) {
        await page.reload();
        note(await use(page));
      }
      await context.close();
      pages++;
    }
    wrong.forEach((text) => console.log(`${name}: ${text}`));
    failures += wrong.length;
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}
console.log(`${pages} views of ${models.length} reports: ${failures} failures`);
process.exit(failures ? 1 : 0);
