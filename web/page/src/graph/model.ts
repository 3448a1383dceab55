// From the graph of a report to boxes and arrows: constants hidden on request, name scopes collapsed to one box each.

import type { Graph, Report } from "onnx-slice-fold";
import { fateOf, type Fate } from "./fate";
import { tail } from "../text";

export interface Box {
  kind: "node" | "scope" | "input" | "output";
  /** Stable across collapsing: used for selection. */
  key: string;
  title: string;
  subtitle: string;
  fate: Fate;
  /** Index of the node; of a scope, those of all nodes in it. */
  nodes: number[];
  /** Path of the scope, or of the scope that holds the node. */
  scope: string;
}

export interface Drawn {
  boxes: Box[];
  edges: [number, number][];
  /** Box by node index. */
  boxOf: Map<number, number>;
  hidden: number;
}

/** Past this number of boxes scopes are collapsed at first. */
const MANY = 160;

export const pathOf = (scope: readonly string[], depth = scope.length) => scope.slice(0, depth).join("/");

/** Returns the paths of all scopes with at least two nodes, with their depth. */
export function scopes(graphs: Graph[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const graph of graphs) {
    const count = new Map<string, number>();
    for (const node of graph.nodes) {
      for (let depth = 1; depth <= node.scope.length; depth++) {
        const path = pathOf(node.scope, depth);
        count.set(path, (count.get(path) ?? 0) + 1);
        if (count.get(path)! > 1) found.set(path, depth);
      }
    }
  }
  return found;
}

/** Returns the scopes that are collapsed at first: the deepest level at which both graphs can be overlooked. */
export function collapsedAtFirst(graphs: Graph[], hideConstants: boolean): Set<string> {
  const all = scopes(graphs);
  const deepest = Math.max(0, ...all.values());
  for (let depth = deepest + 1; depth > 0; depth--) {
    const collapsed = new Set([...all].filter(([, level]) => level >= depth).map(([path]) => path));
    if (depth === 1 || graphs.every((graph) => count(graph, collapsed, hideConstants) <= MANY)) return collapsed;
  }
  return new Set();
}

function holder(scope: readonly string[], collapsed: ReadonlySet<string>): string | undefined {
  for (let depth = 1; depth <= scope.length; depth++) {
    const path = pathOf(scope, depth);
    if (collapsed.has(path)) return path;
  }
  return undefined;
}

function count(graph: Graph, collapsed: ReadonlySet<string>, hideConstants: boolean): number {
  const boxes = new Set<string | number>();
  graph.nodes.forEach((node, at) => {
    if (!(hideConstants && isConstant(node.operator))) boxes.add(holder(node.scope, collapsed) ?? at);
  });
  return boxes.size;
}

const isConstant = (operator: string) => operator === "Constant";

export function draw(graph: Graph, report: Report, collapsed: ReadonlySet<string>, hideConstants: boolean): Drawn {
  const boxes: Box[] = [];
  const boxOf = new Map<number, number>();
  const scopeBoxes = new Map<string, number>();
  let hidden = 0;
  const shape = (type: string) => type.replace(/^[a-z0-9]+(?=\[)/, "").replaceAll('"', "");

  graph.inputs.forEach(({ name, type }) =>
    boxes.push({ kind: "input", key: `in:${name}`, title: name, subtitle: type.replaceAll('"', ""), fate: "kept", nodes: [], scope: "" }));
  graph.nodes.forEach((node, at) => {
    if (hideConstants && isConstant(node.operator)) return void hidden++;
    const path = holder(node.scope, collapsed);
    if (path === undefined) {
      boxOf.set(at, boxes.length);
      const subtitle = shape(node.outputs[0]?.type ?? "") || tail(node.name);
      boxes.push({
        kind: "node", key: `n:${at}`, title: node.operator, subtitle, fate: fateOf(node, report), nodes: [at], scope: pathOf(node.scope),
      });
      return;
    }
    let box = scopeBoxes.get(path);
    if (box === undefined) {
      box = boxes.length;
      scopeBoxes.set(path, box);
      boxes.push({ kind: "scope", key: `s:${path}`, title: tail(path), subtitle: "", fate: "kept", nodes: [], scope: path });
    }
    boxOf.set(at, box);
    boxes[box]!.nodes.push(at);
  });
  for (const box of scopeBoxes.values()) {
    const scope = boxes[box]!;
    const fates = scope.nodes.map((at) => fateOf(graph.nodes[at]!, report));
    const touched = fates.filter((fate) => fate !== "kept");
    scope.subtitle = `${scope.nodes.length} nodes${touched.length ? `, ${touched.length} changed` : ""}`;
    scope.fate = touched.length ? (touched.every((fate) => fate === touched[0]) && touched.length === fates.length ? touched[0]! : "changed") : "kept";
  }
  graph.outputs.forEach(({ name, type }) =>
    boxes.push({ kind: "output", key: `out:${name}`, title: name, subtitle: type.replaceAll('"', ""), fate: "kept", nodes: [], scope: "" }));

  // Values by producer. A node inside a subgraph also depends on the node that holds the subgraph.
  const producer = new Map<string, number>();
  boxes.forEach((box, at) => {
    if (box.kind === "input") producer.set(box.title, at);
  });
  graph.nodes.forEach((node, at) => {
    const box = boxOf.get(at);
    if (box !== undefined) node.outputs.forEach(({ name }) => producer.set(name, box));
  });
  const seen = new Set<number>();
  const edges: [number, number][] = [];
  const connect = (from: number | undefined, to: number) => {
    if (from === undefined || from === to || seen.has(from * boxes.length + to)) return;
    seen.add(from * boxes.length + to);
    edges.push([from, to]);
  };
  graph.nodes.forEach((node, at) => {
    const box = boxOf.get(at);
    if (box === undefined) return;
    node.inputs.forEach((name) => connect(producer.get(name), box));
  });
  boxes.forEach((box, at) => {
    if (box.kind === "output") connect(producer.get(box.title), at);
  });
  return { boxes, edges, boxOf, hidden };
}
