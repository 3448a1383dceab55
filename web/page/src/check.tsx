// Original and result on the same inputs: by the program's own evaluator, and on request in ONNX Runtime Web.

import type { Folded } from "onnx-slice-fold";
import { useState } from "preact/hooks";
import { call, type Call } from "./engine";
import { Icon } from "./icons";
import { blobOf } from "./result";
import type { Comparison } from "./runtime";
import { check, type Item } from "./store";
import { Table } from "./table";

export function CheckTab({ item, folded }: { item: Item; folded: Folded }) {
  return (
    <div class="two">
      <Evaluator item={item} />
      <Runtime item={item} folded={folded} />
    </div>
  );
}

function Verdict({ isEqual, children }: { isEqual: boolean; children: string }) {
  return <p class={isEqual ? "verdict equal" : "verdict different"}><Icon name={isEqual ? "check" : "warning"} />{children}</p>;
}

function Evaluator({ item }: { item: Item }) {
  const [count, setCount] = useState(3);
  const { check: answer } = item;
  return (
    <section>
      <h3>By the built-in evaluator</h3>
      <p class="hint">Runs original and result on generated inputs, as <code>--check</code> does, and compares results and stated shapes{item.settings.exact ? " bit for bit" : " up to rounding"}.</p>
      <div class="bar">
        <label class="inline">Inputs <input type="number" min="1" max="50" value={count} onInput={(event) => setCount(Math.max(1, Number(event.currentTarget.value) || 1))} /></label>
        {answer?.state === "working"
          ? <button type="button" onClick={answer.cancel}><Icon name="stop" />Cancel</button>
          : <button type="button" onClick={() => check(item.id, count)}><Icon name="check" />Check</button>}
      </div>
      <div aria-live="polite">
        {answer?.state === "working" && <p class="working"><span class="spinner" />Running both models…</p>}
        {answer?.state === "failed" && <p class="error">{answer.message}</p>}
        {answer?.state === "done" && (
          <>
            <Verdict isEqual={answer.value.equal}>{answer.value.equal ? "No difference" : "Different"}</Verdict>
            <pre class="answer">{answer.value.text}</pre>
          </>
        )}
      </div>
    </section>
  );
}

function Runtime({ item, folded }: { item: Item; folded: Folded }) {
  const [size, setSize] = useState(8);
  const [running, setRunning] = useState<Call<Comparison>>();
  const [progress, setProgress] = useState("");
  const [answer, setAnswer] = useState<Comparison | string>();
  const run = () => {
    setAnswer(undefined);
    setProgress("");
    const started = call("compare", [item.file, blobOf(folded.model), new Map(item.data), size], setProgress);
    setRunning(started);
    started.result.then(setAnswer, (error: Error) => setAnswer(error.message)).finally(() => setRunning(undefined));
  };
  return (
    <section>
      <h3>In ONNX Runtime Web</h3>
      <p class="hint">Loads ONNX Runtime (14 MB) from this site when you start it, runs original and result on the same random inputs, and compares every output.</p>
      <div class="bar">
        <label class="inline">Size of open dims <input type="number" min="1" max="4096" value={size} onInput={(event) => setSize(Math.max(1, Number(event.currentTarget.value) || 1))} /></label>
        {running
          ? <button type="button" onClick={running.cancel}><Icon name="stop" />Cancel</button>
          : <button type="button" onClick={run}><Icon name="check" />Compare</button>}
      </div>
      <div aria-live="polite">
        {running && <p class="working"><span class="spinner" />{progress || "Loading ONNX Runtime…"}</p>}
        {typeof answer === "string" && <p class="error">{answer}</p>}
        {answer && typeof answer !== "string" && (
          <>
            <Verdict isEqual={answer.isEqual}>{answer.isEqual ? "Equal up to rounding" : "Different"}</Verdict>
            <Table
              caption="Outputs in ONNX Runtime" noun="output" rows={answer.outputs}
              columns={[
                { title: "Output", text: (row) => row.name },
                { title: "Shape", text: (row) => row.shape },
                { title: "Largest difference", isNumber: true, text: (row) => row.difference },
              ]}
            />
            <p class="small">Inputs: {answer.inputs.join(", ")}. Original {answer.milliseconds[0]} ms, result {answer.milliseconds[1]} ms.</p>
          </>
        )}
      </div>
    </section>
  );
}
