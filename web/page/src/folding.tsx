// The tool that folds models: choose files, options, result.

import { useRef, useState } from "preact/hooks";
import { Icon } from "./icons";
import { OptionsForm } from "./options-form";
import { Result } from "./result";
import { SAMPLES } from "./samples";
import { cancel, close, currentOf, fold, open, openSample, select, useStore, type Dropped, type Item } from "./store";

type State = ReturnType<typeof useStore>;

export function Folding({ state }: { state: State }) {
  const item = currentOf(state);
  return (
    <>
      {state.notice && <p role="alert" class="error">{state.notice}</p>}
      {item ? <Workspace state={state} item={item} /> : <Empty />}
    </>
  );
}

function Chooser({ label, isPrimary }: { label: string; isPrimary?: boolean }) {
  const input = useRef<HTMLInputElement>(null);
  const choose = (event: Event) => {
    const { files } = event.currentTarget as HTMLInputElement;
    open([...(files ?? [])].map((file): Dropped => ({ file, path: file.webkitRelativePath || file.name })));
    (event.currentTarget as HTMLInputElement).value = "";
  };
  return (
    <>
      <button type="button" class={isPrimary ? "primary" : ""} onClick={() => input.current?.click()}><Icon name="upload" />{label}</button>
      <input ref={input} type="file" multiple hidden aria-label={label} onChange={choose} />
    </>
  );
}

function Empty() {
  return (
    <div class="empty-page">
      <h1>Fold an ONNX model, and see why the rest is kept</h1>
      <p class="lead">Symbolic shape inference, constant folding and graph rewriting, in this tab. No upload, no installation.</p>
      <div class="drop">
        <Icon name="file" />
        <p><strong>Drop models here</strong>, with their data files if they have any.</p>
        <Chooser label="Choose files" isPrimary />
      </div>
      <h2>Or try a sample</h2>
      <ul class="samples">
        {SAMPLES.map(({ id, title, text }) => (
          <li key={id}>
            <button type="button" onClick={() => void openSample(id)}><strong>{title}</strong><span>{text}</span></button>
          </li>
        ))}
      </ul>
    </div>
  );
}

const WORDS = { working: "folding", done: "done", failed: "failed", cancelled: "cancelled" } as const;

function Workspace({ state, item }: { state: State; item: Item }) {
  const [hasOptions, setOptions] = useState(() => matchMedia("(min-width: 861px)").matches);
  const given = Object.values(item.settings).reduce((sum, values) => sum + values.length, 0);
  return (
    <div class="workspace">
      <h1 class="visually-hidden">Fold {item.name}</h1>
      <div class="models">
        <ul aria-label="Models">
          {state.items.map(({ id, name, run }) => (
            <li key={id} class={id === item.id ? "current" : ""}>
              <button type="button" aria-current={id === item.id ? "true" : undefined} onClick={() => select(id)}>
                {run.state === "working" ? <span class="spinner" /> : <Icon name={run.state === "failed" ? "warning" : run.state === "done" ? "check" : "stop"} />}
                <span class="name">{name}</span>
                {run.state === "done" ? <span class="small">{run.folded.report.before.nodes} → {run.folded.report.after.nodes}</span> : <span class="visually-hidden">{WORDS[run.state]}</span>}
              </button>
              <button type="button" class="icon" aria-label={`Close ${name}`} onClick={() => close(id)}><Icon name="close" /></button>
            </li>
          ))}
        </ul>
        <Chooser label="Add" />
        <button type="button" class="toggle" aria-expanded={hasOptions} aria-controls="options" onClick={() => setOptions(!hasOptions)}>
          <Icon name="sliders" />{hasOptions ? "Hide options" : "Options"}{given > 0 && <span class="small">{given}</span>}
        </button>
      </div>
      <div class={hasOptions ? "columns" : ""}>
        {hasOptions && <OptionsForm key={item.id} item={item} />}
        <div class="result">
          <Status item={item} />
          {item.last && <Result key={item.id} item={item} folded={item.last} isStale={item.run.state === "working"} />}
        </div>
      </div>
    </div>
  );
}

/** Progress, failure or cancellation. Screen readers get the summary of a result from here. */
function Status({ item: { id, name, run, last } }: { item: Item }) {
  return (
    <div class={last && run.state === "working" ? "status over" : "status"} aria-live="polite">
      {run.state === "working" && (
        <div class="working">
          <span class="spinner" />
          <p>Folding <strong>{name}</strong>: {run.progress}</p>
          <button type="button" onClick={() => cancel(id)}><Icon name="stop" />Cancel</button>
        </div>
      )}
      {run.state === "cancelled" && (
        <div class="message">
          <Icon name="stop" />
          <p>Cancelled before the end. Nothing was written.</p>
          <button type="button" onClick={() => fold(id)}><Icon name="fold" />Fold again</button>
        </div>
      )}
      {run.state === "failed" && (
        <div class="message failed" role="alert">
          <Icon name="warning" />
          <div>
            <h2>{name} was not folded</h2>
            <p class="program-message">{run.message}</p>
          </div>
          <button type="button" onClick={() => fold(id)}><Icon name="fold" />Try again</button>
        </div>
      )}
      {run.state === "done" && (
        <p class="visually-hidden">
          {name}: {run.folded.report.before.nodes} nodes before, {run.folded.report.after.nodes} after folding.
        </p>
      )}
    </div>
  );
}
