// The slicing playground: one slice, resolved by seven dialects.

import type { ResolvedSlice } from "onnx-slice-fold";
import { useEffect, useMemo, useState } from "preact/hooks";
import { call } from "./engine";
import { Icon } from "./icons";
import { AxisBars, type AxisPicture } from "./pictures";
import { DIALECTS, dims, named, fromAxes, fromBits, fromMasks, integers, MASKS, Mistake, request, subscript, toAxes, toBits, toList, toMasks, type AxesForm, type MaskName, type MasksForm } from "./slicing";

const NOTATIONS = { python: "Python subscript", axes: "starts, ends, axes, steps", bits: "TensorFlow masks", lists: "OpenVINO masks" } as const;
type Notation = keyof typeof NOTATIONS;

type Fields = Record<"shape" | "python" | "starts" | "ends" | "axes" | "steps" | "begin" | "end" | "strides" | MaskKey, string>;
type MaskKey = `${MaskName}Mask`;

const START: Fields = {
  shape: "n, 10, 4", python: "x[1:, ::-2, -1]",
  starts: "1, -1", ends: "INT64_MAX, INT64_MIN", axes: "0, 1", steps: "1, -2",
  begin: "1, 0, -1", end: "0, 0, 0", strides: "1, -2, 1",
  beginMask: "", endMask: "", ellipsisMask: "", newAxisMask: "", shrinkAxisMask: "",
};
const BITS = { beginMask: "2", endMask: "3", ellipsisMask: "0", newAxisMask: "0", shrinkAxisMask: "4" };
const LISTS = { beginMask: "0, 1, 0", endMask: "1, 1, 0", ellipsisMask: "", newAxisMask: "", shrinkAxisMask: "0, 0, 1" };

const EXAMPLES: readonly [title: string, notation: Notation, fields: Partial<Fields>][] = [
  ["Reverse an axis", "python", { shape: "n, 8", python: "x[:, ::-1]" }],
  ["Backward to INT64_MAX", "axes", { shape: "10", starts: "-1", ends: "INT64_MAX", axes: "0", steps: "-1" }],
  ["Start before the first element", "axes", { shape: "10", starts: "-20", ends: "-30", axes: "0", steps: "-1" }],
  ["End past a symbolic axis", "axes", { shape: "n, 4", starts: "0", ends: "100", axes: "0", steps: "1" }],
  ["Shrink with stride −1", "bits", { shape: "4, 6", begin: "2, 1", end: "3, 5", strides: "-1, 2", beginMask: "0", endMask: "0", ellipsisMask: "0", newAxisMask: "0", shrinkAxisMask: "1" }],
  ["Ellipsis and new axis", "lists", { shape: "2, 3, 4, 5", begin: "0, 0, 1", end: "0, 0, 3", strides: "1, 1, 1", beginMask: "0, 0, 0", endMask: "0, 0, 0", ellipsisMask: "1, 0, 0", newAxisMask: "0, 1, 0", shrinkAxisMask: "0, 0, 0" }],
];

interface Parsed {
  shape: string[];
  axes: AxesForm | Mistake;
  masks: MasksForm | Mistake;
}

const attempt = <T,>(run: () => T): T | Mistake => {
  try {
    return run();
  } catch (error) {
    if (error instanceof Mistake) return error;
    throw error;
  }
};

/** Both forms of the slice: the typed one as it is, the other one translated. */
function parse(notation: Notation, fields: Fields): Parsed {
  const shape = dims(fields.shape);
  const optional = (name: "axes" | "steps" | "strides") => (fields[name].trim() ? integers(fields[name], name) : null);
  if (notation === "python") {
    const entries = subscript(fields.python);
    return { shape, axes: toAxes(entries, shape.length), masks: toMasks(entries) };
  }
  if (notation === "axes") {
    const axes = { starts: integers(fields.starts, "starts"), ends: integers(fields.ends, "ends"), axes: optional("axes"), steps: optional("steps") };
    return { shape, axes, masks: attempt(() => toMasks(fromAxes(axes, shape.length))) };
  }
  const begin = integers(fields.begin, "begin");
  const mask = (name: MaskName) => {
    const text = fields[`${name}Mask`];
    const numbers = integers(text, `${name} mask`).map(Number);
    return notation === "bits" ? fromBits(numbers[0] ?? 0, begin.length) : begin.map((_, at) => numbers[at] === 1);
  };
  const masks = {
    begin, end: integers(fields.end, "end"), strides: optional("strides"),
    masks: Object.fromEntries(MASKS.map((name) => [name, mask(name)])) as Record<MaskName, boolean[]>,
  };
  return { shape, axes: attempt(() => toAxes(fromMasks(masks), shape.length)), masks };
}

type Answer = { resolved: ResolvedSlice | null; error: string };

export function Playground() {
  const [notation, setNotation] = useState<Notation>("python");
  const [fields, setFields] = useState<Fields>({ ...START, ...BITS });
  const [answers, setAnswers] = useState<Record<string, Answer>>({});
  const [failure, setFailure] = useState("");
  const put = (name: keyof Fields) => (value: string) => setFields({ ...fields, [name]: value });
  const parsed = useMemo(() => attempt(() => parse(notation, fields)), [notation, fields]);

  const change = (next: Notation) => {
    // Translates the slice into the other notation, if possible.
    if (!(parsed instanceof Mistake)) {
      const { axes, masks } = parsed;
      const more: Partial<Fields> = {};
      if (next === "axes" && !(axes instanceof Mistake)) Object.assign(more, { starts: axes.starts.join(", "), ends: axes.ends.join(", "), axes: axes.axes?.join(", ") ?? "", steps: axes.steps?.join(", ") ?? "" });
      if ((next === "bits" || next === "lists") && !(masks instanceof Mistake)) {
        Object.assign(more, { begin: masks.begin.join(", "), end: masks.end.join(", "), strides: masks.strides?.join(", ") ?? "" });
        for (const name of MASKS) more[`${name}Mask`] = next === "bits" ? String(toBits(masks.masks[name])) : toList(masks.masks[name]).join(", ");
      }
      setFields({ ...fields, ...more });
    } else setFields({ ...fields, ...(next === "lists" ? LISTS : BITS) });
    setNotation(next);
  };

  useEffect(() => {
    if (parsed instanceof Mistake) return;
    let isCurrent = true;
    const asked = DIALECTS.flatMap(({ id, operands }) => {
      const { shape, axes, masks } = parsed;
      if ((operands === "axes" ? axes : masks) instanceof Mistake) return [];
      return [{ id, request: request(id, shape, axes as AxesForm, masks as MasksForm) }];
    });
    const timer = setTimeout(() => {
      call("resolveSlices", [asked.map((each) => each.request)]).result.then(
        (all) => {
          if (!isCurrent) return;
          setFailure("");
          setAnswers(Object.fromEntries(all.map((answer, at) => [asked[at]!.id, answer])));
        },
        (error: Error) => isCurrent && setFailure(error.message),
      );
    }, 120);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [parsed]);

  const reference = summary(answers["onnx-13"]);
  return (
    <div class="playground">
      <h1>Slicing playground</h1>
      <p class="lead">One slice, as seven dialects read it. The dims may be symbols.</p>
      <form class="slice-form" onSubmit={(event) => event.preventDefault()}>
        <div class="segments" role="group" aria-label="Notation">
          {(Object.keys(NOTATIONS) as Notation[]).map((each) => (
            <button type="button" key={each} aria-pressed={notation === each} onClick={() => change(each)}>{NOTATIONS[each]}</button>
          ))}
        </div>
        <div class="grid">
          <Input label="Shape of the data" value={fields.shape} onInput={put("shape")} />
          {notation === "python" && <Input label="Subscript" value={fields.python} onInput={put("python")} isWide />}
          {notation === "axes" && (["starts", "ends", "axes", "steps"] as const).map((name) => <Input key={name} label={name} value={fields[name]} onInput={put(name)} isOptional={name === "axes" || name === "steps"} />)}
          {(notation === "bits" || notation === "lists") && (
            <>
              {(["begin", "end", "strides"] as const).map((name) => <Input key={name} label={name} value={fields[name]} onInput={put(name)} isOptional={name === "strides"} />)}
              {MASKS.map((name) => <Input key={name} label={`${name.replace("A", "_a")}_mask`} value={fields[`${name}Mask`]} onInput={put(`${name}Mask`)} isOptional />)}
            </>
          )}
        </div>
        <ul class="examples" aria-label="Examples">
          {EXAMPLES.map(([title, to, values]) => (
            <li key={title}><button type="button" onClick={() => { setNotation(to); setFields({ ...fields, ...values }); }}>{title}</button></li>
          ))}
        </ul>
      </form>
      <div aria-live="polite">
        {parsed instanceof Mistake && <p class="error">{parsed.message}</p>}
        {failure && <p class="error">{failure}</p>}
      </div>
      {!(parsed instanceof Mistake) && (
        <div class="dialects">
          {DIALECTS.map(({ id, name, operands }) => {
            const form = operands === "axes" ? parsed.axes : parsed.masks;
            const answer = form instanceof Mistake ? { resolved: null, error: form.message } : answers[id];
            return <Dialect key={id} name={name} answer={answer} isReference={id === "onnx-13"} reference={reference} shape={parsed.shape} />;
          })}
        </div>
      )}
    </div>
  );
}

function Input({ label, value, onInput, isWide, isOptional }: { label: string; value: string; onInput: (value: string) => void; isWide?: boolean; isOptional?: boolean }) {
  return (
    <label class={isWide ? "wide" : ""}>
      <span>{label}{isOptional && <span class="small"> optional</span>}</span>
      <input type="text" autocomplete="off" spellcheck={false} value={value} onInput={(event) => onInput(event.currentTarget.value)} />
    </label>
  );
}

/** The result as one text, to tell whether two dialects agree. */
function summary(answer: Answer | undefined): string | undefined {
  if (!answer) return undefined;
  if (!answer.resolved) return "refused";
  const axes = answer.resolved.axes.filter((axis) => axis.op !== "new");
  return axes.map(({ op, size, start, len, step }) => {
    if (op === "keep") return `${size} from 0 by 1`;
    if (op === "index") return `1 from ${start} by 1`;
    return len === "0" ? "none" : `${len} from ${start} by ${len === "1" ? 1 : step}`;
  }).join("; ");
}

function Dialect({ name, answer, reference, isReference, shape }: { name: string; answer: Answer | undefined; reference: string | undefined; isReference: boolean; shape: string[] }) {
  const resolved = answer?.resolved;
  const mine = summary(answer);
  const deviates = !isReference && mine !== undefined && reference !== undefined && mine !== reference;
  return (
    <article class={deviates ? "card deviates" : "card"}>
      <header>
        <h2>{name}</h2>
        {deviates && <span class="badge fate-changed"><Icon name="warning" />{mine === "refused" ? "refused" : reference === "refused" ? "accepted" : "takes other elements"}</span>}
      </header>
      {!answer && <p class="hint">…</p>}
      {answer?.error && <p class="error">{answer.error}</p>}
      {resolved && (
        <>
          <p class="shape"><code>[{shape.join(", ")}]</code> <span aria-hidden="true">→</span> <code>[{resolved.shape.join(", ")}]</code></p>
          <AxisBars axes={resolved.axes.map(picture)} />
          {resolved.onnx ? <Equivalent onnx={resolved.onnx} /> : <p class="small">No single ONNX Slice with constant operands is equivalent.</p>}
        </>
      )}
      {resolved?.notes.map((note) => <p key={note} class="note"><Icon name="bulb" />{note}</p>)}
    </article>
  );
}

function picture(axis: ResolvedSlice["axes"][number]): AxisPicture {
  const label = axis.op === "new" ? "new axis" : `axis ${axis.axis ?? ""}`;
  if (axis.op === "new") return { label, text: "of size 1", size: 1, start: 0, len: 1 };
  const [start, len, size] = axis.picture ?? [0, 0, null];
  const drawn = { label, size: size ?? null, start, len, step: axis.step ?? 1 };
  if (axis.op === "keep") return { ...drawn, text: `all ${axis.size}` };
  if (axis.op === "index") return { ...drawn, text: `index ${axis.start} of ${axis.size}, axis removed` };
  const step = axis.step === null || axis.step === undefined ? "" : axis.step === 1 ? "" : `, step ${axis.step}`;
  return { ...drawn, text: axis.start === undefined ? `a part of ${axis.size}` : `${axis.len} of ${axis.size} from ${axis.start}${step}` };
}

function Equivalent({ onnx }: { onnx: NonNullable<ResolvedSlice["onnx"]> }) {
  const list = (numbers: readonly (number | string)[]) => numbers.map(named).join(", ");
  const lines = [
    `Slice(starts=[${list(onnx.starts)}], ends=[${list(onnx.ends)}], axes=[${onnx.axes.join(", ")}], steps=[${onnx.steps.join(", ")}])`,
    ...(onnx.squeeze.length ? [`Squeeze(axes=[${onnx.squeeze.join(", ")}])`] : []),
    ...(onnx.unsqueeze.length ? [`Unsqueeze(axes=[${onnx.unsqueeze.join(", ")}])`] : []),
  ];
  return <pre class="equivalent" tabIndex={0} aria-label="Equivalent ONNX operators"><code>{lines.join("\n")}</code></pre>;
}
