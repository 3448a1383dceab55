// The options of a model as a form: its dims, and the table of flags.

import type { Inspection } from "onnx-slice-fold";
import { useEffect, useState } from "preact/hooks";
import { call } from "./engine";
import { Icon } from "./icons";
import { FLAGS, withFlag, type Flag, type Settings } from "./options";
import { settle, type Item } from "./store";

/** Flags that are shown at once; the others are behind a disclosure. */
const COMMON = new Set(["exact", "opset", "shapes", "skip"]);

export function OptionsForm({ item }: { item: Item }) {
  const { settings, inspection } = item;
  const change = (next: Settings) => settle(item.id, next);
  const rest = FLAGS.filter(({ flag }) => flag !== "dim" && !COMMON.has(flag));
  const isOpen = rest.some(({ flag }) => settings[flag]);
  return (
    <form id="options" class="options" aria-label="Options" onSubmit={(event) => event.preventDefault()}>
      <h2>Options</h2>
      <Dims settings={settings} inspection={inspection} onChange={change} />
      {FLAGS.filter(({ flag }) => COMMON.has(flag)).map((flag) => <Field key={flag.flag} flag={flag} settings={settings} onChange={change} />)}
      <details open={isOpen}>
        <summary>More options</summary>
        {rest.map((flag) => <Field key={flag.flag} flag={flag} settings={settings} onChange={change} />)}
      </details>
      {Object.keys(settings).length > 0 && <button type="button" onClick={() => change({})}><Icon name="close" />Reset options</button>}
    </form>
  );
}

function Dims({ settings, inspection, onChange }: { settings: Settings; inspection: Inspection | undefined; onChange: (settings: Settings) => void }) {
  const given = settings.dim ?? [];
  const dims = inspection?.dynamic_dims ?? [];
  const names = new Set(dims.map(({ name }) => name));
  const nameOf = (dim: string) => dim.slice(0, dim.indexOf("=") < 0 ? undefined : dim.indexOf("="));
  const others = given.filter((dim) => !names.has(nameOf(dim)));
  const put = (name: string, size: string) => {
    const kept = given.filter((dim) => nameOf(dim) !== name);
    onChange(withFlag(settings, "dim", size.trim() ? [...kept, `${name}=${size.trim()}`] : kept));
  };
  return (
    <fieldset>
      <legend>Dims <code>--dim</code></legend>
      {!inspection && !given.length && <p class="hint">Known once the model is read.</p>}
      {inspection && !dims.length && <p class="hint">Every input has a fixed shape.</p>}
      {dims.map(({ name, places }) => {
        const value = given.find((dim) => nameOf(dim) === name)?.slice(name.length + 1) ?? "";
        const where = places.map(({ input, axis }) => `${input}[${axis}]`).join(", ");
        return (
          <label key={name} class="dim">
            <span class="dim-name"><code>{name}</code><span class="small" title={where}>{where}</span></span>
            <Text value={value} placeholder="any" onCommit={(size) => put(name, size)} />
          </label>
        );
      })}
      {dims.length > 0 && <p class="hint">A size <code>4</code>, a range <code>1..512</code>, a multiple <code>8..4096:8</code>.</p>}
      <Chips values={others} onRemove={(value) => onChange(withFlag(settings, "dim", given.filter((dim) => dim !== value)))} />
    </fieldset>
  );
}

/** A text field that commits when it loses the focus, or at Enter. */
function Text({ value, placeholder, list, label, onCommit }: { value: string; placeholder?: string; list?: string; label?: string; onCommit: (value: string) => void }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const commit = () => text !== value && onCommit(text);
  return (
    <input
      type="text" autocomplete="off" spellcheck={false} value={text} placeholder={placeholder} list={list} aria-label={label}
      onInput={(event) => setText(event.currentTarget.value)} onBlur={commit}
      onKeyDown={(event) => { if (event.key === "Enter") { event.preventDefault(); commit(); } }}
    />
  );
}

function Chips({ values, onRemove }: { values: readonly string[]; onRemove: (value: string) => void }) {
  if (!values.length) return null;
  return (
    <ul class="chips">
      {values.map((value) => (
        <li key={value}><code>{value}</code><button type="button" class="icon" aria-label={`Remove ${value}`} onClick={() => onRemove(value)}><Icon name="close" /></button></li>
      ))}
    </ul>
  );
}

function Field({ flag: { flag, kind, label, help, choices, placeholder }, settings, onChange }: { flag: Flag; settings: Settings; onChange: (settings: Settings) => void }) {
  const values = settings[flag] ?? [];
  const id = `option-${flag}`;
  if (kind === "switch") {
    return (
      <div class="field switch">
        <input id={id} type="checkbox" checked={values.length > 0} aria-describedby={`${id}-help`} onChange={(event) => onChange(withFlag(settings, flag, event.currentTarget.checked ? [""] : []))} />
        <div><label for={id}>{label} <code>--{flag}</code></label><p id={`${id}-help`} class="hint">{help}</p></div>
      </div>
    );
  }
  return (
    <div class="field">
      <label for={id}>{label} <code>--{flag}</code></label>
      {kind === "choice" && (
        <select id={id} value={values[0] ?? ""} aria-describedby={`${id}-help`} onChange={(event) => onChange(withFlag(settings, flag, event.currentTarget.value ? [event.currentTarget.value] : []))}>
          {choices?.map(([value, label]) => <option key={value} value={value}>{label}</option>)}
        </select>
      )}
      {kind === "list" && <ListField id={id} flag={flag} placeholder={placeholder} values={values} onChange={(next) => onChange(withFlag(settings, flag, next))} />}
      <p id={`${id}-help`} class="hint">{help}</p>
    </div>
  );
}

function ListField({ id, flag, placeholder, values, onChange }: { id: string; flag: string; placeholder: string | undefined; values: readonly string[]; onChange: (values: string[]) => void }) {
  const [text, setText] = useState("");
  const [rules, setRules] = useState<string[]>([]);
  const load = () => {
    if (flag === "skip" && !rules.length) call("rules", []).result.then((all) => setRules(all.map((rule) => rule.name)), () => {});
  };
  const add = () => {
    if (!text.trim()) return;
    onChange([...values.filter((value) => value !== text.trim()), text.trim()]);
    setText("");
  };
  return (
    <>
      <Chips values={values} onRemove={(value) => onChange(values.filter((other) => other !== value))} />
      <div class="add">
        <input
          id={id} type="text" autocomplete="off" spellcheck={false} value={text} placeholder={placeholder} list={rules.length ? `${id}-list` : undefined} aria-describedby={`${id}-help`}
          onFocus={load} onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => { if (event.key === "Enter") { event.preventDefault(); add(); } }}
        />
        <button type="button" class="icon" aria-label={`Add to --${flag}`} onClick={add}><Icon name="plus" /></button>
      </div>
      {rules.length > 0 && <datalist id={`${id}-list`}>{rules.map((rule) => <option key={rule} value={rule} />)}</datalist>}
    </>
  );
}
