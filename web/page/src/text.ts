// Words and numbers as the page shows them.

export const tail = (path: string) => path.split("/").filter(Boolean).at(-1) ?? path;

export function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

export const count = (number: number, noun: string) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

export function bytes(number: number | null | undefined): string {
  if (number === null || number === undefined) return "–";
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]] as const) {
    if (number >= size) return `${(number / size).toLocaleString("en", { maximumFractionDigits: number >= 100 * size ? 0 : 1 })} ${unit}`;
  }
  return `${number} B`;
}

export function duration(seconds: number): string {
  return seconds < 10 ? `${Math.max(1, Math.round(seconds * 1000)).toLocaleString("en")} ms` : `${seconds.toFixed(1)} s`;
}
