#!/usr/bin/env python3
"""Draws a model before and after folding as one SVG file, with Graphviz.

    scripts/draw_example.py --binary target/release/onnx-slice-fold MODEL FILE.svg

Each half is the output of `show --dot` without names. The second half has the inferred shapes.
"""
import argparse
import re
import subprocess

COLORS = {"Constant": "#eaeef2", "Slice": "#ddf4ff", "Concat": "#ddf4ff", "Conv": "#dafbe1"}


def half(binary, model, flags, prefix, title):
    """Returns a cluster with the nodes and edges of one drawing."""
    text = subprocess.run([binary, "show", model, "--no-config", "--dot", *flags], capture_output=True, text=True, check=True).stdout
    lines = []
    for line in text.splitlines():
        line = line.strip()
        node = re.match(r'([nio]\d+) \[label="([^"\\]*)', line)
        edge = re.match(r'([nio]\d+) -> ([nio]\d+)(?: \[label="(.*)"\])?;', line)
        if edge:
            shape = re.search(r"float(\[.*\])", edge[3] or "")
            label = shape[1].replace('\\"', "") if shape and "--folded" in flags else ""
            lines.append(f'{prefix}{edge[1]} -> {prefix}{edge[2]} [label="{label}"];')
        elif node:
            shape = "ellipse" if node[1][0] != "n" else "box"
            lines.append(f'{prefix}{node[1]} [label="{node[2]}", shape={shape}, fillcolor="{COLORS.get(node[2], "#ffffff")}"];')
    count = sum(f"{prefix}n" == line[: len(prefix) + 1] and "->" not in line for line in lines)
    return f'subgraph cluster_{prefix} {{ label="{title}: {count} nodes"; ' + "\n".join(lines) + "}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("model")
    parser.add_argument("picture")
    options = parser.parse_args()
    style = (
        'graph [fontname="Helvetica", fontsize=16, bgcolor="white", color="#d0d7de", style=rounded, nodesep=0.12, ranksep=0.3];'
        'node [fontname="Helvetica", fontsize=11, style="filled,rounded", color="#57606a", height=0.3, margin="0.08,0.03"];'
        'edge [fontname="Helvetica", fontsize=9, color="#57606a", fontcolor="#57606a", arrowsize=0.6];'
    )
    halves = [half(options.binary, options.model, [], "b", "before"), half(options.binary, options.model, ["--folded"], "a", "after")]
    graph = "digraph g { " + style + "\n".join(halves) + " }"
    subprocess.run(["dot", "-Tsvg", "-o", options.picture], input=graph, text=True, check=True)


if __name__ == "__main__":
    main()
