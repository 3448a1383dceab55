// The result of folding: summary, download, command line, and a tab for each view.

import type { Folded } from "onnx-slice-fold";
import { useState } from "preact/hooks";
import { CheckTab } from "./check";
import { Graphs, type Place } from "./graph/graphs";
import { Icon } from "./icons";
import { commandLine } from "./options";
import { EditsTab, MapsTab, RemainingTab, SummaryTab, ValuesTab } from "./report-tabs";
import { apply, explainNames, explainRule, type Item } from "./store";
import { Tabs } from "./tabs";
import { bytes, count, duration } from "./text";

/** `isStale` means that another fold of the model is running. */
export function Result({ item, folded, isStale }: { item: Item; folded: Folded; isStale: boolean }) {
  const { report } = folded;
  const { detail } = report;
  const [tab, setTab] = useState("graph");
  const [place, setPlace] = useState<Place>();
  const show = (to: Place) => {
    setPlace(to);
    setTab("graph");
  };
  // Another fold of the model numbers its nodes anew.
  const [seen, setSeen] = useState(folded);
  if (seen !== folded) {
    setSeen(folded);
    setPlace(undefined);
  }
  if (!detail) return null;
  const onApply = (options: Parameters<typeof apply>[1]) => apply(item.id, options);
  const tabs = [
    { id: "graph", label: "Graph" },
    { id: "remaining", label: "Remaining nodes", badge: String(report.after.nodes) },
    { id: "maps", label: "Data movement", badge: String(detail.maps.before.length) },
    { id: "edits", label: "Edits", badge: String(report.edits.length) },
    { id: "values", label: "Values" },
    { id: "summary", label: "Operators" },
    { id: "check", label: "Check" },
  ];
  return (
    <>
      <h2 class="visually-hidden">Result</h2>
      <Summary item={item} folded={folded} isStale={isStale} />
      <Missing folded={folded} />
      <Tabs label="Views of the result" tabs={tabs} current={tab} onChange={setTab}>
        {tab === "graph" && <Graphs key={item.id} report={report} detail={detail} place={place} onPlace={setPlace} explain={{ names: (names) => explainNames(item.id, names), rule: (rule, node) => explainRule(item.id, rule, node) }} onApply={onApply} />}
        {tab === "remaining" && <RemainingTab item={item} report={report} detail={detail} onShow={show} onApply={onApply} />}
        {tab === "maps" && <MapsTab detail={detail} onShow={show} />}
        {tab === "edits" && <EditsTab report={report} detail={detail} onShow={show} />}
        {tab === "values" && <ValuesTab report={report} detail={detail} onShow={show} />}
        {tab === "summary" && <SummaryTab report={report} />}
        {tab === "check" && <CheckTab item={item} folded={folded} />}
      </Tabs>
    </>
  );
}

function Tile({ label, before, after, note }: { label: string; before?: string; after: string; note?: string }) {
  return (
    <div class="tile">
      <dt>{label}</dt>
      <dd>{before !== undefined && <><span class="was">{before}</span> <span aria-hidden="true">→</span> </>}<strong>{after}</strong>{note && <span class="small">{note}</span>}</dd>
    </div>
  );
}

const less = (before: number, after: number) => (before && after !== before ? `${after < before ? "−" : "+"}${Math.round((Math.abs(before - after) / before) * 100)} %` : "");

export const blobOf = (model: Folded["model"]) => (model instanceof Blob ? model : new Blob(model ? [model as Uint8Array<ArrayBuffer>] : []));

function save(data: Blob, name: string): void {
  const url = URL.createObjectURL(data);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

function Summary({ item, folded, isStale }: { item: Item; folded: Folded; isStale: boolean }) {
  const { report } = folded;
  const { before, after } = report;
  const model = blobOf(folded.model);
  const name = item.name.replace(/(\.[^.]*)?$/, ".folded$1");
  const download = () => {
    save(model, name);
    for (const { location, data } of folded.data ?? []) save(blobOf(data), location.split("/").at(-1)!);
  };
  return (
    <section class="summary" aria-label="Summary" aria-busy={isStale}>
      <dl class="tiles">
        <Tile label="Nodes" before={before.nodes.toLocaleString("en")} after={after.nodes.toLocaleString("en")} note={less(before.nodes, after.nodes)} />
        <Tile label="Shapes known" before={`${before.shapes_known}/${before.tensors}`} after={`${after.shapes_known}/${after.tensors}`} />
        <Tile label="Initializers" before={before.initializers.toLocaleString("en")} after={after.initializers.toLocaleString("en")} />
        <Tile label="Edits" after={report.edits.length.toLocaleString("en")} note={duration(report.seconds)} />
        <Tile label="Model file" before={bytes(before.bytes)} after={bytes(after.bytes ?? model.size)} note={less(before.bytes ?? 0, after.bytes ?? model.size)} />
      </dl>
      <div class="actions">
        <button type="button" class="primary" disabled={isStale} onClick={download}><Icon name="download" />Download <span class="name">{name}</span></button>
        <Command text={commandLine(item.name, item.settings)} />
      </div>
      {report.shapes_left_out && (
        <p class="hint">{count(report.shapes_left_out.shapes, "known shape")} not written: {report.shapes_left_out.reason}. <code>--shapes all</code> writes every shape.</p>
      )}
    </section>
  );
}

function Command({ text }: { text: string }) {
  const [copied, setCopied] = useState("");
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setCopied("Copied"),
      () => setCopied("Not copied: the browser denies access to the clipboard"),
    );
  return (
    <div class="command">
      <pre tabIndex={0} aria-label="Command line that does the same"><code>{text}</code></pre>
      <button type="button" onClick={() => void copy()} onBlur={() => setCopied("")}><Icon name={copied === "Copied" ? "check" : "copy"} />Copy</button>
      <span class="small" role="status">{copied}</span>
    </div>
  );
}

function Missing({ folded: { report } }: { folded: Folded }) {
  if (!report.missing_data?.length) return null;
  return (
    <div class="message" role="status">
      <Icon name="warning" />
      <p>
        Data files are missing: {report.missing_data.map(({ location, tensors }) => `${location} (${count(tensors, "tensor")})`).join(", ")}.
        Nodes that read them are kept. Drop the files here to fold again with them.
      </p>
    </div>
  );
}
