// The selected node: shapes, rules, the reason why it is kept, suggestions, and the index map.

import type { Detail, Explanation, GraphNode, Options, Report, RuleExplanation } from "onnx-slice-fold";
import { useEffect, useState } from "preact/hooks";
import { call } from "../engine";
import { Icon } from "../icons";
import { MapFigure } from "../pictures";
import { Suggestions } from "../suggestions";
import { count } from "../text";
import { FATES, fateOf } from "./fate";
import type { Place, Side } from "./graphs";
import type { Box } from "./model";

/** Asks why nodes are kept, and why a rule does not apply to a node. */
export interface Explain {
  names: (names: string[]) => Promise<Explanation>;
  rule: (rule: string, node: string) => Promise<RuleExplanation["nodes"][number]["failed"]>;
}

interface Props {
  report: Report;
  detail: Detail;
  place: Place | undefined;
  box: Box | undefined;
  collapsible: string;
  onCollapse: (path: string) => void;
  onExpand: (box: Box) => void;
  onPlace: (place: Place) => void;
  explain: Explain;
  onApply: (options: Options) => void;
}

export function Panel(props: Props) {
  const { detail, place, box } = props;
  const node = place && detail[place.side].nodes[place.node];
  if (node) return <NodePanel key={`${place.side}${place.node}`} {...props} place={place} node={node} />;
  if (box?.kind === "scope") {
    return (
      <>
        <h3>Scope {box.title}</h3>
        <p><code>{box.scope}</code>: {box.subtitle}</p>
        <button type="button" onClick={() => props.onExpand(box)}><Icon name="plus" />Expand</button>
      </>
    );
  }
  if (box) return <><h3>{box.kind === "input" ? "Input" : "Output"} {box.title}</h3><p><code>{box.subtitle || "type unknown"}</code></p></>;
  return <p class="hint">Select a node to see its shapes, what became of it, and why.</p>;
}

function NodePanel({ report, detail, place, node, collapsible, onCollapse, onPlace, explain, onApply }: Props & { place: Place; node: GraphNode }) {
  const graph = detail[place.side];
  const other: Side = place.side === "before" ? "after" : "before";
  const counterpart = node.counterpart ?? undefined;
  const twin = counterpart === undefined ? undefined : detail[other].nodes[counterpart];
  const [before, after] = place.side === "before" ? [node, twin] : [twin, node];
  const fate = fateOf(node, report);
  const cause = after && detail.causes.find((cause) => after.outputs.some((output) => output.name === cause.result));
  const maps = detail.maps[place.side].filter((map) => node.outputs.some((output) => output.name === map.result.name));
  const rules = [...new Set(node.edits.map((edit) => report.edits[edit]?.rule))].filter((rule) => rule !== undefined);
  const types = (of: GraphNode | undefined) => new Map(of?.outputs.map((output) => [output.name, output.type]));
  const [typesBefore, typesAfter] = [types(before), types(after)];
  const attributes = Object.entries(node.attributes);

  return (
    <>
      <div class="panel-head">
        <h3>{node.operator} <span class="name">{node.name || node.outputs[0]?.name}</span></h3>
        <span class={`badge fate-${fate}`}>{FATES[fate].mark && <b>{FATES[fate].mark}</b>} {FATES[fate].label}</span>
        {counterpart !== undefined && (
          <button type="button" onClick={() => onPlace({ side: other, node: counterpart })}><Icon name="arrow" />Show {other}</button>
        )}
        {collapsible && <button type="button" onClick={() => onCollapse(collapsible)}><Icon name="minus" />Collapse {collapsible}</button>}
      </div>
      <div class="panel-columns">
        <section>
          <h4>Shapes</h4>
          <dl>
            {node.inputs.map((name, at) => name && <div key={at}><dt>input {at}</dt><dd><Value name={name} graph={graph} side={place.side} onPlace={onPlace} /></dd></div>)}
            {node.outputs.map(({ name, type }, at) => {
              const [was, is] = [typesBefore.get(name), typesAfter.get(name)];
              return (
                <div key={name}>
                  <dt>output {at}</dt>
                  <dd>
                    <span class="name">{name}</span>{" "}
                    {was !== undefined && is !== undefined && was !== is ? <><code>{was || "unknown"}</code> → <code>{is || "unknown"}</code></> : <code>{type || "unknown"}</code>}
                  </dd>
                </div>
              );
            })}
          </dl>
          {attributes.length > 0 && (
            <>
              <h4>Attributes</h4>
              <dl>{attributes.map(([name, value]) => <div key={name}><dt>{name}</dt><dd><code>{value}</code></dd></div>)}</dl>
            </>
          )}
        </section>
        <section>
          {rules.length > 0 && <h4>{fate === "kept" ? "Edits" : "What became of it"}</h4>}
          {rules.map((name) => <Rule key={name} report={report} name={name} />)}
          {cause && (
            <>
              <h4>Why it is kept</h4>
              <p>{sentence(cause.reason)}</p>
              {cause.chain.length > 0 && <ol class="chain">{cause.chain.map((step, at) => <li key={at}>{step}</li>)}</ol>}
              <WhatWouldHelp name={after.name || cause.result} explain={explain} onApply={onApply} />
            </>
          )}
          {!cause && !rules.length && <p class="hint">No edit touched this node.</p>}
          {after && <WhyNot key={after.outputs[0]?.name} name={after.outputs[0]?.name || after.name} explain={explain} />}
        </section>
        {maps.length > 0 && (
          <section>
            <h4>Index map</h4>
            {maps.map((map) => <MapFigure key={map.result.name} map={map} />)}
          </section>
        )}
      </div>
    </>
  );
}

const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");

function Value({ name, graph, side, onPlace }: { name: string; graph: Detail["before"]; side: Side; onPlace: (place: Place) => void }) {
  const producer = graph.nodes.findIndex((node) => node.outputs.some((output) => output.name === name));
  const type = graph.nodes[producer]?.outputs.find((output) => output.name === name)?.type
    ?? [...graph.inputs, ...graph.initializers].find((port) => port.name === name)?.type;
  const isConstant = graph.initializers.some((port) => port.name === name);
  return (
    <>
      {producer >= 0 ? <button type="button" class="link" onClick={() => onPlace({ side, node: producer })}>{name}</button> : <span class="name">{name}</span>}{" "}
      {type && <code>{type}</code>}{isConstant && <span class="small"> initializer</span>}
    </>
  );
}

export function Rule({ report, name }: { report: Report; name: string }) {
  const rule = report.rules.find((rule) => rule.name === name);
  return (
    <div class="rule">
      <p><code>{name}</code> {rule?.sentence}</p>
      {rule?.law && <p class="law"><code>{rule.law}</code></p>}
      {rule?.sentence && <p class="small">{rule.exact ? "Keeps every bit of the results." : "Keeps results up to rounding."}</p>}
    </div>
  );
}

/** The first premise of a chosen rule that fails at the node. */
function WhyNot({ name, explain }: { name: string; explain: Explain }) {
  const [rules, setRules] = useState<{ name: string; sentence: string }[]>([]);
  const [rule, setRule] = useState("");
  const [answer, setAnswer] = useState<{ failed: Awaited<ReturnType<Explain["rule"]>> } | string>();
  const load = (event: Event) => {
    if ((event.currentTarget as HTMLDetailsElement).open && !rules.length) void call("rules", []).result.then(setRules, (error: Error) => setAnswer(error.message));
  };
  const choose = (event: Event) => {
    const chosen = (event.currentTarget as HTMLSelectElement).value;
    setRule(chosen);
    setAnswer(undefined);
    if (!chosen) return;
    const take = (next: typeof answer) => setRule((current) => (current === chosen && setAnswer(next), current));
    explain.rule(chosen, name).then((failed) => take({ failed }), (error: Error) => take(error.message));
  };
  return (
    <details class="why-not" onToggle={load}>
      <summary>Why does a rule not apply here?</summary>
      <label>Rule <select value={rule} onChange={choose}><option value="">Choose a rule</option>{rules.map(({ name }) => <option key={name}>{name}</option>)}</select></label>
      <p class="small">{rules.find((each) => each.name === rule)?.sentence}</p>
      <div aria-live="polite">
        {rule && answer === undefined && <p class="working"><span class="spinner" />Folding again…</p>}
        {typeof answer === "string" && <p class="hint">{sentence(answer)}</p>}
        {typeof answer === "object" && (answer.failed
          ? <p>The premise <code>{answer.failed.premise}</code> fails{answer.failed.about && <> for {answer.failed.about}</>}: {sentence(answer.failed.statement)}{answer.failed.question && <> The prover cannot decide <code>{answer.failed.question}</code>.</>}</p>
          : <p>The rule matches the node. It is disabled, or the limit of edits was reached before it.</p>)}
      </div>
    </details>
  );
}

function WhatWouldHelp({ name, explain, onApply }: { name: string; explain: Explain; onApply: (options: Options) => void }) {
  const [answer, setAnswer] = useState<Explanation | string>();
  const [isBusy, setBusy] = useState(false);
  useEffect(() => setAnswer(undefined), [name]);
  const ask = () => {
    setBusy(true);
    explain.names([name]).then(setAnswer, (error: Error) => setAnswer(error.message)).finally(() => setBusy(false));
  };
  if (answer === undefined) {
    return <button type="button" onClick={ask} disabled={isBusy}><Icon name="bulb" />{isBusy ? "Folding again…" : "What would remove it?"}</button>;
  }
  if (typeof answer === "string") return <p role="alert" class="error">{answer}</p>;
  const texts = answer.answers.filter((each) => each.name === name);
  return (
    <div aria-live="polite">
      {texts.map((each) => <pre key={each.name} class="answer">{each.text}</pre>)}
      {answer.suggestions.length ? <Suggestions explanation={answer} onApply={onApply} />
        : <p class="small">{count(answer.trials, "trial")}: no assumption about the inputs folds more.</p>}
    </div>
  );
}
