// The graphs before and after folding, next to each other, and the panel of the selected node.

import type { Detail, Options, Report } from "onnx-slice-fold";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Icon } from "../icons";
import { count } from "../text";
import { Canvas, describe } from "./canvas";
import { FATES, fateOf, type Fate } from "./fate";
import { collapsedAtFirst, draw, pathOf, scopes, type Box } from "./model";
import { Panel, type Explain } from "./panel";
import { usePlaced } from "./place";

export type Side = "before" | "after";

/** A node of one of the two graphs. */
export interface Place {
  side: Side;
  node: number;
}

interface Props {
  report: Report;
  detail: Detail;
  place: Place | undefined;
  onPlace: (place: Place | undefined) => void;
  explain: Explain;
  onApply: (options: Options) => void;
}

export function Graphs({ report, detail, place, onPlace, explain, onApply }: Props) {
  const graphs = [detail.before, detail.after];
  const [hideConstants, setHideConstants] = useState(true);
  const [collapsed, setCollapsed] = useState<ReadonlySet<string>>(() => collapsedAtFirst(graphs, true));
  const [shown, setShown] = useState<Side>("after");
  const [query, setQuery] = useState("");
  /** Boxes that are no nodes: ports and scopes. */
  const [selected, setSelected] = useState<{ side: Side; key: string }>();
  const panel = useRef<HTMLDivElement>(null);
  const all = useMemo(() => scopes(graphs), [detail]);
  const drawn = {
    before: useMemo(() => draw(detail.before, report, collapsed, hideConstants), [detail, collapsed, hideConstants]),
    after: useMemo(() => draw(detail.after, report, collapsed, hideConstants), [detail, collapsed, hideConstants]),
  };

  // Another view may select a node inside a collapsed scope.
  useEffect(() => {
    if (!place) return;
    setSelected(undefined);
    const node = detail[place.side].nodes[place.node];
    if (!node) return;
    if (node.operator === "Constant") setHideConstants(false);
    const open = new Set(collapsed);
    node.scope.forEach((_, depth) => open.delete(pathOf(node.scope, depth + 1)));
    if (open.size !== collapsed.size) setCollapsed(open);
  }, [place]);

  // A link of another view leads to the panel of its node.
  useEffect(() => void (place && panel.current?.focus()), []);

  const keyOn = (side: Side): string | undefined => {
    if (selected) return selected.key;
    if (!place) return undefined;
    const node = place.side === side ? place.node : detail[place.side].nodes[place.node]?.counterpart;
    const box = node === undefined || node === null ? undefined : drawn[side].boxOf.get(node);
    return box === undefined ? undefined : drawn[side].boxes[box]?.key;
  };
  const choose = (side: Side) => (box: Box) => {
    if (box.kind === "node") {
      setSelected(undefined);
      onPlace({ side, node: box.nodes[0]! });
    } else {
      onPlace(undefined);
      setSelected({ side, key: box.key });
    }
  };
  const open = (box: Box) => {
    if (box.kind === "scope") {
      const next = new Set(collapsed);
      next.delete(box.scope);
      setCollapsed(next);
    } else panel.current?.focus();
  };
  const close = (path: string) => {
    if (path) setCollapsed(new Set([...collapsed, path]));
  };
  const scopeOfPlace = () => {
    const node = place && detail[place.side].nodes[place.node];
    const paths = node ? node.scope.map((_, depth) => pathOf(node.scope, depth + 1)).filter((path) => all.has(path) && !collapsed.has(path)) : [];
    return paths.at(-1) ?? "";
  };
  const found = (side: Side): number[] => {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    return detail[side].nodes.flatMap((node, at) => {
      const text = `${node.operator} ${node.name} ${node.outputs.map((output) => `${output.name} ${output.type}`).join(" ")}`.toLowerCase();
      return words.every((word) => text.includes(word)) ? [at] : [];
    });
  };
  const matches = useMemo(() => ({ before: found("before"), after: found("after") }), [query, detail]);
  const keys = (side: Side) =>
    new Set(matches[side].map((node) => drawn[side].boxes[drawn[side].boxOf.get(node) ?? -1]?.key).filter((key) => key !== undefined));
  const next = (event: Event) => {
    event.preventDefault();
    const side = matches.after.length ? "after" : "before";
    const list = matches[side];
    const at = place?.side === side ? list.indexOf(place.node) : -1;
    const node = list[(at + 1) % list.length];
    if (node !== undefined) onPlace({ side, node });
  };

  const levels = Math.max(0, ...all.values());
  const toDepth = (depth: number) => setCollapsed(new Set([...all].filter(([, level]) => level > depth).map(([path]) => path)));
  const spoken = () => {
    if (place) {
      const node = detail[place.side].nodes[place.node];
      return node ? `${node.operator} ${node.name}, ${FATES[fateOf(node, report)].label}` : "";
    }
    const box = selected && drawn[selected.side].boxes.find((box) => box.key === selected.key);
    return box ? describe(box) : "";
  };
  const fates = new Set(graphs.flatMap((graph) => graph.nodes.map((node) => fateOf(node, report))));

  return (
    <div class="graphs">
      <div class="bar">
        <form class="search" role="search" onSubmit={next}>
          <Icon name="search" />
          <input type="search" aria-label="Search nodes" placeholder="Search nodes" value={query} onInput={(event) => setQuery(event.currentTarget.value)} />
          {query && <span class="small" role="status">{matches.before.length} before, {matches.after.length} after</span>}
        </form>
        {levels > 0 && (
          <label class="inline">
            Scopes
            <select value="" onChange={(event) => { toDepth(Number(event.currentTarget.value)); event.currentTarget.value = ""; }}>
              <option value="">set depth</option>
              {Array.from({ length: levels + 1 }, (_, depth) => (
                <option key={depth} value={depth}>{depth === 0 ? "collapse all" : depth === levels ? "expand all" : `${depth} deep`}</option>
              ))}
            </select>
          </label>
        )}
        <label class="inline">
          <input type="checkbox" checked={!hideConstants} onChange={(event) => setHideConstants(!event.currentTarget.checked)} />
          Constants
        </label>
        <div class="segments narrow" role="group" aria-label="Graph shown">
          {(["before", "after"] as const).map((side) => (
            <button type="button" key={side} aria-pressed={shown === side} onClick={() => setShown(side)}>{side === "before" ? "Before" : "After"}</button>
          ))}
        </div>
      </div>
      <ul class="legend" aria-label="Legend">
        {(Object.keys(FATES) as Fate[]).filter((fate) => fates.has(fate)).map((fate) => (
          <li key={fate}><span class={`chip fate-${fate}`}>{FATES[fate].mark || "\u00a0"}</span>{FATES[fate].label}</li>
        ))}
      </ul>
      <div class="graphs-body">
        <div class="sides">
          {(["before", "after"] as const).map((side) => (
            <section key={side} class={shown === side ? "side" : "side not-narrow"} aria-label={`Graph ${side} folding`}>
              <h3>
                {side === "before" ? "Before" : "After"}
                <span class="small">{count(detail[side].nodes.length, "node")}{drawn[side].hidden ? `, ${count(drawn[side].hidden, "constant")} hidden` : ""}</span>
              </h3>
              <Pane
                label={`Graph ${side} folding`}
                drawn={drawn[side]}
                selected={keyOn(side)}
                matches={keys(side)}
                onSelect={choose(side)}
                onOpen={open}
                onClose={() => close(scopeOfPlace())}
              />
            </section>
          ))}
        </div>
        <div ref={panel} class="panel" tabIndex={-1} role="region" aria-label="Selected node">
          <Panel
            report={report}
            detail={detail}
            place={place}
            box={selected && drawn[selected.side].boxes.find((box) => box.key === selected.key)}
            collapsible={place ? scopeOfPlace() : ""}
            onCollapse={close}
            onExpand={open}
            onPlace={onPlace}
            explain={explain}
            onApply={onApply}
          />
        </div>
      </div>
      <p id="graph-keys" class="small hint">
        Arrow keys move along edges, <kbd>Enter</kbd> opens a node or scope, <kbd>Backspace</kbd> collapses the scope, <kbd>+</kbd> <kbd>−</kbd> <kbd>0</kbd> zoom.
      </p>
      <p class="visually-hidden" aria-live="polite">{spoken()}</p>
    </div>
  );
}

type PaneProps = Omit<Parameters<typeof Canvas>[0], "placed">;

function Pane(props: PaneProps) {
  const ready = usePlaced(props.drawn);
  if (!ready) return <div class="canvas" aria-busy="true" />;
  if (!ready.drawn.boxes.length) return <div class="canvas empty">No nodes.</div>;
  return (
    <div aria-busy={ready.drawn !== props.drawn}>
      <Canvas {...props} drawn={ready.drawn} placed={ready.placed} />
    </div>
  );
}
