//! Prints models as text.

use std::fmt::Write as _;

use rustc_hash::FxHashSet;

use super::literal::{codes, quote, quote_plainly, shown};
use crate::ir::{
    Attribute, DeclaredDim, DeclaredType, Definition, DimClaim, Function, GraphId, Model, NamedAttribute, Node,
    OpsetImport, ValueId,
};
use crate::tensor::{DType, Tensor};

/// Prints the model with all declared types.
pub fn print(model: &Model) -> String {
    print_with(model, &|_| true)
}

/// Prints the model; types of intermediate values are listed only if `declares` returns `true`.
pub fn print_with(model: &Model, declares: &dyn Fn(ValueId) -> bool) -> String {
    print_as(model, declares, Form::Listed, &[])
}

/// The form of the text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Types in a list before the nodes, long constants truncated: for tests.
    Listed,
    /// Text for the standard's parser: types in comments after the nodes. Constants of more than a few elements are
    /// replaced by their hash.
    Beside,
    /// Text for the standard's parser with all data and a list of types, so that it is the complete model.
    Full,
}

/// Prints the model for readers and the standard's parser. `heading` contains keys and printed values of the model's
/// properties.
pub fn print_for_parser(model: &Model, heading: &[(&str, String)], is_full: bool) -> String {
    let form = if is_full { Form::Full } else { Form::Beside };
    print_as(model, &|_| is_full, form, heading)
}

/// Prints a node, on one line if it has no subgraph.
pub fn node_text(model: &Model, node: &Node) -> String {
    let mut printer = Printer { model, declares: &|_| false, form: Form::Listed, text: String::new() };
    printer.node(node, 1);
    printer.text
}

/// Prints the value of an attribute that is not a graph.
pub fn attribute_text(model: &Model, value: &Attribute) -> String {
    let mut printer = Printer { model, declares: &|_| false, form: Form::Listed, text: String::new() };
    let held =
        NamedAttribute { name: crate::ir::Name::default(), value: value.clone(), extra: crate::ir::Extra::new() };
    printer.attribute(&held, 1);
    // The attribute has an empty name here.
    printer.text.strip_prefix("\"\": ").unwrap_or(&printer.text).to_string()
}

fn print_as(model: &Model, declares: &dyn Fn(ValueId) -> bool, form: Form, heading: &[(&str, String)]) -> String {
    let mut printer = Printer { model, declares, form, text: String::new() };
    let _ = write!(printer.text, "<\n   ir_version: {},\n   opset_import: {}", model.ir_version, opsets(&model.opsets));
    for (key, value) in heading {
        let _ = write!(printer.text, ",\n   {key}: {value}");
    }
    printer.text.push_str("\n>\n");
    printer.graph(model.main(), 0, true);
    printer.text.push('\n');
    for (_, function) in model.functions() {
        printer.function(function);
    }
    printer.text
}

struct Printer<'a> {
    model: &'a Model,
    declares: &'a dyn Fn(ValueId) -> bool,
    form: Form,
    text: String,
}

fn opsets(imports: &[OpsetImport]) -> String {
    let list: Vec<String> =
        imports.iter().map(|import| format!("{} : {}", quote(import.domain.as_bytes()), import.version)).collect();
    format!("[{}]", list.join(", "))
}

/// Prints a name, quoted if it is not an identifier.
fn name(text: &str) -> String {
    let word = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if word { text.to_string() } else { quote(text.as_bytes()) }
}

/// Prints the prefix of an operator outside the default domain. The parts of a domain are names.
fn prefix(domain: &str) -> String {
    let parts = if domain.is_empty() { None } else { Some(domain.split('.')) };
    parts.into_iter().flatten().map(|part| format!("{}.", name(part))).collect()
}

fn dims(shape: &[DeclaredDim]) -> String {
    let dim = |dim: &DeclaredDim| match &dim.claim {
        DimClaim::Unknown => "?".to_string(),
        DimClaim::Value(size) => size.to_string(),
        DimClaim::Param(text) => name(text),
    };
    shape.iter().map(dim).collect::<Vec<_>>().join(",")
}

fn tensor_type(dtype: i32, shape: Option<&Vec<DeclaredDim>>) -> String {
    let dtype = DType::from_onnx(dtype).map_or_else(|| format!("type{dtype}"), |dtype| dtype.name().to_string());
    match shape {
        None => format!("{dtype}[]"),
        Some(shape) if shape.is_empty() => dtype,
        Some(shape) => format!("{dtype}[{}]", dims(shape)),
    }
}

/// Prints a type.
pub fn type_text(ty: &DeclaredType) -> String {
    let inner = |ty: &Option<Box<DeclaredType>>| ty.as_deref().map_or_else(|| "?".to_string(), type_text);
    match ty {
        DeclaredType::Tensor { dtype, shape, .. } => tensor_type(*dtype, shape.as_ref()),
        DeclaredType::SparseTensor { dtype, shape, .. } => {
            format!("sparse_tensor({})", tensor_type(*dtype, shape.as_ref()))
        }
        DeclaredType::Sequence { elem, .. } => format!("seq({})", inner(elem)),
        DeclaredType::Optional { elem, .. } => format!("optional({})", inner(elem)),
        DeclaredType::Map { key, value, .. } => {
            format!("map({}, {})", tensor_type(*key, Some(&Vec::new())), inner(value))
        }
        DeclaredType::Opaque(_) => "opaque".to_string(),
    }
}

/// Prints the type of a tensor.
pub fn tensor_text(tensor: &Tensor) -> String {
    let shape: Vec<String> = tensor.shape().iter().map(usize::to_string).collect();
    let shape = if shape.is_empty() { String::new() } else { format!("[{}]", shape.join(",")) };
    format!("{}{shape}", tensor.dtype().name())
}

impl Printer<'_> {
    fn typed(&self, value: ValueId) -> String {
        let place = self.model.value(value);
        match &place.declared {
            Some(ty) => format!("{} {}", type_text(ty), name(&place.name)),
            None => name(&place.name),
        }
    }

    fn list(&self, values: &[ValueId]) -> String {
        values.iter().map(|&value| self.typed(value)).collect::<Vec<_>>().join(", ")
    }

    fn graph(&mut self, id: GraphId, depth: usize, outermost: bool) {
        let model = self.model;
        let graph = model.graph(id);
        let inputs = self.list(graph.inputs());
        let outputs = self.list(graph.outputs());
        let graph_name = if graph.name.is_empty() { "g".to_string() } else { name(&graph.name) };
        let _ = write!(self.text, "{graph_name} ({inputs}) => ({outputs}) ");
        let mut declared: Vec<(String, String)> = Vec::new();
        for &value in graph.initializers() {
            let place = model.value(value);
            declared.push(match place.tensor() {
                Some(tensor) if self.is_cut(tensor) => {
                    (format!("{} {}", tensor_text(tensor), name(&place.name)), self.data_comment(tensor))
                }
                Some(tensor) => {
                    let text = format!("{} {} = {}", tensor_text(tensor), name(&place.name), self.data(tensor));
                    (text, self.data_comment(tensor))
                }
                None => (self.typed(value), String::new()),
            });
            // A file may declare the type of a constant.
            let is_said = place.declared.is_some() && matches!(place.definition(), Definition::Initializer(_));
            if self.form == Form::Full && place.tensor().is_some() && is_said {
                declared.push((self.typed(value), String::new()));
            }
        }
        let order = model.topological(id).unwrap_or_else(|_| graph.nodes().collect());
        let told: FxHashSet<ValueId> = graph.outputs().iter().copied().collect();
        for node in order.iter().filter_map(|&node| model.node(node)) {
            for &value in node.outputs().iter().flatten() {
                if model.value(value).declared.is_some() && !told.contains(&value) && (self.declares)(value) {
                    declared.push((self.typed(value), String::new()));
                }
            }
        }
        let indent = "   ".repeat(depth + 1);
        let close = "   ".repeat(depth);
        if !declared.is_empty() {
            let last = declared.len() - 1;
            let _ = write!(self.text, "\n{indent}<");
            for (i, (text, comment)) in declared.iter().enumerate() {
                self.text.push_str(text);
                match (i == last, comment.is_empty()) {
                    (true, true) => {}
                    (true, false) => _ = write!(self.text, "  # {comment}\n{indent} "),
                    (false, true) => _ = write!(self.text, ",\n{indent} "),
                    (false, false) => _ = write!(self.text, ",  # {comment}\n{indent} "),
                }
            }
            let _ = write!(self.text, ">\n{close}");
        } else if outermost {
            self.text.push('\n');
        }
        self.text.push_str("{\n");
        for node in order.iter().filter_map(|&node| model.node(node)) {
            self.text.push_str(&indent);
            self.node(node, depth + 1);
            self.node_comment(node);
            self.text.push('\n');
        }
        let _ = write!(self.text, "{close}}}");
    }

    /// Returns `true` if the elements are not printed.
    fn is_cut(&self, tensor: &Tensor) -> bool {
        self.form == Form::Beside && tensor.len() > FEW
    }

    fn data(&self, tensor: &Tensor) -> String {
        match self.form {
            Form::Listed => shown(tensor),
            Form::Beside | Form::Full => codes(tensor),
        }
    }

    /// Describes data that is not printed, or not as numbers.
    fn data_comment(&self, tensor: &Tensor) -> String {
        let has_codes = matches!(tensor.dtype().bits(), Some(..16)) && tensor.dtype() != DType::Bool
            || matches!(tensor.dtype(), DType::Float16 | DType::Bfloat16);
        match self.form {
            Form::Listed => String::new(),
            _ if self.is_cut(tensor) => format!("{} bytes, hash {:016x}", tensor.byte_len(), tensor.hash_content()),
            Form::Beside if has_codes && !matches!(tensor.dtype(), DType::Int8 | DType::Uint8) => {
                format!("values {}", shown(tensor))
            }
            _ => String::new(),
        }
    }

    /// Prints the types of a node's results, and parts that the syntax cannot express.
    fn node_comment(&mut self, node: &Node) {
        if self.form == Form::Listed {
            return;
        }
        let place = |value: ValueId| self.model.value(value);
        let results = node.outputs().iter().flatten();
        let mut told: Vec<String> =
            results.filter_map(|&value| place(value).declared.as_ref()).map(type_text).collect();
        for held in &node.attributes {
            match &held.value {
                Attribute::Tensor(tensor, _) => {
                    told.push(self.data_comment(tensor));
                }
                value if !has_text(value) => told.push(format!("'{}' has no text form", held.name)),
                _ => {}
            }
        }
        told.retain(|text| !text.is_empty());
        if !told.is_empty() {
            let comment = told.join("; ").replace('\n', " ");
            let _ = write!(self.text, "  # {comment}");
        }
    }

    fn names(&self, values: &[Option<ValueId>]) -> String {
        let one = |value: &Option<ValueId>| {
            value.map_or_else(|| "\"\"".to_string(), |value| name(&self.model.value(value).name))
        };
        values.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    fn node(&mut self, node: &Node, depth: usize) {
        if !node.name.is_empty() {
            let _ = write!(self.text, "[{}] ", name(&node.name));
        }
        let overload = if node.overload.is_empty() { String::new() } else { format!(":{}", name(&node.overload)) };
        let (outputs, inputs) = (self.names(node.outputs()), self.names(node.inputs()));
        let _ = write!(self.text, "{outputs} = {}{}{overload}", prefix(&node.domain), name(&node.op_type));
        let is_told = |held: &&NamedAttribute| self.form == Form::Listed || has_text(&held.value);
        let (graphs, mut plain): (Vec<_>, Vec<_>) =
            node.attributes.iter().filter(is_told).partition(|held| !held.value.graphs().is_empty());
        // The standard's parser accepts one list of attributes.
        if self.form != Form::Listed && !plain.is_empty() {
            plain.extend(graphs);
            self.attributes(&plain, depth);
            let _ = write!(self.text, " ({inputs})");
            return;
        }
        self.attributes(&plain, depth);
        let _ = write!(self.text, " ({inputs})");
        self.attributes(&graphs, depth);
    }

    fn attributes(&mut self, list: &[&NamedAttribute], depth: usize) {
        if list.is_empty() {
            return;
        }
        self.text.push_str(" <");
        for (i, held) in list.iter().enumerate() {
            if i > 0 {
                self.text.push_str(", ");
            }
            self.attribute(held, depth);
        }
        self.text.push('>');
    }

    fn attribute(&mut self, held: &NamedAttribute, depth: usize) {
        let plainly = self.form != Form::Listed;
        let float = |value: f32| match float(value) {
            text if plainly => text.replace("NaN", "nan"),
            text => text,
        };
        let quote = |bytes: &[u8]| if plainly { quote_plainly(bytes) } else { quote(bytes) };
        let floats = |values: &[f32]| values.iter().map(|value| float(*value)).collect::<Vec<_>>().join(", ");
        let ints = |values: &[i64]| values.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        let whole = |tensor: &Tensor| match self.is_cut(tensor) {
            true => format!("{} {{}}", tensor_text(tensor)),
            false => format!("{} {}", tensor_text(tensor), self.data(tensor)),
        };
        let (kind, value) = match &held.value {
            Attribute::Float(value) => ("float", float(*value)),
            Attribute::Int(value) => ("int", value.to_string()),
            Attribute::String(value) => ("string", quote(value)),
            Attribute::Tensor(tensor, _) => ("tensor", whole(tensor)),
            Attribute::Floats(values) => ("floats", format!("[{}]", floats(values))),
            Attribute::Ints(values) => ("ints", format!("[{}]", ints(values))),
            Attribute::Strings(values) => {
                ("strings", format!("[{}]", values.iter().map(|value| quote(value)).collect::<Vec<_>>().join(", ")))
            }
            Attribute::Tensors(values) => (
                "tensors",
                format!("[{}]", values.iter().map(|(tensor, _)| whole(tensor)).collect::<Vec<_>>().join(", ")),
            ),
            Attribute::Type(ty) => ("type_proto", type_text(ty)),
            Attribute::Types(types) => {
                ("type_protos", format!("[{}]", types.iter().map(type_text).collect::<Vec<_>>().join(", ")))
            }
            Attribute::Graph(graph) => {
                let _ = write!(self.text, "{}: graph = ", name(&held.name));
                return self.graph(*graph, depth, false);
            }
            Attribute::Graphs(graphs) => {
                let _ = write!(self.text, "{}: graphs = [", name(&held.name));
                for (i, graph) in graphs.iter().enumerate() {
                    if i > 0 {
                        self.text.push_str(", ");
                    }
                    self.graph(*graph, depth, false);
                }
                self.text.push(']');
                return;
            }
            Attribute::Reference { name: of, kind } => (kind_name(*kind), format!("@{}", name(of))),
            Attribute::SparseTensor(sparse) => ("sparse_tensor", format!("{} values", sparse.values.len())),
            Attribute::SparseTensors(list) => ("sparse_tensors", format!("{} tensors", list.len())),
            Attribute::Opaque(bytes) => ("opaque", format!("{} bytes", bytes.len())),
        };
        let _ = write!(self.text, "{}: {kind} = {value}", name(&held.name));
    }

    fn function(&mut self, function: &Function) {
        let model = self.model;
        let body = model.graph(function.body);
        let overload = if function.overload.is_empty() {
            String::new()
        } else {
            format!(",\n  overload: {}", quote(function.overload.as_bytes()))
        };
        let _ = write!(
            self.text,
            "<\n  domain: {},\n  opset_import: {}{overload}\n>\n{} ",
            quote(function.domain.as_bytes()),
            opsets(&function.opsets),
            name(&function.name)
        );
        let mut attributes: Vec<String> = function.attributes.iter().map(|held| name(held)).collect();
        for held in &function.defaults {
            let mut printer = Printer { model, declares: self.declares, form: self.form, text: String::new() };
            printer.attribute(held, 1);
            attributes.push(printer.text);
        }
        if !attributes.is_empty() {
            let _ = write!(self.text, "<{}>", attributes.join(", "));
        }
        let plain = |values: &[ValueId]| {
            values.iter().map(|&value| name(&model.value(value).name)).collect::<Vec<_>>().join(", ")
        };
        let _ = writeln!(self.text, "({}) => ({})\n{{", plain(body.inputs()), plain(body.outputs()));
        let order = model.topological(function.body).unwrap_or_else(|_| body.nodes().collect());
        for node in order.iter().filter_map(|&node| model.node(node)) {
            self.text.push_str("   ");
            self.node(node, 1);
            self.node_comment(node);
            self.text.push('\n');
        }
        self.text.push_str("}\n");
    }
}

/// Larger constants are replaced by their hash.
const FEW: usize = 16;

/// Returns `true` if the syntax has a form for an attribute's value.
fn has_text(value: &Attribute) -> bool {
    !matches!(value, Attribute::SparseTensor(_) | Attribute::SparseTensors(_) | Attribute::Opaque(_))
}

/// Prints a float so that it is parsed as one: with a point or an exponent.
fn float(value: f32) -> String {
    let text = value.to_string();
    if value.is_finite() && !text.contains(['.', 'e']) { format!("{text}.0") } else { text }
}

/// The attribute kinds in the order of their numbers in the standard.
const KINDS: [&str; 15] = [
    "undefined",
    "float",
    "int",
    "string",
    "tensor",
    "graph",
    "floats",
    "ints",
    "strings",
    "tensors",
    "graphs",
    "sparse_tensor",
    "sparse_tensors",
    "type_proto",
    "type_protos",
];

fn kind_name(kind: i32) -> &'static str {
    usize::try_from(kind).ok().and_then(|kind| KINDS.get(kind)).copied().unwrap_or("undefined")
}

/// Returns the number of an attribute kind; 0 for an unknown name.
pub(super) fn kind_number(name: &str) -> i32 {
    (0i32..).zip(KINDS).find(|(_, kind)| *kind == name).map_or(0, |(number, _)| number)
}
