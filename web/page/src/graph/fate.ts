// The outcomes of nodes. Each has a name and a mark besides its colour.

import type { GraphNode, Report } from "onnx-slice-fold";

export const FATES = {
  kept: { mark: "", label: "kept" },
  changed: { mark: "~", label: "changed" },
  new: { mark: "+", label: "new" },
  folded: { mark: "=", label: "folded to a constant" },
  merged: { mark: "∪", label: "merged with an equal node" },
  rewritten: { mark: "→", label: "rewritten" },
  dead: { mark: "×", label: "removed, unused" },
} as const;

export type Fate = keyof typeof FATES;

const FOLDED = /^fold-|^shape-read-off$/;
const MERGED = /^common-subexpression$|^value-numbering$/;

/** Returns what became of a node. Of several edits the last one that removed it counts. */
export function fateOf(node: GraphNode, report: Report): Fate {
  if (node.status === "unchanged") return "kept";
  if (node.status !== "removed") return node.status;
  const rules = node.edits.map((edit) => report.edits[edit]?.rule ?? "");
  // Dead code elimination follows the rule that made the node useless, so that rule is more informative.
  const rule = rules.filter((name) => name !== "dead-code").at(-1) ?? "dead-code";
  if (FOLDED.test(rule)) return "folded";
  if (MERGED.test(rule)) return "merged";
  return rule === "dead-code" ? "dead" : "rewritten";
}
