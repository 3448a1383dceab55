// A list of tabs, with the keys of the ARIA pattern.

import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";

export interface Tab {
  id: string;
  label: string;
  badge?: string;
}

export function Tabs({ tabs, current, onChange, label, children }: { tabs: readonly Tab[]; current: string; onChange: (id: string) => void; label: string; children: ComponentChildren }) {
  const list = useRef<HTMLDivElement>(null);
  const key = (event: KeyboardEvent) => {
    const at = tabs.findIndex((tab) => tab.id === current);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = (to + tabs.length) % tabs.length;
    onChange(tabs[next]!.id);
    (list.current?.children[next] as HTMLElement | undefined)?.focus();
  };
  return (
    <>
      <div ref={list} class="tabs" role="tablist" aria-label={label} onKeyDown={key}>
        {tabs.map(({ id, label, badge }) => (
          <button type="button" key={id} id={`tab-${id}`} role="tab" aria-selected={id === current} aria-controls="tab-panel" tabIndex={id === current ? 0 : -1} onClick={() => onChange(id)}>
            {label}{badge && <span class="small">{badge}</span>}
          </button>
        ))}
      </div>
      <div id="tab-panel" class="tab-panel" role="tabpanel" aria-labelledby={`tab-${current}`} tabIndex={0}>{children}</div>
    </>
  );
}
