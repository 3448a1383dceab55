#!/usr/bin/env python3
"""Opens pages of `--report html` in a browser, and uses them by the keyboard alone.

    scripts/check_page.py --binary target/release/onnx-slice-fold [--pictures FOLDER] MODELS...

Takes playwright and a Chromium (`--browser`, else the one that is found on the path). For each model: nothing is loaded from elsewhere and nothing goes
wrong in the script; the first paint comes within a second; every control is reached with Tab and shows that it has the focus; a word in the
search field leaves only nodes with it; Enter on a node draws the graph around it, before and after side by side, and takes the focus there; Enter on a
node of that drawing chooses it. A page of a model of up to 5,000 nodes has at most 2 MB. `--pictures` keeps what the browser shows.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

from playwright.sync_api import sync_playwright

MOST_BYTES = 2_000_000
MOST_MILLISECONDS = 1000
FOCUSED = """() => {
    const held = document.activeElement, style = getComputedStyle(held);
    return [held.tagName.toLowerCase(), held.id, style.outlineStyle !== 'none'];
}"""


def walked(page, most):
    """What Tab reaches: tag, id, and whether it shows that it has the focus."""
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    found = []
    for _ in range(most):
        page.keyboard.press("Tab")
        found.append(page.evaluate(FOCUSED))
    return found


def check(page, address, pictures):
    wrong, asked = [], []
    page.on("pageerror", lambda error: wrong.append(f"the script fails: {error}"))
    page.on("console", lambda message: message.type == "error" and wrong.append(f"the browser says: {message.text}"))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    if paint > MOST_MILLISECONDS:
        wrong.append(f"the first paint took {paint:.0f} ms")
    if asked != [address]:
        wrong.append(f"it loads {asked[1:]}")
    if pictures:
        page.screenshot(path=pictures.with_suffix(".top.png"))
    links = page.locator("a, summary, button, input, select").count()
    reached = walked(page, min(links, 60))
    wrong += [f"{tag} {name} does not show that it has the focus" for tag, name, shows in reached if not shows]
    wrong += [f"Tab does not reach {name}" for name in ("query", "side") if links <= 60 and [name] not in [[held[1]] for held in reached]]
    first = page.locator("#rows button").first
    if first.count():
        word = page.locator("#rows td").first.inner_text()
        page.focus("#query")
        page.keyboard.type(word)
        rows = page.locator("#rows tr").all_inner_texts()
        wrong += [f"the search for {word} leaves {row!r}" for row in rows if word.lower() not in row.lower()]
        page.locator("#rows button").first.focus()
        page.keyboard.press("Enter")
        if page.evaluate("document.activeElement.id") != "graph-title":
            wrong.append("Enter on a node does not lead to its graph")
        left, right = (page.locator(f"#graph-{side}").bounding_box() for side in ("before", "after"))
        if left["x"] + left["width"] > right["x"] or abs(left["y"] - right["y"]) > 1:
            wrong.append("the graphs before and after are not side by side")
        others = page.locator("#graph-after g.node:not(.chosen)")
        if others.count():
            name = others.first.get_attribute("aria-label")
            others.first.focus()
            page.keyboard.press("Enter")
            if page.locator("#graph-after g.chosen").get_attribute("aria-label") != name:
                wrong.append(f"Enter on {name} does not choose it")
        if pictures:
            page.evaluate("document.getElementById('graph').scrollIntoView()")
            page.screenshot(path=pictures.with_suffix(".graph.png"))
            page.evaluate("document.getElementById('slices').scrollIntoView()")
            page.screenshot(path=pictures.with_suffix(".slices.png"))
    return paint, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--browser", default=shutil.which("chromium"))
    parser.add_argument("--pictures", type=pathlib.Path)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    failed, largest, slowest = 0, 0, 0.0
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as player:
        browser = player.chromium.launch(executable_path=options.browser, args=["--no-sandbox"])
        for model in options.models:
            done = subprocess.run([options.binary, "--no-config", model, "-o", "/dev/null", "--report", "html"], capture_output=True, check=True)
            file = pathlib.Path(folder, "page.html")
            file.write_bytes(done.stdout)
            page = browser.new_page(viewport={"width": 1200, "height": 900})
            paint, wrong = check(page, file.as_uri(), options.pictures and options.pictures / model.stem)
            page.close()
            if len(done.stdout) > MOST_BYTES:
                wrong.append(f"the page has {len(done.stdout)} bytes")
            largest, slowest = max(largest, len(done.stdout)), max(slowest, paint)
            failed += bool(wrong)
            for what in wrong:
                print(f"{model.stem}: {what}")
        browser.close()
    print(f"{len(options.models)} pages, {failed} with something wrong; largest {largest} bytes, slowest first paint {slowest:.0f} ms")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
