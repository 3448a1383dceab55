// The frame of the page: header, navigation, and the target of dropped files.

import { useEffect, useState } from "preact/hooks";
import { Folding } from "./folding";
import { Icon } from "./icons";
import { Playground } from "./playground";
import { open, useStore, type Dropped } from "./store";

type Tool = "fold" | "slices";
const THEMES = ["system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState<Theme>(() => (localStorage.getItem("theme") as Theme | null) ?? "system");
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("theme", theme);
    dispatchEvent(new Event("theme"));
  }, [theme]);
  return [theme, () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!)];
}

/** Returns all files that were dropped, those of folders with their path. */
async function dropped(transfer: DataTransfer): Promise<Dropped[]> {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  if (!entries.length) return [...transfer.files].map((file) => ({ file, path: file.name }));
  const files: Dropped[] = [];
  const walk = async (entry: FileSystemEntry, folder: string): Promise<void> => {
    if (entry.isFile) {
      const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
      files.push({ file, path: folder + file.name });
      return;
    }
    const reader = (entry as FileSystemDirectoryEntry).createReader();
    for (;;) {
      const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
      if (!some.length) return;
      for (const each of some) await walk(each, `${folder}${entry.name}/`);
    }
  };
  for (const entry of entries) await walk(entry, "");
  return files;
}

export function App() {
  const state = useStore();
  const [tool, setTool] = useState<Tool>(new URLSearchParams(location.search).has("slices") ? "slices" : "fold");
  const [theme, nextTheme] = useTheme();
  const [isOver, setOver] = useState(false);
  const go = (to: Tool) => {
    setTool(to);
    const url = new URL(location.href);
    if (to === "slices") url.searchParams.set("slices", "");
    else url.searchParams.delete("slices");
    history.replaceState(null, "", url);
  };

  const link = (to: Tool) => (event: Event) => {
    event.preventDefault();
    go(to);
  };

  useEffect(() => {
    const over = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent) => void (event.relatedTarget === null && setOver(false));
    const drop = (event: DragEvent) => {
      event.preventDefault();
      setOver(false);
      go("fold");
      if (event.dataTransfer) void dropped(event.dataTransfer).then(open);
    };
    addEventListener("dragover", over);
    addEventListener("dragleave", leave);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("dragleave", leave);
      removeEventListener("drop", drop);
    };
  }, []);

  return (
    <>
      <a class="skip" href="#main">Skip to content</a>
      <header class="top">
        <span class="brand"><Icon name="fold" />onnx-slice-fold</span>
        <nav aria-label="Tools">
          <a href="?" aria-current={tool === "fold" ? "page" : undefined} onClick={link("fold")}>Fold</a>
          <a href="?slices" aria-current={tool === "slices" ? "page" : undefined} onClick={link("slices")}>Slicing playground</a>
        </nav>
        <button type="button" class="icon" onClick={nextTheme} aria-label={`Theme: ${theme}. Change theme`}><Icon name="theme" /></button>
      </header>
      <main id="main" tabIndex={-1}>
        {tool === "fold" ? <Folding state={state} /> : <Playground />}
      </main>
      <footer class="small">Models stay in this tab: the page sends no request to another origin, and works offline.</footer>
      {isOver && <div class="drop-veil" aria-hidden="true"><span><Icon name="upload" />Drop models and their data files</span></div>}
    </>
  );
}
