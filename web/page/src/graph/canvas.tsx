// A graph on a canvas: pan, zoom, selection, and the keys that move along edges. Draws visible boxes and edges only.

import { useEffect, useRef } from "preact/hooks";
import { Icon } from "../icons";
import { cut } from "../text";
import { FATES } from "./fate";
import type { Placed } from "./layout";
import type { Box, Drawn } from "./model";

export const BOX_WIDTH = 152;
export const BOX_HEIGHT = 46;

interface Props {
  label: string;
  drawn: Drawn;
  placed: Placed;
  selected: string | undefined;
  matches: ReadonlySet<string>;
  onSelect: (box: Box) => void;
  onOpen: (box: Box) => void;
  onClose: () => void;
}

interface View {
  x: number;
  y: number;
  scale: number;
}

/** Colours of the style sheet, as the theme has them now. */
function palette(): (name: string) => string {
  const probe = document.createElement("i");
  document.body.append(probe);
  const known = new Map<string, string>();
  queueMicrotask(() => probe.remove());
  return (name) => {
    let colour = known.get(name);
    if (!colour) {
      probe.style.color = `var(--${name})`;
      colour = getComputedStyle(probe).color;
      known.set(name, colour);
    }
    return colour;
  };
}

export function describe(box: Box): string {
  const kind = { node: "", scope: "scope ", input: "input ", output: "output " }[box.kind];
  return `${kind}${box.title}${box.subtitle ? `, ${box.subtitle}` : ""}${box.kind === "node" ? `, ${FATES[box.fate].label}` : ""}`;
}

export function Canvas({ label, drawn, placed, selected, matches, onSelect, onOpen, onClose }: Props) {
  const ref = useRef<HTMLCanvasElement>(null);
  const view = useRef<View>({ x: 0, y: 0, scale: 1 });
  const state = useRef({ drawn, placed, selected, matches });
  state.current = { drawn, placed, selected, matches };
  const frame = useRef(0);

  const redraw = () => {
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(() => ref.current && paint(ref.current, view.current, state.current));
  };
  /** Shows the whole graph, or the part at its inputs if all of it would be too small to read. */
  const fit = (isWhole: boolean) => {
    const canvas = ref.current;
    if (!canvas || !placed.width) return;
    const { clientWidth: width, clientHeight: height } = canvas;
    const scale = Math.min(1, Math.max(0.02, Math.min((width - 32) / placed.width, (height - 32) / placed.height)));
    const readable = isWhole || scale >= 0.4 ? scale : 0.55;
    const top = placed.height * readable > height - 32 ? 16 : (height - placed.height * readable) / 2;
    const inputs = drawn.boxes.flatMap((box, at) => (box.kind === "input" ? [placed.x[at]!] : []));
    const focus = inputs.length ? inputs.reduce((sum, x) => sum + x, 0) / inputs.length : placed.width / 2;
    const free = width - placed.width * readable;
    const left = free > 0 ? free / 2 : Math.min(16, Math.max(free - 16, width / 2 - focus * readable));
    view.current = { scale: readable, x: left, y: top };
    redraw();
  };
  const zoom = (factor: number, at?: [number, number]) => {
    const canvas = ref.current!;
    const [x, y] = at ?? [canvas.clientWidth / 2, canvas.clientHeight / 2];
    const { x: left, y: top, scale } = view.current;
    const next = Math.min(2.5, Math.max(0.02, scale * factor));
    view.current = { scale: next, x: x - ((x - left) * next) / scale, y: y - ((y - top) * next) / scale };
    redraw();
  };

  useEffect(() => fit(false), [placed]);
  useEffect(() => {
    const canvas = ref.current!;
    const observer = new ResizeObserver(redraw);
    observer.observe(canvas);
    const theme = matchMedia("(prefers-color-scheme: dark)");
    theme.addEventListener("change", redraw);
    addEventListener("theme", redraw);
    const wheel = (event: WheelEvent) => {
      // The wheel scrolls the page unless the graph has the focus.
      if (document.activeElement !== canvas && !event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(Math.exp(-event.deltaY / (event.ctrlKey ? 120 : 400)), [event.offsetX, event.offsetY]);
    };
    canvas.addEventListener("wheel", wheel, { passive: false });
    return () => {
      observer.disconnect();
      theme.removeEventListener("change", redraw);
      removeEventListener("theme", redraw);
      canvas.removeEventListener("wheel", wheel);
    };
  }, []);
  useEffect(redraw, [matches, drawn]);
  useEffect(() => {
    const at = drawn.boxes.findIndex((box) => box.key === selected);
    const canvas = ref.current!;
    if (at >= 0) {
      const { x, y, scale } = view.current;
      const [left, top] = [placed.x[at]! * scale + x, placed.y[at]! * scale + y];
      const margin = 60;
      const isVisible = left > margin && left < canvas.clientWidth - margin && top > margin && top < canvas.clientHeight - margin;
      if (!isVisible || scale < 0.35) {
        const next = Math.max(scale, 0.7);
        view.current = { scale: next, x: canvas.clientWidth / 2 - placed.x[at]! * next, y: canvas.clientHeight * 0.4 - placed.y[at]! * next };
      }
    }
    redraw();
  }, [selected, placed]);

  // Pointers: one drags, two zoom, and a press without movement selects.
  const pointers = useRef(new Map<number, [number, number]>());
  const moved = useRef(0);
  const down = (event: PointerEvent) => {
    ref.current!.setPointerCapture(event.pointerId);
    pointers.current.set(event.pointerId, [event.offsetX, event.offsetY]);
    if (pointers.current.size === 1) moved.current = 0;
  };
  const move = (event: PointerEvent) => {
    const before = pointers.current.get(event.pointerId);
    if (!before) return;
    const [dx, dy] = [event.offsetX - before[0], event.offsetY - before[1]];
    moved.current += Math.abs(dx) + Math.abs(dy);
    const other = [...pointers.current].find(([id]) => id !== event.pointerId)?.[1];
    pointers.current.set(event.pointerId, [event.offsetX, event.offsetY]);
    if (other) {
      const distance = (at: [number, number]) => Math.hypot(at[0] - other[0], at[1] - other[1]) || 1;
      zoom(distance([event.offsetX, event.offsetY]) / distance(before), other);
    } else {
      view.current = { ...view.current, x: view.current.x + dx, y: view.current.y + dy };
      redraw();
    }
  };
  const up = (event: PointerEvent) => {
    if (!pointers.current.delete(event.pointerId) || moved.current > 5) return;
    const box = hit(view.current, state.current, event.offsetX, event.offsetY);
    if (box) onSelect(box);
  };

  const key = (event: KeyboardEvent) => {
    const at = drawn.boxes.findIndex((box) => box.key === selected);
    const box = drawn.boxes[at];
    const go = (to: number | undefined) => to !== undefined && drawn.boxes[to] && onSelect(drawn.boxes[to]);
    const keys: Record<string, () => void> = {
      ArrowDown: () => go(at < 0 ? 0 : along(state.current, at, 1)),
      ArrowUp: () => go(at < 0 ? 0 : along(state.current, at, -1)),
      ArrowLeft: () => go(at < 0 ? 0 : beside(state.current, at, -1)),
      ArrowRight: () => go(at < 0 ? 0 : beside(state.current, at, 1)),
      Home: () => go(0),
      End: () => go(drawn.boxes.length - 1),
      Enter: () => box && onOpen(box),
      " ": () => box && onOpen(box),
      Backspace: onClose,
      "+": () => zoom(1.25),
      "=": () => zoom(1.25),
      "-": () => zoom(0.8),
      0: () => fit(true),
    };
    const action = keys[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  };
  const open = (event: MouseEvent) => {
    const box = hit(view.current, state.current, event.offsetX, event.offsetY);
    if (box?.kind === "scope") onOpen(box);
  };

  return (
    <div class="canvas">
      <canvas
        ref={ref}
        tabIndex={0}
        role="application"
        aria-label={label}
        aria-describedby="graph-keys"
        onPointerDown={down}
        onPointerMove={move}
        onPointerUp={up}
        onPointerCancel={up}
        onKeyDown={key}
        onDblClick={open}
      />
      <div class="canvas-buttons">
        <button type="button" class="icon" aria-label="Zoom in" onClick={() => zoom(1.25)}><Icon name="plus" /></button>
        <button type="button" class="icon" aria-label="Zoom out" onClick={() => zoom(0.8)}><Icon name="minus" /></button>
        <button type="button" class="icon" aria-label="Show the whole graph" onClick={() => fit(true)}><Icon name="fit" /></button>
      </div>
    </div>
  );
}

interface Scene {
  drawn: Drawn;
  placed: Placed;
  selected: string | undefined;
  matches: ReadonlySet<string>;
}

function hit({ x, y, scale }: View, { drawn, placed }: Scene, left: number, top: number): Box | undefined {
  const [atX, atY] = [(left - x) / scale, (top - y) / scale];
  return drawn.boxes.find((_, at) => Math.abs(placed.x[at]! - atX) <= BOX_WIDTH / 2 && Math.abs(placed.y[at]! - atY) <= BOX_HEIGHT / 2);
}

/** The producer (-1) or consumer (1) that is nearest in the drawing. */
function along({ drawn, placed }: Scene, at: number, way: 1 | -1): number | undefined {
  const ends = drawn.edges.filter((edge) => edge[way === 1 ? 0 : 1] === at).map((edge) => edge[way === 1 ? 1 : 0]);
  return nearest(ends, (end) => Math.abs(placed.x[end]! - placed.x[at]!) + Math.abs(placed.y[end]! - placed.y[at]!));
}

/** The next box in the same layer. */
function beside({ drawn, placed }: Scene, at: number, way: 1 | -1): number | undefined {
  const row = [...drawn.boxes.keys()].filter((other) => other !== at && placed.y[other] === placed.y[at] && Math.sign(placed.x[other]! - placed.x[at]!) === way);
  return nearest(row, (other) => Math.abs(placed.x[other]! - placed.x[at]!));
}

function nearest(candidates: number[], distance: (candidate: number) => number): number | undefined {
  return candidates.reduce<number | undefined>((best, next) => (best === undefined || distance(next) < distance(best) ? next : best), undefined);
}

const FONT = "system-ui, sans-serif";

function paint(canvas: HTMLCanvasElement, { x, y, scale }: View, { drawn, placed, selected, matches }: Scene): void {
  const ratio = devicePixelRatio;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d")!;
  const colour = palette();
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * x, ratio * y);
  const [left, top, right, bottom] = [-x / scale, -y / scale, (width - x) / scale, (height - y) / scale];

  const at = drawn.boxes.findIndex((box) => box.key === selected);
  const isNear = drawn.edges.map(([from, to]) => from === at || to === at);
  for (const highlighted of [false, true]) {
    context.strokeStyle = colour(highlighted ? "accent" : "edge");
    context.lineWidth = highlighted ? Math.max(2, 1.5 / scale) : Math.max(1, 0.6 / scale);
    context.beginPath();
    placed.routes.forEach((route, edge) => {
      if (isNear[edge] !== highlighted || !meets(route, left, top, right, bottom)) return;
      context.moveTo(route[0]!, route[1]!);
      for (let point = 2; point < route.length; point += 2) {
        const [fromX, fromY, toX, toY] = [route[point - 2]!, route[point - 1]!, route[point]!, route[point + 1]!];
        const middle = (fromY + toY) / 2;
        context.bezierCurveTo(fromX, middle, toX, middle, toX, toY);
      }
    });
    context.stroke();
  }

  const isReadable = scale > 0.3;
  drawn.boxes.forEach((box, index) => {
    const [boxX, boxY] = [placed.x[index]! - BOX_WIDTH / 2, placed.y[index]! - BOX_HEIGHT / 2];
    if (boxX > right || boxY > bottom || boxX + BOX_WIDTH < left || boxY + BOX_HEIGHT < top) return;
    const isPort = box.kind === "input" || box.kind === "output";
    const name = isPort ? "port" : box.fate;
    context.beginPath();
    context.roundRect(boxX, boxY, BOX_WIDTH, BOX_HEIGHT, isPort ? BOX_HEIGHT / 2 : 6);
    context.fillStyle = colour(`${name}-fill`);
    context.strokeStyle = colour(matches.has(box.key) ? "match" : name);
    context.lineWidth = matches.has(box.key) ? 4 : 1.5;
    context.setLineDash(["dead", "merged", "folded", "rewritten"].includes(box.fate) && !isPort ? [5, 3] : []);
    context.fill();
    context.stroke();
    context.setLineDash([]);
    if (box.kind === "scope") {
      context.beginPath();
      context.roundRect(boxX + 4, boxY + BOX_HEIGHT, BOX_WIDTH - 8, 4, [0, 0, 6, 6]);
      context.fill();
      context.stroke();
    }
    if (box.key === selected) {
      context.beginPath();
      context.roundRect(boxX - 4, boxY - 4, BOX_WIDTH + 8, BOX_HEIGHT + 8, isPort ? BOX_HEIGHT / 2 + 4 : 9);
      context.strokeStyle = colour("accent");
      context.lineWidth = 3;
      context.stroke();
    }
    if (!isReadable) return;
    const mark = isPort ? "" : FATES[box.fate].mark;
    context.fillStyle = colour("text");
    context.font = `600 13px ${FONT}`;
    const [inset, room] = [isPort ? 18 : 10, BOX_WIDTH - (isPort ? 36 : 20)];
    context.fillText(cut(box.title, 20), boxX + inset, boxY + 19, room - (mark ? 14 : 0));
    context.font = `11px ${FONT}`;
    context.fillStyle = colour("muted");
    context.fillText(cut(box.subtitle, isPort ? 20 : 24), boxX + inset, boxY + 36, room);
    if (mark) {
      context.fillStyle = colour(name);
      context.font = `700 16px ${FONT}`;
      context.textAlign = "right";
      context.fillText(mark, boxX + BOX_WIDTH - 9, boxY + 20);
      context.textAlign = "left";
    }
  });
}

/** Returns `true` if the bounding box of a route meets the rectangle. */
function meets(route: number[], left: number, top: number, right: number, bottom: number): boolean {
  if (route.at(-1)! < top || route[1]! > bottom) return route[1]! >= top && route.at(-1)! <= bottom;
  let [least, most] = [Infinity, -Infinity];
  for (let at = 0; at < route.length; at += 2) {
    least = Math.min(least, route[at]!);
    most = Math.max(most, route[at]!);
  }
  return least <= right && most >= left;
}
