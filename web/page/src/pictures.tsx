// Pictures of the elements that a node selects from the axes of its data. Each has a text with the same content.

import type { Taken } from "onnx-slice-fold";
import { cut } from "./text";

const WIDTH = 400;
/** More elements than this are drawn as one block. */
const MOST = 80;
/** More elements than this have no lines between them. */
const MOST_LINES = 32;

export interface AxisPicture {
  label: string;
  text: string;
  size: number | null;
  /** Elements taken, in order. */
  picks?: readonly number[];
  start?: number;
  len?: number;
  step?: number;
  /** Elements added in front and behind. */
  pads?: readonly [number, number];
}

/** One bar per axis: the whole axis as an outline, the part that is taken filled. The text above each bar has the same content. */
export function AxisBars({ axes }: { axes: readonly AxisPicture[] }) {
  return (
    <ul class="bars">
      {axes.map((axis, at) => (
        <li key={at}>
          <span><strong>{axis.label}</strong> {axis.text}</span>
          <svg viewBox={`0 0 ${WIDTH} 16`} preserveAspectRatio="none" aria-hidden="true" focusable="false"><Bar axis={axis} /></svg>
        </li>
      ))}
    </ul>
  );
}

function Bar({ axis: { size, picks, start = 0, len, step = 1, pads } }: { axis: AxisPicture }) {
  if (size === null || size < 0) return <rect class="axis unknown" width={WIDTH} height="16" />;
  const [front, back] = pads ?? [0, 0];
  const total = Math.max(1, size + Math.max(0, front) + Math.max(0, back));
  const unit = WIDTH / total;
  const zero = Math.max(0, front) * unit;
  const elements = picks ?? (len === undefined ? undefined : Math.abs(step) === 1 || len > MOST ? undefined : Array.from({ length: len }, (_, at) => start + at * step));
  const first = len === undefined ? 0 : step < 0 ? start + (len - 1) * step : start;
  const span = len === undefined ? 0 : len === 0 ? 0 : (len - 1) * Math.abs(step) + 1;
  return (
    <>
      {front > 0 && <rect class="pad" width={front * unit} height="16" />}
      {back > 0 && <rect class="pad" x={zero + size * unit} width={back * unit} height="16" />}
      {elements
        ? elements.slice(0, 400).map((element, at) => <rect key={at} class="taken" x={zero + element * unit} width={Math.max(0.8, unit * 0.88)} height="16" />)
        : <rect class="taken" x={zero + first * unit} width={span * unit} height="16" />}
      {total <= MOST_LINES && <path class="ticks" d={Array.from({ length: total - 1 }, (_, at) => `M${(at + 1) * unit} 0v16`).join("")} />}
      <rect class="axis" x={zero} width={Math.max(1, size * unit)} height="16" />
      {step < 0 && span > 0 && <path class="backward" d={`M${zero + (first + span) * unit - 3} 8H${zero + first * unit + 3}m4 -4l-4 4l4 4`} />}
    </>
  );
}

/** Lines from the axes of the data to the axes of the result. */
function Permutation({ perm, sizes }: { perm: readonly number[]; sizes: readonly string[] }) {
  const unit = Math.min(96, WIDTH / Math.max(1, perm.length));
  const text = `output axes are input axes ${perm.join(", ")}`;
  return (
    <figure class="bars">
      <svg viewBox={`0 0 ${Math.max(1, perm.length) * unit} 112`} width={Math.max(1, perm.length) * unit} height="112" aria-hidden="true" focusable="false">
          {perm.map((from, to) => (
            <g key={to}>
              <path class={from === to ? "same" : "moved"} d={`M${(from + 0.5) * unit} 34C${(from + 0.5) * unit} 58 ${(to + 0.5) * unit} 54 ${(to + 0.5) * unit} 78`} />
              <rect class="axis" x={from * unit + 4} y="10" width={unit - 8} height="24" rx="4" />
              <text class="middle" x={(from + 0.5) * unit} y="26">{cut(sizes[from] ?? "?", Math.floor(unit / 8))}</text>
              <rect class="axis result" x={to * unit + 4} y="78" width={unit - 8} height="24" rx="4" />
              <text class="middle" x={(to + 0.5) * unit} y="94">{cut(sizes[from] ?? "?", Math.floor(unit / 8))}</text>
            </g>
          ))}
      </svg>
      <figcaption class="small">perm = [{perm.join(", ")}]: {text}</figcaption>
    </figure>
  );
}

type Axis = Taken["axes"][number];

/** Reads a number out of a text; `null` for an expression. */
const number = (text: string | undefined) => (text !== undefined && /^-?\d+$/.test(text) ? Number(text) : null);

function asPicture(axis: Axis, label: string, operator: string): AxisPicture {
  const size = number(axis.size) ?? axis.picture?.[2] ?? (axis.is_known || axis.pads || axis.picks ? 64 : null);
  if (axis.op === "new") return { label, text: "of size 1", size: 1, start: 0, len: 1 };
  if (axis.pads) {
    const [front, back] = axis.pads;
    if (front === "0" && back === "0") return { label, text: `all ${axis.size}`, size, start: 0, len: size ?? 0 };
    const shown = (text: string) => number(text) ?? 8;
    const text = `${axis.size}, ${front} added in front, ${back} behind`;
    return { label, text, size, start: Math.max(0, -shown(front)), len: Math.max(0, (size ?? 0) + Math.min(0, shown(front)) + Math.min(0, shown(back))), pads: [shown(front), shown(back)] };
  }
  if (axis.picks) {
    const wrapped = axis.picks.map((pick) => (pick < 0 && size !== null ? pick + size : pick));
    const text = `${axis.picks.length === 1 ? "element" : "elements"} ${cut(axis.picks.join(", "), 40)} of ${axis.size}`;
    return { label, text, size, picks: wrapped };
  }
  if (axis.taken) {
    const [start, len] = axis.taken;
    const step = axis.step === null || axis.step === 1 ? "" : `, step ${axis.step}`;
    const isAll = axis.op === "range" && start === "0" && len === axis.size && !step;
    const text = isAll ? `all ${axis.size}` : axis.op === "index" ? `index ${start} of ${axis.size}` : `${len} of ${axis.size} from ${start}${step}`;
    const [from, length] = axis.picture ?? [0, 0];
    return { label, text, size: axis.picture ? axis.picture[2] : null, start: from, len: length, step: axis.step ?? 1 };
  }
  if (axis.is_known) return { label, text: `all ${axis.size}`, size, start: 0, len: size ?? 0 };
  const why = operator === "Gather" || operator === "GatherElements" ? "elements by run-time indices" : "a part that only a run determines";
  return { label, text: `${why}, of ${axis.size}`, size: null };
}

export function TakenFigure({ taken }: { taken: Taken }) {
  if (taken.perm) return <Permutation perm={taken.perm} sizes={taken.axes.map((axis) => axis.size)} />;
  const isOpen = taken.axes.some((axis) => axis.picture !== null && number(axis.size) === null);
  let at = 0;
  const axes = taken.axes.map((axis) => asPicture(axis, axis.op === "new" ? "new axis" : `axis ${at++}`, taken.operator));
  return (
    <>
      <AxisBars axes={axes} />
      {taken.indices && !axes.some((axis) => axis.picks) && <p class="small">Indices: <code>{taken.indices}</code></p>}
      {taken.mode && <p class="small">Mode: {taken.mode}</p>}
      {isOpen && <p class="small">Each open dim counts as 64 in the picture.</p>}
    </>
  );
}
