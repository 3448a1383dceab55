// Layered layout of a directed graph, top to bottom: layers by longest path, order by medians, and positions by least squares.
//
// Written here because ELK and Graphviz take seconds for thousands of nodes; every step below is near linear.

export interface Input {
  /** Width and height of each node. */
  widths: number[];
  heights: number[];
  /** Pairs of node numbers. */
  edges: [from: number, to: number][];
}

export interface Placed {
  /** Centres. */
  x: number[];
  y: number[];
  /** The points of each edge, in the order of `edges`: x and y by turns. */
  routes: number[][];
  width: number;
  height: number;
}

const GAP_X = 16;
const GAP_Y = 44;
/** Edges over more layers than this are drawn as one line. Points in between would multiply the graph. */
const MOST_POINTS = 40_000;

export function layout({ widths, heights, edges }: Input): Placed {
  const nodes = widths.length;
  const forward = acyclic(nodes, edges);
  const layer = layers(nodes, forward);

  // Long edges get a point in each layer that they cross. Edges from one node share points.
  const width = [...widths];
  const links: [number, number][] = [];
  const paths: number[][] = forward.map(() => []);
  const shared = new Map<number, number[]>();
  const longest = new Map<number, number>();
  for (const [from, to] of forward) longest.set(from, Math.max(longest.get(from) ?? 0, layer[to]! - layer[from]! - 1));
  let points = 0;
  for (const [from, count] of longest) {
    if (count <= 0 || points + count > MOST_POINTS) continue;
    points += count;
    const chain: number[] = [];
    for (let at = 0, before = from; at < count; at++) {
      const point = width.length;
      width.push(2);
      layer.push(layer[from]! + at + 1);
      links.push([before, point]);
      chain.push(point);
      before = point;
    }
    shared.set(from, chain);
  }
  forward.forEach(([from, to], edge) => {
    const path = (shared.get(from) ?? []).slice(0, Math.max(0, layer[to]! - layer[from]! - 1));
    links.push([path.at(-1) ?? from, to]);
    paths[edge] = path;
  });

  const rows = order(width.length, layer, links);
  const x = positions(width, rows, links);
  const [y, height] = rowCentres(rows, heights);
  const left = Math.min(...rows.map((row) => Math.min(...row.map((node) => x[node]! - width[node]! / 2))));
  const right = Math.max(...rows.map((row) => Math.max(...row.map((node) => x[node]! + width[node]! / 2))));
  const centre = (node: number) => [x[node]! - left, y[layer[node]!]!] as const;

  const routes = edges.map(([from, to], edge) => {
    const isReversed = forward[edge]![0] !== from;
    const points = paths[edge]!.flatMap((point) => [...centre(point)]);
    const [top, bottom] = isReversed ? [to, from] : [from, to];
    const [fromX, fromY] = centre(top);
    const [toX, toY] = centre(bottom);
    return [fromX, fromY + heights[top]! / 2, ...points, toX, toY - heights[bottom]! / 2];
  });
  const centres = widths.map((_, node) => centre(node));
  return { x: centres.map((at) => at[0]), y: centres.map((at) => at[1]), routes, width: nodes ? right - left : 0, height };
}

/** Returns the edges with those of cycles reversed. */
function acyclic(nodes: number, edges: [number, number][]): [number, number][] {
  const out: number[][] = Array.from({ length: nodes }, () => []);
  edges.forEach(([from], edge) => out[from]!.push(edge));
  const state = new Uint8Array(nodes); // 1: on the path, 2: done
  const reversed = new Uint8Array(edges.length);
  for (let root = 0; root < nodes; root++) {
    if (state[root]) continue;
    const path: [number, number][] = [[root, 0]];
    state[root] = 1;
    while (path.length) {
      const top = path.at(-1)!;
      const edge = out[top[0]]![top[1]++];
      if (edge === undefined) {
        state[top[0]] = 2;
        path.pop();
        continue;
      }
      const to = edges[edge]![1];
      if (state[to] === 1) reversed[edge] = 1;
      else if (!state[to]) {
        state[to] = 1;
        path.push([to, 0]);
      }
    }
  }
  return edges.map(([from, to], edge) => (reversed[edge] ? [to, from] : [from, to]));
}

/** Returns the layer of each node: below all producers, and as near to the consumers as that allows where there is no producer. */
function layers(nodes: number, edges: [number, number][]): number[] {
  const out: number[][] = Array.from({ length: nodes }, () => []);
  const producers = new Int32Array(nodes);
  for (const [from, to] of edges) {
    out[from]!.push(to);
    producers[to]!++;
  }
  const open = [...producers.keys()].filter((node) => !producers[node]);
  const isSource = producers.map((count) => (count ? 0 : 1));
  const layer = new Array<number>(nodes).fill(0);
  for (let at = 0; at < open.length; at++) {
    const node = open[at]!;
    for (const to of out[node]!) {
      layer[to] = Math.max(layer[to]!, layer[node]! + 1);
      if (!--producers[to]!) open.push(to);
    }
  }
  for (const node of open) {
    if (isSource[node] && out[node]!.length) layer[node] = Math.min(...out[node]!.map((to) => layer[to]!)) - 1;
  }
  return layer;
}

/** Orders each layer so that few edges cross. */
function order(nodes: number, layer: number[], links: [number, number][]): number[][] {
  const rows: number[][] = Array.from({ length: Math.max(0, ...layer.map((at) => at + 1)) }, () => []);
  const above = neighbours(nodes, links, 1);
  const below = neighbours(nodes, links, 0);
  // Depth first, so that a branch lies together from the beginning.
  const seen = new Uint8Array(nodes);
  for (let root = 0; root < nodes; root++) {
    const open = [root];
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      if (seen[node]) continue;
      seen[node] = 1;
      rows[layer[node]!]!.push(node);
      for (const to of [...below[node]!].reverse()) open.push(to);
    }
  }
  const place = new Float64Array(nodes);
  const number = (row: number[]) => row.forEach((node, at) => (place[node] = at));
  rows.forEach(number);
  const rounds = nodes > 20_000 ? 2 : 8;
  for (let round = 0; round < rounds; round++) {
    const near = round % 2 ? below : above;
    const sweep = round % 2 ? [...rows].reverse() : rows;
    for (const row of sweep) {
      const key = new Map(row.map((node) => [node, median(near[node]!.map((other) => place[other]!)) ?? place[node]!]));
      row.sort((a, b) => key.get(a)! - key.get(b)! || place[a]! - place[b]!);
      number(row);
    }
  }
  return rows;
}

function neighbours(nodes: number, links: [number, number][], of: 0 | 1): number[][] {
  const near: number[][] = Array.from({ length: nodes }, () => []);
  for (const link of links) near[link[of]]!.push(link[1 - of]!);
  return near;
}

function median(numbers: number[]): number | undefined {
  if (numbers.length < 3) return numbers.length ? (numbers[0]! + numbers.at(-1)!) / 2 : undefined;
  numbers.sort((a, b) => a - b);
  return numbers[numbers.length >> 1];
}

/** Returns x positions: each node near its neighbours, in the order of its layer, without overlap. */
function positions(width: number[], rows: number[][], links: [number, number][]): number[] {
  const above = neighbours(width.length, links, 1);
  const below = neighbours(width.length, links, 0);
  const x = new Array<number>(width.length).fill(0);
  for (const row of rows) {
    let at = 0;
    for (const node of row) {
      x[node] = at + width[node]! / 2;
      at += width[node]! + GAP_X;
    }
    for (const node of row) x[node]! -= at / 2;
  }
  for (let round = 0; round < 6; round++) {
    const near = round % 2 ? below : above;
    for (const row of round % 2 ? [...rows].reverse() : rows) {
      const wished = row.map((node) => {
        const others = near[node]!;
        return others.length ? others.reduce((sum, other) => sum + x[other]!, 0) / others.length : x[node]!;
      });
      spread(row, wished, width, x);
    }
  }
  return x;
}

/** Moves the nodes of a row as little as possible from where they wish to be, by pooling neighbours that would overlap. */
function spread(row: number[], wished: number[], width: number[], x: number[]): void {
  const offsets: number[] = [];
  let offset = 0;
  row.forEach((node, at) => {
    if (at) offset += (width[row[at - 1]!]! + width[node]!) / 2 + GAP_X;
    offsets.push(offset);
  });
  const pools: { sum: number; count: number }[] = [];
  wished.forEach((wish, at) => {
    let pool = { sum: wish - offsets[at]!, count: 1 };
    for (let last = pools.at(-1); last && last.sum / last.count > pool.sum / pool.count; last = pools.at(-1)) {
      pool = { sum: pool.sum + last.sum, count: pool.count + last.count };
      pools.pop();
    }
    pools.push(pool);
  });
  let at = 0;
  for (const { sum, count } of pools) for (let more = 0; more < count; more++, at++) x[row[at]!] = sum / count + offsets[at]!;
}

/** Returns the centre of each row, and the height of all. */
function rowCentres(rows: number[][], heights: number[]): [number[], number] {
  let y = 0;
  const centres = rows.map((row) => {
    const height = Math.max(0, ...row.map((node) => heights[node] ?? 0));
    const centre = y + height / 2;
    y += height + GAP_Y;
    return centre;
  });
  return [centres, Math.max(0, y - GAP_Y)];
}
