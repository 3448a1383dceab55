// Pictures of the elements that a slice selects from axes, and of index maps. Each has a text with the same content.

import "../../../src/report/picture.css";
import type { MovementMap } from "onnx-slice-fold";

const WIDTH = 400;
/** More elements than this are drawn as one block. */
const MOST = 80;
/** More elements than this have no lines between them. */
const MOST_LINES = 32;

export interface AxisPicture {
  label: string;
  text: string;
  size: number | null;
  start?: number;
  len?: number;
  step?: number;
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

function Bar({ axis: { size, start = 0, len, step = 1 } }: { axis: AxisPicture }) {
  if (size === null || size < 0) return <rect class="axis unknown" width={WIDTH} height="16" />;
  const total = Math.max(1, size);
  const unit = WIDTH / total;
  const elements = len === undefined || Math.abs(step) === 1 || len > MOST ? undefined : Array.from({ length: len }, (_, at) => start + at * step);
  const first = len === undefined ? 0 : step < 0 ? start + (len - 1) * step : start;
  const span = len === undefined ? 0 : len === 0 ? 0 : (len - 1) * Math.abs(step) + 1;
  return (
    <>
      {elements
        ? elements.map((element, at) => <rect key={at} class="taken" x={element * unit} width={Math.max(0.8, unit * 0.88)} height="16" />)
        : <rect class="taken" x={first * unit} width={span * unit} height="16" />}
      {total <= MOST_LINES && <path class="ticks" d={Array.from({ length: total - 1 }, (_, at) => `M${(at + 1) * unit} 0v16`).join("")} />}
      <rect class="axis" width={Math.max(1, size * unit)} height="16" />
      {step < 0 && span > 0 && <path class="backward" d={`M${(first + span) * unit - 3} 8H${first * unit + 3}m4 -4l-4 4l4 4`} />}
    </>
  );
}

/** An index map: its lines, the names behind their symbols, and its picture. */
export function MapFigure({ map }: { map: MovementMap }) {
  return (
    <figure class="map">
      <figcaption>
        <ul>{map.lines.map((line, at) => <li key={at}><code>{line}</code></li>)}</ul>
        <p class="small">
          {[map.result, ...map.sources].map(({ symbol, name, shape }, at) => <span key={symbol}>{at > 0 && "; "}{symbol} = {name} [{shape.join(", ")}]</span>)}
        </p>
      </figcaption>
      <div dangerouslySetInnerHTML={{ __html: map.svg }} />
    </figure>
  );
}
