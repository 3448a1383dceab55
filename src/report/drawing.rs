//! A model as a drawing: nodes with the values they read and compute; and the part around a node as Graphviz or Mermaid text.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;

use crate::ir::text::{attribute_text, type_text};
use crate::ir::{Attribute, Model, Node, ValueId};
use crate::tensor::Tensor;

/// The nodes of a model in execution order; nodes of subgraphs follow the node that contains them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drawing {
    /// The nodes.
    pub nodes: Vec<DrawnNode>,
    /// The initializers of all graphs: names, types in the ONNX text syntax, and bytes.
    pub initializers: Vec<(String, String, usize)>,
    /// The names of the main graph's inputs.
    pub inputs: Vec<String>,
    /// The names of the main graph's outputs.
    pub outputs: Vec<String>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrawnNode {
    /// Its operator, with the domain if it is not the default one.
    pub operator: String,
    /// Its name; empty if it has none.
    pub name: String,
    /// Its operator and name (or the name of a result), as in edits and causes.
    pub label: String,
    /// Its attributes except graphs, with values in the ONNX text syntax; large tensors have only their type.
    pub attributes: Vec<(String, String)>,
    /// The index of the node that contains its graph; `None` for nodes of the main graph.
    pub parent: Option<usize>,
    /// The values it reads, and those that its subgraphs capture from outer graphs.
    pub inputs: Vec<String>,
    /// The values it computes, and their types in the ONNX text syntax; empty if unknown.
    pub outputs: Vec<(String, String)>,
}

/// The formats of a drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DrawingForm {
    /// The DOT language of Graphviz.
    Dot,
    /// A Mermaid flowchart.
    Mermaid,
}

/// The error for a name that no node or value of a drawing has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the model has no node and no tensor named '{name}'{}", nearest.as_ref().map(|name| format!("; did you mean '{name}'?")).unwrap_or_default())]
pub struct NotDrawn {
    /// The name.
    pub name: String,
    /// The most similar name in the drawing.
    pub nearest: Option<String>,
}

impl Drawing {
    /// Draws a model.
    pub(crate) fn of(model: &Model) -> Self {
        let name = |value: &ValueId| model.value(*value).name.to_string();
        let main = model.graph(model.main());
        let mut drawing = Drawing {
            nodes: Vec::new(),
            initializers: Vec::new(),
            inputs: main.inputs().iter().map(name).collect(),
            outputs: main.outputs().iter().map(name).collect(),
        };
        let mut open = VecDeque::from([(model.main(), None)]);
        while let Some((graph, parent)) = open.pop_front() {
            let order = model.topological(graph).unwrap_or_else(|_| model.graph(graph).nodes().collect());
            for (id, node) in order.into_iter().filter_map(|id| Some((id, model.node(id)?))) {
                open.extend(node.subgraphs().map(|body| (body, Some(drawing.nodes.len()))));
                drawing.nodes.push(DrawnNode { label: model.describe(id), parent, ..drawn(model, node) });
            }
            let initializers = model.graph(graph).initializers().iter();
            drawing.initializers.extend(initializers.filter_map(|value| {
                let tensor = model.value(*value).tensor()?;
                Some((name(value), typed(tensor), tensor.byte_len()))
            }));
        }
        drawing
    }

    /// Returns the drawing of all nodes at most `depth` nodes away from `name`, a node or a value; the whole model without a name.
    ///
    /// # Errors
    /// Nothing has this name.
    pub fn text(&self, form: DrawingForm, around: Option<&str>, depth: usize) -> Result<String, NotDrawn> {
        let shown = match around {
            Some(name) => self.around(name, depth)?,
            None => (0..self.nodes.len()).collect(),
        };
        let shown: Vec<&DrawnNode> = shown.into_iter().filter_map(|at| self.nodes.get(at)).collect();
        Ok(match form {
            DrawingForm::Dot => self.written(&shown, &Dot),
            DrawingForm::Mermaid => self.written(&shown, &Mermaid),
        })
    }

    /// Returns the nodes at most `depth` steps away, in order.
    fn around(&self, name: &str, depth: usize) -> Result<BTreeSet<usize>, NotDrawn> {
        let mut makers: BTreeMap<&str, usize> = BTreeMap::new();
        let mut readers: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, node) in self.nodes.iter().enumerate() {
            node.outputs.iter().for_each(|(value, _)| _ = makers.insert(value, at));
            node.inputs.iter().for_each(|value| readers.entry(value).or_default().push(at));
        }
        let named = self.nodes.iter().position(|node| node.name == name && !name.is_empty());
        let start: Vec<usize> = match named.or_else(|| makers.get(name).copied()) {
            Some(at) => vec![at],
            None => readers.get(name).cloned().unwrap_or_default(),
        };
        if start.is_empty() {
            let names = self.nodes.iter().map(|node| node.name.as_str()).chain(makers.keys().copied());
            let names: Vec<&str> = names.chain(readers.keys().copied()).filter(|name| !name.is_empty()).collect();
            let nearest = crate::rewrite::meant(name, names.iter().copied()).map(str::to_string);
            return Err(NotDrawn { name: name.to_string(), nearest });
        }
        let mut found: BTreeSet<usize> = start.iter().copied().collect();
        let mut edge = start;
        for _ in 0..depth {
            let mut next = Vec::new();
            for node in edge.iter().filter_map(|at| self.nodes.get(*at)) {
                next.extend(node.inputs.iter().filter_map(|value| makers.get(value.as_str()).copied()));
                next.extend(node.outputs.iter().filter_map(|(value, _)| readers.get(value.as_str())).flatten());
            }
            next.retain(|at| found.insert(*at));
            edge = next;
        }
        Ok(found)
    }

    fn written(&self, shown: &[&DrawnNode], language: &dyn Language) -> String {
        let mut text = language.begin();
        let mut makers: BTreeMap<&str, (String, &str)> = BTreeMap::new();
        for (at, node) in shown.iter().enumerate() {
            let label =
                if node.name.is_empty() { node.operator.clone() } else { format!("{}\n{}", node.operator, node.name) };
            language.node(&mut text, &format!("n{at}"), &label, false);
            node.outputs.iter().for_each(|(value, ty)| _ = makers.insert(value, (format!("n{at}"), ty)));
        }
        for (at, value) in self.inputs.iter().enumerate() {
            if shown.iter().any(|node| node.inputs.contains(value)) {
                language.node(&mut text, &format!("i{at}"), value, true);
                makers.insert(value, (format!("i{at}"), ""));
            }
        }
        for (at, node) in shown.iter().enumerate() {
            for value in &node.inputs {
                if let Some((from, ty)) = makers.get(value.as_str()) {
                    let label = if ty.is_empty() { value.clone() } else { format!("{value}\n{ty}") };
                    language.edge(&mut text, from, &format!("n{at}"), &label);
                }
            }
        }
        for (at, value) in self.outputs.iter().enumerate() {
            if let Some((from, ty)) = makers.get(value.as_str()) {
                language.node(&mut text, &format!("o{at}"), value, true);
                language.edge(&mut text, from, &format!("o{at}"), ty);
            }
        }
        text.push_str(language.end());
        text
    }
}

fn drawn(model: &Model, node: &Node) -> DrawnNode {
    let name = |value: &ValueId| model.value(*value).name.to_string();
    let captured = node.subgraphs().flat_map(|body| model.captures(body)).collect::<Vec<_>>();
    let inputs = node.inputs().iter().flatten().chain(&captured).map(name).collect();
    let ty = |value: &ValueId| model.value(*value).declared.as_ref().map_or_else(String::new, type_text);
    let outputs = node.outputs().iter().flatten().map(|value| (name(value), ty(value))).collect();
    let held = node.attributes.iter().filter(|held| held.value.graphs().is_empty());
    let attributes = held.map(|held| (held.name.to_string(), value_text(model, &held.value))).collect();
    let (label, parent) = (String::new(), None);
    DrawnNode { operator: node.operator(), name: node.name.to_string(), label, attributes, parent, inputs, outputs }
}

/// The largest number of elements of a written tensor.
const WRITTEN: usize = 16;

fn value_text(model: &Model, value: &Attribute) -> String {
    match value {
        Attribute::Tensor(tensor, _) if tensor.len() > WRITTEN => typed(tensor),
        value => attribute_text(model, value),
    }
}

/// Returns the type of a tensor in the ONNX text syntax.
fn typed(tensor: &Tensor) -> String {
    let dims: Vec<String> = tensor.shape().iter().map(usize::to_string).collect();
    format!("{}[{}]", tensor.dtype().name(), dims.join(","))
}

/// An output language for drawings.
trait Language {
    fn begin(&self) -> String;
    fn node(&self, text: &mut String, id: &str, label: &str, is_port: bool);
    fn edge(&self, text: &mut String, from: &str, to: &str, label: &str);
    fn end(&self) -> &'static str;
}

struct Dot;
struct Mermaid;

impl Dot {
    fn quoted(label: &str) -> String {
        let mut text = String::from("\"");
        for letter in label.chars() {
            match letter {
                '"' | '\\' => text.extend(['\\', letter]),
                '\n' => text.push_str("\\n"),
                letter if letter.is_control() => text.push('\u{fffd}'),
                letter => text.push(letter),
            }
        }
        text.push('"');
        text
    }
}

impl Language for Dot {
    fn begin(&self) -> String {
        "digraph model {\n  node [shape=box, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=10];\n".to_string()
    }

    fn node(&self, text: &mut String, id: &str, label: &str, is_port: bool) {
        let shape = if is_port { ", shape=ellipse" } else { "" };
        let _ = writeln!(text, "  {id} [label={}{shape}];", Dot::quoted(label));
    }

    fn edge(&self, text: &mut String, from: &str, to: &str, label: &str) {
        let _ = writeln!(text, "  {from} -> {to} [label={}];", Dot::quoted(label));
    }

    fn end(&self) -> &'static str {
        "}\n"
    }
}

impl Mermaid {
    /// Characters with a meaning in Mermaid or HTML are written as their codes.
    fn quoted(label: &str) -> String {
        let mut text = String::from("\"");
        for letter in label.chars() {
            match letter {
                '\n' => text.push_str("<br/>"),
                letter if letter.is_control() => text.push('\u{fffd}'),
                letter if letter.is_alphanumeric() || " ._-/:+*,()=".contains(letter) => text.push(letter),
                letter => _ = write!(text, "#{};", u32::from(letter)),
            }
        }
        text.push('"');
        text
    }
}

impl Language for Mermaid {
    fn begin(&self) -> String {
        "flowchart TD\n".to_string()
    }

    fn node(&self, text: &mut String, id: &str, label: &str, is_port: bool) {
        let (open, close) = if is_port { ("([", "])") } else { ("[", "]") };
        let _ = writeln!(text, "  {id}{open}{}{close}", Mermaid::quoted(label));
    }

    fn edge(&self, text: &mut String, from: &str, to: &str, label: &str) {
        match label {
            "" => _ = writeln!(text, "  {from} --> {to}"),
            label => _ = writeln!(text, "  {from} -->|{}| {to}", Mermaid::quoted(label)),
        }
    }

    fn end(&self) -> &'static str {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r#"<ir_version: 8, opset_import: ["" : 17]> g (float[n] x) => (float[n] "y\"]") {
        [first] a = Abs (x)
        [second] b = Neg (a)
        ["]-->evil"] c = Exp (b)
        "y\"]" = Log (c)
    }"#;

    fn drawing() -> Drawing {
        Drawing::of(&crate::ir::text::parse(SOURCE).unwrap())
    }

    #[test]
    fn a_neighbourhood_has_the_nodes_within_a_distance() {
        let drawing = drawing();
        let shown = |name: &str, depth| drawing.around(name, depth).map(|found| found.into_iter().collect::<Vec<_>>());
        assert_eq!(shown("second", 0), Ok(vec![1]));
        assert_eq!(shown("b", 1), Ok(vec![0, 1, 2]));
        assert_eq!(shown("x", 1), Ok(vec![0, 1]));
        assert_eq!(shown("secnod", 1).unwrap_err().nearest.as_deref(), Some("second"));
    }

    #[test]
    fn names_cannot_leave_their_quotes() {
        let drawing = drawing();
        let dot = drawing.text(DrawingForm::Dot, None, 0).unwrap();
        assert!(dot.contains("label=\"Exp\\n]-->evil\"") && dot.contains("label=\"y\\\"]\""), "{dot}");
        let mermaid = drawing.text(DrawingForm::Mermaid, None, 0).unwrap();
        assert!(
            mermaid.contains("n2[\"Exp<br/>#93;--#62;evil\"]") && mermaid.contains("([\"y#34;#93;\"])"),
            "{mermaid}"
        );
    }
}
