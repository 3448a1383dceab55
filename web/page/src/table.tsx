// A table with a search field and pages.

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Icon } from "./icons";
import { count } from "./text";

const PAGE = 50;

export interface Column<T> {
  title: string;
  isNumber?: boolean;
  /** The text for the search; the content of the cell, unless `cell` returns it. */
  text: (row: T) => string | number;
  cell?: (row: T) => ComponentChildren;
}

export function Table<T>({ caption, rows, columns, noun, empty }: { caption: string; rows: readonly T[]; columns: readonly Column<T>[]; noun: string; empty?: string }) {
  const [query, setQuery] = useState("");
  const [page, setPage] = useState(0);
  const found = useMemo(() => {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return rows;
    return rows.filter((row) => {
      const text = columns.map((column) => column.text(row)).join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    });
  }, [rows, query]);
  const pages = Math.max(1, Math.ceil(found.length / PAGE));
  const at = Math.min(page, pages - 1);
  if (!rows.length) return <p class="hint">{empty ?? `No ${noun}s.`}</p>;
  return (
    <>
      {rows.length > 8 && (
        <div class="bar">
          <div class="search">
            <Icon name="search" />
            <input type="search" aria-label={`Search ${noun}s`} placeholder={`Search ${noun}s`} value={query} onInput={(event) => { setQuery(event.currentTarget.value); setPage(0); }} />
          </div>
          <span class="small" role="status">{found.length === rows.length ? count(rows.length, noun) : `${found.length} of ${count(rows.length, noun)}`}</span>
          {pages > 1 && (
            <span class="pages">
              <button type="button" disabled={at === 0} onClick={() => setPage(at - 1)}>Previous</button>
              <span class="small">page {at + 1} of {pages}</span>
              <button type="button" disabled={at === pages - 1} onClick={() => setPage(at + 1)}>Next</button>
            </span>
          )}
        </div>
      )}
      <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
        <table>
          <caption class="visually-hidden">{caption}</caption>
          <thead><tr>{columns.map((column) => <th key={column.title} scope="col" class={column.isNumber ? "number" : ""}>{column.title}</th>)}</tr></thead>
          <tbody>
            {found.slice(at * PAGE, at * PAGE + PAGE).map((row, index) => (
              <tr key={index}>
                {columns.map((column) => <td key={column.title} class={column.isNumber ? "number" : ""}>{column.cell ? column.cell(row) : column.text(row)}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
