"use strict";
// The data are text: everything goes onto the page as text nodes and attributes, never as markup.
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const strings = data.s;
  const read = (rows) => rows.map((row, index) => ({
    index, operator: strings[row[0]], name: strings[row[1]], inputs: row[2].map((i) => strings[i]),
    outputs: row[3].map((i) => strings[i]), types: row[4].map((i) => strings[i]), why: row.length > 5 ? strings[row[5]] : "",
  }));
  const wire = (nodes) => {
    const makers = new Map(), readers = new Map(), names = new Map();
    for (const node of nodes) {
      if (node.name && !names.has(node.name)) names.set(node.name, node);
      for (const value of node.outputs) makers.set(value, node);
      for (const value of node.inputs) {
        if (!readers.has(value)) readers.set(value, []);
        readers.get(value).push(node);
      }
    }
    return { nodes, makers, readers, names };
  };
  const sides = { before: wire(read(data.b)), after: wire(read(data.a)) };
  const find = (id) => document.getElementById(id);
  const make = (tag, text, attributes) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    for (const key in attributes || {}) element.setAttribute(key, attributes[key]);
    return element;
  };
  // Text with places for line breaks at the separators in long words.
  const named = (element, text) => {
    for (const word of text.split(/(?<=\s)/)) {
      const parts = word.length > 20 ? word.split(/(?<=[/._:,;)\]=|])/) : [word];
      parts.forEach((part, at) => element.append(...(at ? [document.createElement("wbr"), part] : [part])));
    }
    element.normalize();
    return element;
  };
  const SVG = "http://www.w3.org/2000/svg";
  const draw = (tag, attributes, text) => {
    const element = document.createElementNS(SVG, tag);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const PAGE = 20;
  let page = 0;

  // The table of nodes.
  function found() {
    const words = find("query").value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (node) => {
      const text = [node.operator, node.name, node.why].concat(node.inputs, node.outputs, node.types).join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    };
    return sides[find("side").value].nodes.filter(fits);
  }
  function list() {
    const nodes = found(), body = find("rows");
    page = Math.max(0, Math.min(page, Math.ceil(nodes.length / PAGE) - 1));
    body.replaceChildren();
    for (const node of nodes.slice(page * PAGE, page * PAGE + PAGE)) {
      const row = make("tr"), cell = make("th", undefined, { scope: "row" });
      const button = named(make("button", undefined, { type: "button" }), node.name || node.outputs[0] || "(no name)");
      button.addEventListener("click", () => choose(node, find("side").value, true));
      cell.append(button);
      const column = (label, text) => named(make("td", undefined, label ? { "data-label": label } : {}), text);
      const typed = node.outputs.map((value, i) => (node.types[i] ? node.types[i] + " " : "") + value).join(", ");
      row.append(named(make("td"), node.operator), cell, column("inputs", node.inputs.join(", ")), column("outputs", typed));
      row.append(node.why ? column("why it is kept", node.why) : make("td"));
      body.append(row);
    }
    const first = nodes.length ? page * PAGE + 1 : 0, last = Math.min(nodes.length, page * PAGE + PAGE);
    find("count").textContent = `${first} to ${last} of ${nodes.length} nodes`;
    find("back").disabled = page === 0;
    find("next").disabled = last >= nodes.length;
  }

  // The graph around a node: producers above it, consumers below it.
  function around(side, node) {
    const depth = Number(find("depth").value), most = 40;
    const at = new Map([[node, 0]]);
    const walk = (step, next) => {
      let edge = [node];
      for (let level = 1; level <= depth; level++) {
        const found = [];
        for (const from of edge) for (const to of next(from)) {
          if (to && !at.has(to) && at.size < most) { at.set(to, step * level); found.push(to); }
        }
        edge = found;
      }
    };
    walk(-1, (from) => from.inputs.map((value) => side.makers.get(value)));
    walk(1, (from) => from.outputs.flatMap((value) => side.readers.get(value) || []));
    return at;
  }
  // Cuts the beginning of a label until it fits its box.
  function fit(text, room) {
    let label = text.textContent;
    while (label.length > 1 && text.getComputedTextLength() > room) {
      label = label.slice(Math.max(1, Math.ceil(label.length / 20)));
      text.textContent = "…" + label;
    }
  }
  function picture(name, node, isSame) {
    const side = sides[name], place = find("graph-" + name);
    place.replaceChildren();
    if (!isSame) place.append(make("p", `The model ${name} folding does not have this node.` + (node ? " The nearest node there:" : "")));
    if (!node) return;
    const at = around(side, node), rows = new Map();
    for (const [other, level] of at) {
      if (!rows.has(level)) rows.set(level, []);
      rows.get(level).push(other);
    }
    const levels = [...rows.keys()].sort((a, b) => a - b), width = 190, height = 84, where = new Map();
    const widest = Math.max(...levels.map((level) => rows.get(level).length));
    levels.forEach((level, y) => rows.get(level).forEach((other, x) => {
      where.set(other, [(x + (widest - rows.get(level).length) / 2) * width + 5, y * height + 5]);
    }));
    const svg = draw("svg", { width: widest * width, height: levels.length * height, role: "group", "aria-label": `Graph ${name} folding around ${node.operator} ${node.name}` });
    for (const other of at.keys()) for (const value of other.inputs) {
      const maker = side.makers.get(value);
      if (!maker || !where.has(maker)) continue;
      const [x1, y1] = where.get(maker), [x2, y2] = where.get(other);
      const line = draw("path", { class: "edge", d: `M${x1 + 90},${y1 + 44} C${x1 + 90},${y1 + 66} ${x2 + 90},${y2 - 22} ${x2 + 90},${y2}` });
      line.append(draw("title", {}, value));
      svg.append(line);
    }
    const labels = [];
    for (const [other, [x, y]] of where) {
      const group = draw("g", { class: other === node ? "node chosen" : "node", tabindex: 0, role: "button" });
      group.append(draw("title", {}, `${other.operator} ${other.name}\n${other.outputs.map((value, i) => `${other.types[i]} ${value}`).join("\n")}`));
      group.append(draw("rect", { x, y, width: 180, height: 44, rx: 4 }));
      const title = draw("text", { x: x + 8, y: y + 18, "font-weight": "bold" }, other.operator);
      const type = draw("text", { x: x + 8, y: y + 35 }, other.types[0] || other.name);
      group.append(title, type);
      labels.push(title, type);
      const pick = () => choose(other, name, false);
      group.addEventListener("click", pick);
      group.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(); }
      });
      svg.append(group);
    }
    const frame = make("div", undefined, { class: "drawing" });
    frame.append(svg);
    place.append(frame);
    for (const label of labels) fit(label, 164);
    const told = make("dl");
    const say = (term, text) => { if (text) told.append(make("dt", term), named(make("dd"), text)); };
    say("node", `${node.operator} ${node.name}`);
    say("inputs", node.inputs.join(", "));
    say("outputs", node.outputs.map((value, i) => `${node.types[i]} ${value}`).join(", "));
    say("why it is kept", node.why);
    place.append(told);
    const [x] = where.get(node);
    frame.scrollLeft = Math.max(0, x + 90 - frame.clientWidth / 2);
  }
  function same(side, node) {
    for (const value of node.outputs) if (side.makers.has(value)) return side.makers.get(value);
    return node.name ? side.names.get(node.name) : undefined;
  }
  // The first node of the other model on the way from `node` against the edges, or else along them.
  function near(side, other, node) {
    const search = (next) => {
      const seen = new Set([node]), open = [node];
      for (let at = 0; at < open.length && at < 200; at++) for (const to of next(open[at])) {
        const there = to && same(other, to);
        if (there) return there;
        if (to && !seen.has(to)) { seen.add(to); open.push(to); }
      }
    };
    return search((from) => from.inputs.map((value) => side.makers.get(value)))
      || search((from) => from.outputs.flatMap((value) => side.readers.get(value) || []));
  }
  let chosen = null;
  function choose(node, name, moves) {
    chosen = [node, name];
    const other = name === "before" ? "after" : "before";
    picture(name, node, true);
    const there = same(sides[other], node);
    picture(other, there || near(sides[name], sides[other], node), Boolean(there));
    find("chosen").replaceChildren();
    named(find("chosen"), `${node.operator} ${node.name || node.outputs[0] || ""}`);
    if (moves) { find("graph").scrollIntoView(); find("chosen").focus(); }
  }

  find("query").addEventListener("input", () => { page = 0; list(); });
  find("side").addEventListener("change", () => { page = 0; list(); });
  find("back").addEventListener("click", () => { page--; list(); });
  find("next").addEventListener("click", () => { page++; list(); });
  find("depth").addEventListener("change", () => { if (chosen) choose(chosen[0], chosen[1], false); });
  // Copies a text without the network; old browsers and pages without a secure origin lack the clipboard interface.
  async function copy(text) {
    try { return await navigator.clipboard.writeText(text); } catch { /* The other way. */ }
    const area = make("textarea", text);
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) throw new Error("the browser refused");
  }
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      let word = "Copied";
      try { await copy(button.dataset.copy); } catch { word = "Not copied"; }
      button.textContent = word;
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
  list();
  if (sides.after.nodes.length) choose(sides.after.nodes[0], "after", false);
})();
