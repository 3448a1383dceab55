// The help of the native program, which `build.sh` writes to the folder `help`: the flags of each command follow from it.

import { readFile } from "node:fs/promises";

/** The flags of the native program that need the system: other models, directories, NumPy archives, configuration files, the terminal. */
export const LACKING = ["out-dir", "jobs", "timings", "check-input", "external-data-root", "config", "no-config", "verbose", "color"];

/** The commands of the native program that this one lacks. */
const LACKING_COMMANDS = ["ops", "rules", "completions", "man", "help"];

const NOTE = `This is the program as a WebAssembly module, for one model at a time. Only the native program has the commands
${LACKING_COMMANDS.join(", ")}, the flags ${LACKING.map((name) => `--${name}`).join(", ")},
--report html, patterns of file names, standard input and output, and the flags of other tools.
`;

/** Splits the help of a command into its paragraphs, and each paragraph into a heading and entries with their continuation lines. */
function paragraphs(text) {
  return text.trimEnd().split("\n\n").map((paragraph) => {
    const [heading, ...lines] = paragraph.split("\n");
    const entries = [];
    for (const line of lines) {
      if (/^ {2,6}\S/.test(line)) entries.push([line]);
      else entries.at(-1)?.push(line);
    }
    return { heading, entries, paragraph };
  });
}

/** Reads a flag in the first line of an entry: `  -o, --output <FILE>  Path of the result`. */
function flagOf([line]) {
  const found = /^ +(?:-(?<short>\w), )?--(?<name>[\w-]+)(?:\.\.\.)?(?: (?<value>\[?<.*?>\]?))?(?: {2}|$)/.exec(line)?.groups;
  if (!found) return null;
  const { short, name, value } = found;
  return { name, short, value: !value ? "none" : value.startsWith("[<") ? "optional" : "required" };
}

/**
 * Reads the help of a command. `has(name)` returns true for a flag that the command has in the module. Returns the flags and the text without the
 * other flags.
 */
export async function readHelp(command, has) {
  const native = await readFile(new URL(`./help/${command}.txt`, import.meta.url), "utf8");
  const flags = [];
  const text = [];
  for (const { heading, entries, paragraph } of paragraphs(native)) {
    if (heading === "Commands:") {
      const kept = entries.filter(([line]) => !LACKING_COMMANDS.includes(line.trim().split(" ")[0]));
      text.push([heading, ...kept.flat()].join("\n"));
    } else if (entries.some(flagOf) && heading.endsWith(":")) {
      const known = entries.map((entry) => ({ entry, flag: flagOf(entry) }));
      const kept = known.filter(({ flag }) => flag && (["help", "version"].includes(flag.name) || has(flag.name)));
      flags.push(...kept.map(({ flag }) => flag));
      if (kept.length > 0) text.push([heading, ...kept.flatMap(({ entry }) => entry)].join("\n"));
    } else if (!heading.startsWith("Flags of other tools")) {
      text.push(paragraph.split("\n").filter((line) => !line.includes("--out-dir DIR")).join("\n"));
    }
  }
  return { flags, text: `${text.join("\n\n")}\n\n${NOTE}`, native };
}
