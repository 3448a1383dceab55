// Takes pictures of each view at three widths, light and dark: `node tests/screenshots.mjs FOLDER`.

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { launch, serve } from "./browser.mjs";

const folder = process.argv[2] ?? "screenshots";
await mkdir(folder, { recursive: true });
const server = await serve();
const browser = await launch();

const fold = (model) => async (page) => {
  await page.goto(`${server.url}?model=${model}`);
  await page.getByRole("region", { name: "Summary", exact: true }).waitFor();
};
const tab = (model, name) => async (page) => {
  await fold(model)(page);
  await page.getByRole("tab", { name }).click();
};
const VIEWS = {
  empty: (page) => page.goto(server.url),
  graph: async (page) => {
    await fold("focus_ts13d")(page);
    await page.locator("canvas").last().focus();
    for (const key of ["ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
  },
  bert: fold("bert_dy18d"),
  remaining: tab("bert_dy18d", /Remaining/),
  movement: tab("slice_zoo_ts13d", /Data movement/),
  edits: tab("bert_dy18d", /Edits/),
  check: async (page) => {
    await tab("focus_ts13d", "Check")(page);
    await page.getByRole("button", { name: "Check", exact: true }).click();
    await page.getByText("No difference", { exact: true }).waitFor();
  },
  failure: async (page) => {
    await page.goto(server.url);
    await page.locator("input[type=file]").setInputFiles({ name: "noise.onnx", mimeType: "", buffer: Buffer.from("8b1f".repeat(400), "hex") });
    await page.getByRole("heading", { name: /was not folded/ }).waitFor();
  },
  playground: async (page) => {
    await page.goto(`${server.url}?slices`);
    await page.getByRole("button", { name: "Start before the first element" }).click();
    await page.locator(".deviates").first().waitFor();
  },
};

for (const colorScheme of ["light", "dark"]) {
  for (const width of [360, 1024, 1920]) {
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, serviceWorkers: "block" });
    for (const [name, open] of Object.entries(VIEWS)) {
      const page = await context.newPage();
      await open(page);
      await page.waitForTimeout(1000); // for layouts and suggestions
      await page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`), fullPage: true });
      await page.close();
    }
    await context.close();
  }
}
await browser.close();
await server.close();
