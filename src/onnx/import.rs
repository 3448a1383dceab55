//! From messages to the intermediate representation.
//!
//! What the representation has a place for is moved there. The rest of a message (documentation, metadata, device
//! configurations, training information, fields newer than the schema) is kept as wire bytes beside it, so that
//! `export` writes it back behind the fields it belongs with.

use bytes::Bytes;
use prost::Message;
use rustc_hash::{FxBuildHasher, FxHashMap};
use thiserror::Error;

use super::external::{DataFiles, ExternalError};
use super::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, SparseTensorProto,
    TensorProto, ValueInfoProto, attribute_proto,
};
use super::tensor::{self, Decoded, TensorProtoError};
use super::types::{self, joined, unknown_at};
use super::wire::{Descent, UnknownFields};
use crate::ir::{
    Attribute, Broken, Constant, DeclaredType, Extra, Function, GraphId, Model, NamedAttribute, NewNode, OpsetImport,
    ValueId,
};

/// How deeply graphs may be nested in each other.
const MAX_GRAPH_DEPTH: usize = 32;

/// A message that does not make a model.
#[derive(Debug, Error)]
#[error("{place}: {reason}")]
pub struct ImportError {
    /// What it is about: a node, a tensor, a graph.
    pub place: String,
    /// What is wrong with it.
    pub reason: ImportReason,
}

/// What is wrong with a part of a model.
#[derive(Debug, Error)]
pub enum ImportReason {
    /// It breaks a rule of the standard.
    #[error("{0}")]
    Malformed(String),
    /// Graphs in graphs, more than this deep.
    #[error("graphs are nested more than {0} deep")]
    TooDeep(usize),
    /// Its external data cannot be had.
    #[error(transparent)]
    External(ExternalError),
}

impl From<&str> for ImportReason {
    fn from(reason: &str) -> Self {
        ImportReason::Malformed(reason.to_string())
    }
}

impl From<String> for ImportReason {
    fn from(reason: String) -> Self {
        ImportReason::Malformed(reason)
    }
}

impl From<Broken> for ImportReason {
    fn from(broken: Broken) -> Self {
        ImportReason::Malformed(broken.to_string())
    }
}

impl From<TensorProtoError> for ImportReason {
    fn from(error: TensorProtoError) -> Self {
        match error {
            TensorProtoError::External(error) => ImportReason::External(error),
            error => ImportReason::Malformed(error.to_string()),
        }
    }
}

fn error(place: impl Into<String>, reason: impl Into<ImportReason>) -> ImportError {
    ImportError { place: place.into(), reason: reason.into() }
}

/// Makes a model of its messages.
///
/// # Errors
/// Names the place and the reason: a tensor whose size and content disagree, a value defined twice or not at all, graphs
/// nested too deeply, external data that cannot be had.
pub fn import(mut proto: ModelProto, unknown: &UnknownFields, files: &mut DataFiles) -> Result<Model, ImportError> {
    let graph = proto.graph.take().ok_or_else(|| error("model", "it has no graph"))?;
    let functions = std::mem::take(&mut proto.functions);
    let mut model = Model::new();
    // A version of 0 that is written out stays with what the representation has no place for: to ONNX Runtime, no version is
    // something else.
    model.ir_version = proto.ir_version.take_if(|version| *version != 0).unwrap_or_default();
    model.keeps_functions = !proto.training_info.is_empty();
    let imports = std::mem::take(&mut proto.opset_import);
    let mut pinned = training_names(&proto);
    let mut import = Import { model, unknown, files, path: Vec::new(), scopes: Vec::new() };
    import.model.opsets = import.opsets(imports, 8);
    import.model.extra = joined(proto.encode_to_vec().into(), unknown_at(unknown, &[]));
    let main = import.model.main();
    import.within(Descent { field: 7, index: 0 }, |import| import.graph(main, graph, 0))?;
    distinct(&functions)?;
    for (index, function) in (0u32..).zip(functions) {
        import.within(Descent { field: 25, index }, |import| import.function(function))?;
    }
    let mut model = import.model;
    pinned.extend(differentiated(&model));
    pin(&mut model, &pinned);
    model.verify().map_err(|broken| error("model", broken))?;
    Ok(model)
}

/// Checks that no call can mean two functions.
fn distinct(functions: &[FunctionProto]) -> Result<(), ImportError> {
    let mut known: FxHashMap<[&str; 3], &FunctionProto> = FxHashMap::default();
    for function in functions {
        let names = [&function.domain, &function.name, &function.overload];
        let key = names.map(|text| text.as_deref().unwrap_or_default());
        if known.insert(key, function).is_some_and(|other| other != function) {
            let place = format!("function '{}.{}'", key[0], key[1]);
            return Err(error(&place, "there are two of this name that compute differently; rename or remove one"));
        }
    }
    Ok(())
}

/// The names of main-graph values that training information refers to: it changes some and reads others.
fn training_names(proto: &ModelProto) -> Vec<String> {
    let mut names = Vec::new();
    for info in &proto.training_info {
        for entry in info.initialization_binding.iter().chain(&info.update_binding) {
            names.extend(entry.key.clone());
            names.extend(entry.value.clone());
        }
        let mut open: Vec<&GraphProto> = info.algorithm.iter().chain(&info.initialization).collect();
        while let Some(graph) = open.pop() {
            names.extend(graph.output.iter().filter_map(|output| output.name.clone()));
            for node in &graph.node {
                names.extend(node.input.iter().cloned());
                for attribute in &node.attribute {
                    open.extend(attribute.g.as_deref());
                    open.extend(&attribute.graphs);
                }
            }
        }
    }
    names
}

/// The names of values that Gradient nodes refer to in their attributes: what is differentiated, and by what.
fn differentiated(model: &Model) -> Vec<String> {
    let nodes = model.graphs().flat_map(|graph| model.graph(graph).nodes()).filter_map(|id| model.node(id));
    let gradients = nodes.filter(|node| node.op_type == "Gradient" && node.domain == "ai.onnx.preview.training");
    let named = gradients.flat_map(|node| ["xs", "zs", "y"].map(|attribute| node.attribute(attribute)));
    let mut names = Vec::new();
    for attribute in named.flatten() {
        let texts = match attribute {
            Attribute::String(text) => std::slice::from_ref(text),
            Attribute::Strings(texts) => texts,
            _ => &[],
        };
        names.extend(texts.iter().map(|text| String::from_utf8_lossy(text).into_owned()));
    }
    names
}

/// Keeps the values of these names from being removed or taken for constants.
fn pin(model: &mut Model, names: &[String]) {
    if names.is_empty() {
        return;
    }
    let names: FxHashMap<&str, ()> = names.iter().map(|name| (name.as_str(), ())).collect();
    let mut values: Vec<ValueId> = Vec::new();
    for graph in model.graphs().map(|graph| model.graph(graph)) {
        let nodes = graph.nodes().filter_map(|id| model.node(id)).flat_map(|node| node.outputs().iter().flatten());
        values.extend(graph.inputs().iter().chain(graph.initializers()).chain(nodes));
    }
    for value in values {
        if names.contains_key(model.value(value).name.as_str()) {
            model.value_mut(value).pinned = true;
        }
    }
}

struct Import<'a> {
    model: Model,
    unknown: &'a UnknownFields,
    files: &'a mut DataFiles,
    /// Where in the message tree the import is; kept only if there are unknown fields to find.
    path: Vec<Descent>,
    /// The values each open graph defines, innermost last.
    scopes: Vec<FxHashMap<String, ValueId>>,
}

impl Import<'_> {
    fn within<T>(
        &mut self,
        step: Descent,
        go: impl FnOnce(&mut Self) -> Result<T, ImportError>,
    ) -> Result<T, ImportError> {
        self.path.push(step);
        let result = go(self);
        self.path.pop();
        result
    }

    /// The unknown fields of the message at the current path.
    fn unknown_here(&self) -> Bytes {
        if self.unknown.is_empty() { Bytes::new() } else { unknown_at(self.unknown, &self.path) }
    }

    /// The unknown fields of the message one step below the current path.
    fn unknown_below(&mut self, field: u32, index: usize) -> Bytes {
        if self.unknown.is_empty() {
            return Bytes::new();
        }
        self.path.push(Descent { field, index: u32::try_from(index).unwrap_or(u32::MAX) });
        let found = unknown_at(self.unknown, &self.path);
        self.path.pop();
        found
    }

    fn opsets(&mut self, imports: Vec<OperatorSetIdProto>, field: u32) -> Vec<OpsetImport> {
        let import = |(index, import): (usize, OperatorSetIdProto)| OpsetImport {
            domain: import.domain.unwrap_or_default(),
            version: import.version.unwrap_or_default(),
            extra: self.unknown_below(field, index),
        };
        imports.into_iter().enumerate().map(import).collect()
    }

    fn value(&mut self, name: &str) -> Option<ValueId> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).copied()
    }

    /// A new value of the innermost graph.
    fn define(&mut self, name: &str, what: &dyn Fn() -> String) -> Result<ValueId, ImportError> {
        let value = self.model.add_value(name);
        let scope = self.scopes.last_mut().ok_or_else(|| error(what(), "no graph is open"))?;
        match scope.insert(name.to_string(), value) {
            None => Ok(value),
            Some(_) => Err(error(what(), format!("'{name}' is defined twice"))),
        }
    }

    /// The value a node reads. A name that nothing defines becomes a value without a definition, for the verifier to name.
    fn operand(&mut self, name: &str) -> ValueId {
        match self.value(name) {
            Some(value) => value,
            None => {
                let value = self.model.add_value(name);
                if let Some(scope) = self.scopes.last_mut() {
                    scope.insert(name.to_string(), value);
                }
                value
            }
        }
    }

    fn graph(&mut self, id: GraphId, mut proto: GraphProto, depth: usize) -> Result<(), ImportError> {
        let name = proto.name.take().unwrap_or_default();
        let place = format!("graph '{name}'");
        if depth > MAX_GRAPH_DEPTH {
            return Err(error(place, ImportReason::TooDeep(MAX_GRAPH_DEPTH)));
        }
        let results: usize = proto.node.iter().map(|node| node.output.len()).sum();
        let operands: usize = proto.node.iter().map(|node| node.input.len()).sum();
        let values = proto.input.len() + proto.initializer.len() + results;
        self.model.reserve(values, proto.node.len(), operands + results);
        self.scopes.push(FxHashMap::with_capacity_and_hasher(values, FxBuildHasher));
        for (index, input) in std::mem::take(&mut proto.input).into_iter().enumerate() {
            let name = input.name.clone().unwrap_or_default();
            if name.is_empty() {
                return Err(error(&place, format!("input {index} has no name")));
            }
            let value = self.define(&name, &|| place.clone())?;
            self.declare(value, input, 11, index);
            self.model.add_input(id, value).map_err(|broken| error(&place, broken))?;
        }
        // Of initializers of one name runtimes take the last.
        let initializers = std::mem::take(&mut proto.initializer);
        let names = initializers.iter().enumerate().map(|(index, tensor)| (tensor.name().to_string(), index));
        let last: FxHashMap<String, usize> = names.collect();
        for (index, tensor) in initializers.into_iter().enumerate() {
            if last.get(tensor.name()) == Some(&index) || tensor.name().is_empty() {
                self.initializer(id, tensor, index, &place)?;
            }
        }
        for (index, tensor) in std::mem::take(&mut proto.sparse_initializer).into_iter().enumerate() {
            self.sparse_initializer(id, tensor, index, &place)?;
        }
        let nodes = std::mem::take(&mut proto.node);
        self.nodes(id, nodes, 1, depth)?;
        for (index, output) in std::mem::take(&mut proto.output).into_iter().enumerate() {
            let name = output.name.clone().unwrap_or_default();
            if name.is_empty() {
                return Err(error(&place, format!("output {index} has no name")));
            }
            let value = self.operand(&name);
            self.declare(value, output, 12, index);
            self.model.add_output(id, value);
        }
        let mut homeless = Vec::new();
        for (index, info) in std::mem::take(&mut proto.value_info).into_iter().enumerate() {
            let name = info.name.as_deref().unwrap_or_default();
            match self.scopes.last().and_then(|scope| scope.get(name)).copied() {
                Some(value) => self.declare(value, info, 13, index),
                None => self.keep_homeless(info, &mut homeless),
            }
        }
        for annotation in &proto.quantization_annotation {
            let parameters = annotation.quant_parameter_tensor_names.iter().filter_map(|entry| entry.value.as_deref());
            for name in annotation.tensor_name.as_deref().into_iter().chain(parameters) {
                if let Some(value) = self.value(name) {
                    self.model.value_mut(value).pinned = true;
                }
            }
        }
        proto.value_info = homeless;
        let extra = joined(proto.encode_to_vec().into(), self.unknown_here());
        let graph = self.model.graph_mut(id);
        graph.name = name;
        graph.extra = extra;
        self.scopes.pop();
        Ok(())
    }

    /// Keeps what a `ValueInfoProto` says of a value that its graph does not have, unless another graph has one of the name: should that
    /// come here, it would be told of it. No other value will be given the name.
    fn keep_homeless(&mut self, info: ValueInfoProto, homeless: &mut Vec<ValueInfoProto>) {
        let name = info.name.as_deref().unwrap_or_default();
        if self.value(name).is_some() || !self.model.has_name(name) {
            self.model.reserve_name(name);
            homeless.push(info);
        }
    }

    /// Takes in what a `ValueInfoProto` says of a value. What an input's or an earlier message says is not replaced.
    fn declare(&mut self, value: ValueId, mut proto: ValueInfoProto, field: u32, index: usize) {
        let unknown = self.unknown_below(field, index);
        let ty = proto.r#type.take().and_then(|ty| types::declared(&ty));
        proto.name = None;
        let extra = joined(proto.encode_to_vec().into(), unknown);
        let place = self.model.value_mut(value);
        if place.declared.is_none() {
            place.declared = ty;
        }
        if place.extra.is_empty() {
            place.extra = extra;
        }
    }

    fn initializer(
        &mut self,
        graph: GraphId,
        proto: TensorProto,
        index: usize,
        place: &str,
    ) -> Result<(), ImportError> {
        let name = proto.name.clone().unwrap_or_default();
        if name.is_empty() {
            return Err(error(place, format!("initializer {index} has no name")));
        }
        let what = || format!("initializer '{name}'");
        let unknown = self.unknown_below(5, index);
        let constant = match tensor::take(&name, &proto, self.files).map_err(|reason| error(what(), reason))? {
            Decoded::Dense(tensor, origin, extra) => {
                Constant { origin, extra: joined(extra, unknown), ..Constant::dense(tensor) }
            }
            Decoded::Foreign => Constant {
                tensor: None,
                verbatim: Some(joined(proto.encode_to_vec().into(), unknown)),
                sparse: false,
                origin: None,
                extra: Extra::new(),
            },
        };
        self.constant(graph, &name, constant, proto.data_type.unwrap_or_default(), &proto.dims)
    }

    fn sparse_initializer(
        &mut self,
        graph: GraphId,
        proto: SparseTensorProto,
        index: usize,
        place: &str,
    ) -> Result<(), ImportError> {
        let name = proto.values.as_ref().and_then(|values| values.name.clone()).unwrap_or_default();
        if name.is_empty() {
            return Err(error(place, format!("sparse initializer {index} has no name")));
        }
        let sparse = tensor::take_sparse(&name, &proto, self.files);
        let sparse = sparse.map_err(|reason| error(format!("sparse initializer '{name}'"), reason))?;
        let unknown = self.unknown_below(15, index);
        let constant = Constant {
            tensor: sparse.as_ref().and_then(tensor::densify),
            verbatim: Some(joined(proto.encode_to_vec().into(), unknown)),
            sparse: true,
            origin: None,
            extra: Extra::new(),
        };
        let dtype = proto.values.as_ref().and_then(|values| values.data_type).unwrap_or_default();
        self.constant(graph, &name, constant, dtype, &proto.dims)
    }

    fn constant(
        &mut self,
        graph: GraphId,
        name: &str,
        constant: Constant,
        dtype: i32,
        dims: &[i64],
    ) -> Result<(), ImportError> {
        let known = self.scopes.last().and_then(|scope| scope.get(name)).copied();
        let value = match known {
            Some(value) => value,
            None => self.define(name, &|| "initializer".to_string())?,
        };
        if constant.tensor.is_none() && self.model.value(value).declared.is_none() {
            let dim = |&dim: &i64| crate::ir::DeclaredDim {
                claim: crate::ir::DimClaim::Value(dim.max(0)),
                extra: Extra::new(),
            };
            let shape = Some(dims.iter().map(dim).collect());
            self.model.declare(value, DeclaredType::Tensor { dtype, shape, extra: Extra::new() });
        }
        self.model
            .add_initializer(graph, value, constant)
            .map_err(|broken| error(format!("initializer '{name}'"), broken))
    }

    fn nodes(&mut self, graph: GraphId, nodes: Vec<NodeProto>, field: u32, depth: usize) -> Result<(), ImportError> {
        // A node may read what a later one computes: files out of order are put in order, so names come first.
        let mut results = Vec::with_capacity(nodes.len());
        for node in &nodes {
            let place = || describe(node);
            let mut outputs = Vec::with_capacity(node.output.len());
            for name in &node.output {
                outputs.push(if name.is_empty() { None } else { Some(self.define(name, &place)?) });
            }
            results.push(outputs);
        }
        for ((index, node), outputs) in nodes.into_iter().enumerate().zip(results) {
            let step = Descent { field, index: u32::try_from(index).unwrap_or(u32::MAX) };
            self.within(step, |import| import.node(graph, node, outputs, depth))?;
        }
        Ok(())
    }

    fn node(
        &mut self,
        graph: GraphId,
        mut proto: NodeProto,
        outputs: Vec<Option<ValueId>>,
        depth: usize,
    ) -> Result<(), ImportError> {
        // ONNX Runtime passes over nodes that are nothing at all.
        let computes = proto.output.iter().any(|name| !name.is_empty());
        if computes && proto.op_type.as_deref().unwrap_or_default().is_empty() {
            return Err(error(describe(&proto), "it names no operator"));
        }
        let inputs = std::mem::take(&mut proto.input);
        let inputs = inputs.iter().map(|name| (!name.is_empty()).then(|| self.operand(name))).collect();
        let given = std::mem::take(&mut proto.attribute);
        let place = || describe(&proto);
        let mut attributes: Vec<NamedAttribute> = Vec::with_capacity(given.len());
        for (index, attribute) in (0u32..).zip(given) {
            let step = Descent { field: 5, index };
            attributes.push(self.within(step, |import| import.attribute(attribute, &place, depth))?);
        }
        for (i, attribute) in attributes.iter().enumerate() {
            if attributes.iter().take(i).any(|other| other.name == attribute.name) {
                return Err(error(place(), format!("attribute '{}' is given twice", attribute.name)));
            }
        }
        proto.output.clear();
        let node = NewNode {
            name: proto.name.take().unwrap_or_default(),
            domain: proto.domain.take().unwrap_or_default(),
            op_type: proto.op_type.take().unwrap_or_default(),
            overload: proto.overload.take().unwrap_or_default(),
            attributes,
            inputs,
            outputs,
            extra: joined(proto.encode_to_vec().into(), self.unknown_here()),
        };
        self.model.add_node(graph, node).map_err(|broken| error("a node", broken))?;
        Ok(())
    }

    fn attribute(
        &mut self,
        mut proto: AttributeProto,
        place: &dyn Fn() -> String,
        depth: usize,
    ) -> Result<NamedAttribute, ImportError> {
        let name = proto.name.take().unwrap_or_default();
        let at = || format!("{}, attribute '{name}'", place());
        let doc = proto.doc_string.take();
        let extra = match doc {
            None => Extra::new(),
            Some(_) => AttributeProto { doc_string: doc, ..AttributeProto::default() }.encode_to_vec().into(),
        };
        let extra = joined(extra, self.unknown_here());
        if let Some(reference) = proto.ref_attr_name.take().filter(|name| !name.is_empty()) {
            let kind = proto.r#type.unwrap_or_default();
            return Ok(NamedAttribute { value: Attribute::Reference { name: reference, kind }, name, extra });
        }
        let value = match self.attribute_value(&mut proto, &at, depth)? {
            Some(value) => value,
            None => {
                proto.name = Some(name.clone());
                Attribute::Opaque(proto.encode_to_vec().into())
            }
        };
        Ok(NamedAttribute { name, value, extra })
    }

    /// The value an attribute holds, or `None` when it is of a kind or data type this program does not know.
    fn attribute_value(
        &mut self,
        proto: &mut AttributeProto,
        at: &dyn Fn() -> String,
        depth: usize,
    ) -> Result<Option<Attribute>, ImportError> {
        use attribute_proto::AttributeType as Kind;
        let lacks = |what: &str| error(at(), format!("it is of type {what} but holds none"));
        let kind = match proto.r#type.unwrap_or_default() {
            0 => implied_kind(proto),
            number => Kind::try_from(number).ok(),
        };
        let Some(kind) = kind else { return Ok(None) };
        Ok(Some(match kind {
            Kind::Undefined => return Ok(None),
            Kind::Float => Attribute::Float(proto.f.unwrap_or_default()),
            Kind::Int => Attribute::Int(proto.i.unwrap_or_default()),
            Kind::String => Attribute::String(proto.s.take().unwrap_or_default()),
            Kind::Floats => Attribute::Floats(std::mem::take(&mut proto.floats)),
            Kind::Ints => Attribute::Ints(std::mem::take(&mut proto.ints)),
            Kind::Strings => Attribute::Strings(std::mem::take(&mut proto.strings)),
            Kind::Tensor => {
                let tensor = proto.t.as_deref().ok_or_else(|| lacks("TENSOR"))?;
                let unknown = self.unknown_below(5, 0);
                match self.attribute_tensor(tensor, &at())? {
                    Some((tensor, extra)) => Attribute::Tensor(tensor, joined(extra, unknown)),
                    None => return Ok(None),
                }
            }
            Kind::Tensors => {
                let mut tensors = Vec::with_capacity(proto.tensors.len());
                for (index, tensor) in proto.tensors.iter().enumerate() {
                    let unknown = self.unknown_below(10, index);
                    match self.attribute_tensor(tensor, &at())? {
                        Some((tensor, extra)) => tensors.push((tensor, joined(extra, unknown))),
                        None => return Ok(None),
                    }
                }
                Attribute::Tensors(tensors)
            }
            Kind::SparseTensor => {
                let sparse = proto.sparse_tensor.as_ref().ok_or_else(|| lacks("SPARSE_TENSOR"))?;
                let at = at();
                match tensor::take_sparse(&at, sparse, self.files).map_err(|reason| error(at, reason))? {
                    Some(sparse) => Attribute::SparseTensor(Box::new(sparse)),
                    None => return Ok(None),
                }
            }
            Kind::SparseTensors => {
                let mut tensors = Vec::with_capacity(proto.sparse_tensors.len());
                for sparse in &proto.sparse_tensors {
                    let at = at();
                    match tensor::take_sparse(&at, sparse, self.files).map_err(|reason| error(at, reason))? {
                        Some(sparse) => tensors.push(sparse),
                        None => return Ok(None),
                    }
                }
                Attribute::SparseTensors(tensors)
            }
            Kind::Graph => {
                let graph = proto.g.take().ok_or_else(|| lacks("GRAPH"))?;
                Attribute::Graph(self.subgraph(*graph, Descent { field: 6, index: 0 }, depth)?)
            }
            Kind::Graphs => {
                let mut graphs = Vec::with_capacity(proto.graphs.len());
                for (index, graph) in (0u32..).zip(std::mem::take(&mut proto.graphs)) {
                    graphs.push(self.subgraph(graph, Descent { field: 11, index }, depth)?);
                }
                Attribute::Graphs(graphs)
            }
            Kind::TypeProto => {
                let ty = proto.tp.as_deref().ok_or_else(|| lacks("TYPE_PROTO"))?;
                match types::declared(ty) {
                    Some(ty) => Attribute::Type(ty),
                    None => return Ok(None),
                }
            }
            Kind::TypeProtos => match proto.type_protos.iter().map(types::declared).collect() {
                Some(types) => Attribute::Types(types),
                None => return Ok(None),
            },
        }))
    }

    fn subgraph(&mut self, proto: GraphProto, step: Descent, depth: usize) -> Result<GraphId, ImportError> {
        let graph = self.model.add_graph("", None);
        self.within(step, |import| import.graph(graph, proto, depth + 1))?;
        Ok(graph)
    }

    fn attribute_tensor(
        &mut self,
        proto: &TensorProto,
        at: &str,
    ) -> Result<Option<(crate::tensor::Tensor, Extra)>, ImportError> {
        Ok(match tensor::take(at, proto, self.files).map_err(|reason| error(at, reason))? {
            Decoded::Dense(tensor, _, extra) => {
                let named = TensorProto { name: proto.name.clone(), ..TensorProto::default() };
                Some((tensor, joined(extra, named.encode_to_vec().into())))
            }
            Decoded::Foreign => None,
        })
    }

    fn function(&mut self, mut proto: FunctionProto) -> Result<(), ImportError> {
        let name = proto.name.take().unwrap_or_default();
        let place = format!("function '{name}'");
        let body = self.model.add_graph(&name, None);
        self.scopes.clear();
        self.scopes.push(FxHashMap::default());
        for input in std::mem::take(&mut proto.input) {
            let value = self.define(&input, &|| place.clone())?;
            self.model.add_input(body, value).map_err(|broken| error(&place, broken))?;
        }
        let nodes = std::mem::take(&mut proto.node);
        self.nodes(body, nodes, 7, 0)?;
        for output in std::mem::take(&mut proto.output) {
            let value = self.operand(&output);
            self.model.add_output(body, value);
        }
        let mut homeless = Vec::new();
        for (index, info) in std::mem::take(&mut proto.value_info).into_iter().enumerate() {
            match self.value(info.name.as_deref().unwrap_or_default()) {
                Some(value) => self.declare(value, info, 12, index),
                None => self.keep_homeless(info, &mut homeless),
            }
        }
        proto.value_info = homeless;
        let mut defaults = Vec::new();
        for (index, attribute) in (0u32..).zip(std::mem::take(&mut proto.attribute_proto)) {
            let step = Descent { field: 11, index };
            defaults.push(self.within(step, |import| import.attribute(attribute, &|| place.clone(), 0))?);
        }
        let imports = std::mem::take(&mut proto.opset_import);
        let opsets = self.opsets(imports, 9);
        let function = Function {
            name,
            domain: proto.domain.take().unwrap_or_default(),
            overload: proto.overload.take().unwrap_or_default(),
            body,
            attributes: std::mem::take(&mut proto.attribute),
            defaults,
            opsets,
            extra: joined(proto.encode_to_vec().into(), self.unknown_here()),
        };
        self.model.add_function(function);
        Ok(())
    }
}

/// How messages name a node that is being read.
fn describe(node: &NodeProto) -> String {
    let operator = node.op_type.as_deref().unwrap_or("unnamed");
    match node.name.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => format!("{operator} node '{name}'"),
        None => format!("{operator} node that computes '{}'", node.output.first().map_or("", String::as_str)),
    }
}

/// The kind of an attribute in a file of IR version 1, which does not say it: the field that is present decides.
fn implied_kind(proto: &AttributeProto) -> Option<attribute_proto::AttributeType> {
    use attribute_proto::AttributeType as Kind;
    let present = [
        (proto.f.is_some(), Kind::Float),
        (proto.i.is_some(), Kind::Int),
        (proto.s.is_some(), Kind::String),
        (proto.t.is_some(), Kind::Tensor),
        (proto.g.is_some(), Kind::Graph),
        (!proto.floats.is_empty(), Kind::Floats),
        (!proto.ints.is_empty(), Kind::Ints),
        (!proto.strings.is_empty(), Kind::Strings),
        (!proto.tensors.is_empty(), Kind::Tensors),
        (!proto.graphs.is_empty(), Kind::Graphs),
    ];
    present.into_iter().find(|(present, _)| *present).map(|(_, kind)| kind)
}
