// The tables of the report.

import type { Cause, Detail, Options, Report } from "onnx-slice-fold";
import { useEffect, useMemo } from "preact/hooks";
import type { Place, Side } from "./graph/graphs";
import { Rule } from "./graph/panel";
import { Icon } from "./icons";
import { MapFigure } from "./pictures";
import { explain, type Item } from "./store";
import { Suggestions } from "./suggestions";
import { Table } from "./table";
import { count } from "./text";

type Show = (place: Place) => void;

/** Nodes of a graph by the names of their outputs, and by their labels. */
function index(detail: Detail, side: Side): Map<string, number> {
  const found = new Map<string, number>();
  detail[side].nodes.forEach((node, at) => {
    for (const key of [...node.outputs.map((output) => output.name), node.label]) if (key && !found.has(key)) found.set(key, at);
  });
  return found;
}

function NodeLink({ text, node, side, onShow }: { text: string; node: number | undefined; side: Side; onShow: Show }) {
  if (node === undefined) return <span class="name">{text}</span>;
  return <button type="button" class="link" onClick={() => onShow({ side, node })}>{text}</button>;
}

const KINDS: Record<string, string> = {
  values: "Computes with values of the inputs",
  moves: "Moves or selects values of the inputs",
  sizes: "Computes with dims that only a run determines",
  operator: "Unknown operator",
  random: "Random numbers",
  quantized: "Quantized for the runtime",
  declined: "Declined",
  untouched: "Fails, or is disputed",
};

/** Folding that took longer than this is not repeated for suggestions unless the user asks. */
const QUICK = 1;

export function RemainingTab({ item, report, detail, onShow, onApply }: { item: Item; report: Report; detail: Detail; onShow: Show; onApply: (options: Options) => void }) {
  const { explanation } = item;
  const isQuick = report.seconds < QUICK;
  useEffect(() => {
    if (!explanation && isQuick) explain(item.id);
  }, [item.id, report]);
  const nodes = useMemo(() => index(detail, "after"), [detail]);
  const kinds = useMemo(() => {
    const counts = new Map<string, number>();
    for (const { kind } of detail.causes) counts.set(kind, (counts.get(kind) ?? 0) + 1);
    return [...counts];
  }, [detail]);
  return (
    <>
      <section>
        <h3>What would fold more</h3>
        <div aria-live="polite">
          {!explanation && <button type="button" onClick={() => explain(item.id)}><Icon name="bulb" />Search for suggestions (folds the model again, up to 10 times)</button>}
          {explanation?.state === "working" && <p class="working"><span class="spinner" />Folding again under assumptions about the inputs… <button type="button" onClick={explanation.cancel}><Icon name="stop" />Cancel</button></p>}
          {explanation?.state === "failed" && <p class="error">{explanation.message}</p>}
          {explanation?.state === "done" && (explanation.value.report.suggestions.length
            ? <><p class="hint">Each was tried by folding again. A suggestion excludes inputs; only you know whether such runs exist.</p><Suggestions explanation={explanation.value.report} onApply={onApply} /></>
            : <p class="hint">{count(explanation.value.report.trials, "trial")}: no assumption about the inputs folds more.</p>)}
          {explanation?.state === "done" && explanation.value.report.more_to_try && (
            <p class="more"><button type="button" onClick={() => explain(item.id, 50)}><Icon name="bulb" />Try more assumptions</button></p>
          )}
        </div>
      </section>
      <section>
        <h3>Why nodes are kept</h3>
        <ul class="kinds">{kinds.map(([kind, number]) => <li key={kind}><strong>{number}</strong> {KINDS[kind] ?? kind}</li>)}</ul>
        <Table<Cause>
          caption="Remaining nodes with the reason for each" noun="node" rows={detail.causes} empty="No node remains."
          columns={[
            { title: "Node", text: (row) => row.node, cell: (row) => <NodeLink text={row.node} node={nodes.get(row.result)} side="after" onShow={onShow} /> },
            { title: "Kind", text: (row) => row.kind },
            { title: "Reason", text: (row) => row.reason },
          ]}
        />
      </section>
      {explanation?.state === "done" && explanation.value.report.open_sizes.length > 0 && (
        <section>
          <h3>Dims that do not follow from the input shapes</h3>
          <Table
            caption="Dims that do not follow from the input shapes" noun="dim" rows={explanation.value.report.open_sizes}
            columns={[
              { title: "Dim", text: (row) => row.name ?? "unknown rank" },
              { title: "Tensors", isNumber: true, text: (row) => row.tensors },
              { title: "First", text: (row) => row.tensor },
              { title: "Reason", text: (row) => row.reason },
            ]}
          />
        </section>
      )}
      {report.notes.length > 0 && (
        <section>
          <h3>Notes</h3>
          <Table caption="Notes" noun="note" rows={report.notes} columns={[{ title: "Kind", text: (row) => row.kind }, { title: "Place", text: (row) => row.place }, { title: "Reason", text: (row) => row.reason }]} />
        </section>
      )}
    </>
  );
}

const MOST_PICTURES = 60;

export function MapsTab({ detail, onShow }: { detail: Detail; onShow: Show }) {
  const one = (title: string, side: Side, list: Detail["maps"]["merged"]) => {
    const nodes = index(detail, side);
    return (
      <section>
        <h3>{title} <span class="small">{list.length}</span></h3>
        {!list.length && <p class="hint">No node with a known index map moves elements.</p>}
        <div class="pictures">
          {list.slice(0, MOST_PICTURES).map((map) => (
            <article key={map.result.name}>
              <h4><NodeLink text={map.node} node={nodes.get(map.result.name)} side={side} onShow={onShow} /></h4>
              {map.above.length > 0 && <p class="small">after {map.above.join(", ")}</p>}
              <MapFigure map={map} />
            </article>
          ))}
        </div>
        {list.length > MOST_PICTURES && <p class="hint">And {list.length - MOST_PICTURES} more. The panel of a node shows its picture.</p>}
      </section>
    );
  };
  return (
    <>
      <p class="hint">Bars are axes: operands on the left, the result on the right. Filled parts are the elements that the node reads; in the result they have the color of their operand, and hatched parts are constants. A dashed bar has a dynamic size, and shows the order of its parts only.</p>
      <div class="two">{one("Before", "before", detail.maps.before)}{one("After", "after", detail.maps.after)}</div>
      {detail.maps.merged.length > 0 && one("Merged by the rule movement", "before", detail.maps.merged)}
    </>
  );
}

export function EditsTab({ report, detail, onShow }: { report: Report; detail: Detail; onShow: Show }) {
  const nodes = useMemo(() => index(detail, "before"), [detail]);
  const rules = report.rules.filter((rule) => rule.edits > 0).sort((a, b) => b.edits - a.edits);
  return (
    <>
      <section>
        <h3>Rules</h3>
        {!rules.length && <p class="hint">Nothing to fold: no rule applies.</p>}
        <div class="rules">
          {rules.map((rule) => (
            <details key={rule.name}>
              <summary><code>{rule.name}</code> <span class="small">{count(rule.edits, "edit")}</span></summary>
              <Rule report={report} name={rule.name} />
            </details>
          ))}
        </div>
      </section>
      <section>
        <h3>Edits in order</h3>
        <Table
          caption="Edits in order" noun="edit" rows={report.edits.map((edit, at) => ({ ...edit, at: at + 1 }))}
          columns={[
            { title: "#", isNumber: true, text: (row) => row.at },
            { title: "Rule", text: (row) => row.rule },
            { title: "Place", text: (row) => row.place ?? "", cell: (row) => <NodeLink text={row.place ?? ""} node={nodes.get(row.place ?? "")} side="before" onShow={onShow} /> },
          ]}
        />
      </section>
      <section>
        <h3>Time of each pass</h3>
        <Table
          caption="Time of each pass" noun="pass" rows={report.passes}
          columns={[
            { title: "Pass", text: (row) => row.name },
            { title: "Runs", isNumber: true, text: (row) => row.runs },
            { title: "Edits", isNumber: true, text: (row) => row.edits },
            { title: "Milliseconds", isNumber: true, text: (row) => (row.seconds * 1000).toFixed(1) },
          ]}
        />
      </section>
    </>
  );
}

export function ValuesTab({ report, detail, onShow }: { report: Report; detail: Detail; onShow: Show }) {
  const before = useMemo(() => index(detail, "before"), [detail]);
  const after = useMemo(() => index(detail, "after"), [detail]);
  const inferred = useMemo(() => new Map(detail.before.nodes.flatMap((node) => node.outputs.map(({ name, type }) => [name, type]))), [detail]);
  const type = (text: string | null | undefined, absent: string) => (text === null || text === undefined ? <span class="small">{absent}</span> : text ? <code>{text}</code> : <span class="small">unknown</span>);
  return (
    <Table
      caption="Values with their types" noun="value" rows={report.values}
      columns={[
        { title: "Value", text: (row) => row.name, cell: (row) => <NodeLink text={row.name} node={after.get(row.name) ?? before.get(row.name)} side={after.has(row.name) ? "after" : "before"} onShow={onShow} /> },
        { title: "Declared", text: (row) => row.before ?? "", cell: (row) => type(row.before, "does not exist") },
        { title: "Inferred", text: (row) => inferred.get(row.name) ?? "", cell: (row) => type(inferred.get(row.name), "does not exist") },
        { title: "Result", text: (row) => row.after ?? "", cell: (row) => type(row.after, "removed") },
      ]}
    />
  );
}

export function SummaryTab({ report: { before, after, inputs, outputs } }: { report: Report }) {
  const names = [...new Set([...Object.keys(before.operators), ...Object.keys(after.operators)])];
  const rows = names.map((name) => ({ name, was: before.operators[name] ?? 0, is: after.operators[name] ?? 0 })).sort((a, b) => b.was - a.was || b.is - a.is || (a.name < b.name ? -1 : 1));
  const most = Math.max(1, ...rows.map((row) => Math.max(row.was, row.is)));
  return (
    <>
      <section>
        <h3>Operators</h3>
        <Table
          caption="Nodes of each operator" noun="operator" rows={rows}
          columns={[
            { title: "Operator", text: (row) => row.name },
            { title: "Before", isNumber: true, text: (row) => row.was },
            { title: "After", isNumber: true, text: (row) => row.is },
            {
              title: "Nodes", text: () => "",
              cell: (row) => (
                <svg class="pair" viewBox="0 0 200 18" aria-hidden="true" focusable="false">
                  <rect class="bar-before" width={(row.was / most) * 200} height="8" rx="2" />
                  <rect class="bar-after" y="10" width={(row.is / most) * 200} height="8" rx="2" />
                </svg>
              ),
            },
          ]}
        />
      </section>
      <section>
        <h3>Inputs and outputs</h3>
        <Table
          caption="Inputs and outputs" noun="value" rows={[...inputs.map((port) => ({ ...port, kind: "input" })), ...outputs.map((port) => ({ ...port, kind: "output" }))]}
          columns={[
            { title: "Kind", text: (row) => row.kind },
            { title: "Name", text: (row) => row.name },
            { title: "Before", text: (row) => row.before, cell: (row) => <code>{row.before}</code> },
            { title: "After", text: (row) => row.after, cell: (row) => <code>{row.after}</code> },
          ]}
        />
      </section>
    </>
  );
}
