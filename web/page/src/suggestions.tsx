// Assumptions about the inputs that allow further folding, each a button.

import type { Explanation, Options } from "onnx-slice-fold";
import { Icon } from "./icons";

export function Suggestions({ explanation, onApply }: { explanation: Explanation; onApply: (options: Options) => void }) {
  return (
    <ul class="suggestions">
      {explanation.suggestions.map(({ flags, condition, nodes, tensors_open, options }) => (
        <li key={flags}>
          <button type="button" onClick={() => onApply(options)}><Icon name="fold" />Fold with <code>{flags}</code></button>
          <span class="small">
            {explanation.nodes} → {nodes} nodes{tensors_open ? `, ${tensors_open} tensors of unknown size` : ""}. Only for runs in which {condition}.
          </span>
        </li>
      ))}
    </ul>
  );
}
