//! Converts messages to the intermediate representation.
//!
//! Fields that the representation models are moved there. The rest of a message (documentation, metadata, device
//! configurations, training information, fields newer than the schema) is kept as wire bytes. `export` appends these
//! bytes to the message that they belong to.

use bytes::Bytes;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use thiserror::Error;

use super::external::{DataFiles, ExternalError};
use super::parts::{ModelParts, NodeParts, results_in_file};
use super::proto::{
    FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, SparseTensorProto, TensorAnnotation,
    TensorProto, ValueInfoProto,
};
use super::rest::with_unknown;
use super::tensor::{self, Decoded, TensorProtoError};
use super::types::{self, joined, unknown_at};
use super::wire::{Descent, UnknownFields};
use crate::ir::{
    Annotation, Broken, ByName, Constant, DeclaredType, Extra, Function, GraphId, Model, Name, NamedAttribute, NewNode,
    OpsetImport, ValueId,
};
use missing::missing;
use training::{differentiated, pin, training_names};

mod attribute;
mod missing;
mod training;

/// The largest nesting depth of graphs.
const MAX_GRAPH_DEPTH: usize = 32;

/// An error for messages that do not form a valid model.
#[derive(Debug, Error)]
#[error("{place}: {reason}")]
pub struct ImportError {
    /// The faulty part: a node, a tensor, a graph.
    pub place: String,
    /// The reason.
    pub reason: ImportReason,
}

/// The reason why a part of a model is invalid.
#[derive(Debug, Error)]
pub enum ImportReason {
    /// The part violates the standard.
    #[error("{0}")]
    Malformed(String),
    /// Graphs are nested deeper than this limit.
    #[error("graphs are nested more than {0} deep")]
    TooDeep(usize),
    /// The external data cannot be read.
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

/// Builds a model from its messages.
///
/// # Errors
/// Contains the place and the reason: size and content of a tensor disagree, a value has no or two definitions,
/// graphs are nested too deeply, or external data cannot be read.
pub fn import(proto: ModelProto, unknown: &UnknownFields, files: &mut DataFiles) -> Result<Model, ImportError> {
    import_parts(proto.into(), unknown, files)
}

/// Builds a model whose main graph's nodes are separate from its messages.
///
/// # Errors
/// The errors of [`import`].
pub fn import_parts(parts: ModelParts, unknown: &UnknownFields, files: &mut DataFiles) -> Result<Model, ImportError> {
    let ModelParts { model: mut proto, nodes, value_info } = parts;
    let graph = proto.graph.take().ok_or_else(|| error("model", "it has no graph"))?;
    let functions = std::mem::take(&mut proto.functions);
    let mut model = Model::new();
    // An explicit version of 0 is kept with the unmodelled fields: ONNX Runtime distinguishes it from an absent
    // version.
    model.ir_version = proto.ir_version.take_if(|version| *version != 0).unwrap_or_default();
    model.keeps_functions = !proto.training_info.is_empty();
    let imports = std::mem::take(&mut proto.opset_import);
    let mut pinned = training_names(&proto);
    let mut import =
        Import { model, unknown, files, path: Vec::new(), scopes: Vec::new(), homeless: FxHashSet::default() };
    import.model.opsets = import.opsets(imports, 8);
    import.model.extra = import.rest(proto.encode_to_vec());
    let main = import.model.main();
    import.within(Descent { field: 7, index: 0 }, |import| import.graph(main, graph, (&nodes, &value_info), 0))?;
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

/// Checks that each function has one definition.
fn distinct(functions: &[FunctionProto]) -> Result<(), ImportError> {
    let mut known: FxHashMap<[&str; 3], &FunctionProto> = FxHashMap::default();
    for function in functions {
        let names = [&function.domain, &function.name, &function.overload];
        let key = names.map(|text| text.as_deref().unwrap_or_default());
        if known.insert(key, function).is_some_and(|other| other != function) {
            let place = format!("function '{}.{}'", key[0], key[1]);
            return Err(error(&place, "two functions of this name differ; rename or remove one"));
        }
    }
    Ok(())
}

struct Import<'a> {
    model: Model,
    unknown: &'a UnknownFields,
    files: &'a mut DataFiles,
    /// The path of the current message; tracked only if there are unknown fields.
    path: Vec<Descent>,
    /// The values that each open graph defines, innermost last.
    scopes: Vec<ByName>,
    /// Names that occur only in a `ValueInfoProto`.
    homeless: FxHashSet<String>,
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

    /// Returns the rest of the current message as wire bytes, with the unknown fields of the message and of all
    /// nested messages.
    fn rest(&self, encoded: Vec<u8>) -> Extra {
        if self.unknown.is_empty() { encoded.into() } else { with_unknown(encoded, self.unknown, &self.path) }
    }

    /// Returns the rest of a message one step below the current path.
    fn rest_below(&mut self, field: u32, index: usize, encoded: Vec<u8>) -> Extra {
        self.path.push(Descent { field, index: u32::try_from(index).unwrap_or(u32::MAX) });
        let rest = self.rest(encoded);
        self.path.pop();
        rest
    }

    /// Returns the unknown fields of the current message.
    fn unknown_here(&self) -> Bytes {
        if self.unknown.is_empty() { Bytes::new() } else { unknown_at(self.unknown, &self.path) }
    }

    /// Returns the unknown fields of a message one step below the current path.
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
        self.scopes.iter().rev().find_map(|scope| self.value_in(scope, name))
    }

    fn value_in(&self, scope: &ByName, name: &str) -> Option<ValueId> {
        scope.get(name, |value| &self.model.value(value).name).map(|(value, _)| value)
    }

    /// Returns the value of this name in the innermost graph.
    fn own_value(&self, name: &str) -> Option<ValueId> {
        self.scopes.last().and_then(|scope| self.value_in(scope, name))
    }

    /// Adds a value to the innermost graph.
    fn define(&mut self, name: &str, what: &dyn Fn() -> String) -> Result<ValueId, ImportError> {
        let value = self.model.add_value(name);
        let scope = self.scopes.last_mut().ok_or_else(|| error(what(), "no graph is open"))?;
        match scope.insert(name, value, |value| &self.model.value(value).name) {
            None => Ok(value),
            Some(_) => Err(error(what(), format!("'{name}' is defined twice"))),
        }
    }

    /// Returns the value that a node reads. An undefined name becomes a value without a definition, which the
    /// verifier reports.
    fn operand(&mut self, name: &str) -> ValueId {
        match self.value(name) {
            Some(value) => value,
            None => {
                let value = self.model.add_value(name);
                if let Some(scope) = self.scopes.last_mut() {
                    scope.insert(name, value, |value| &self.model.value(value).name);
                }
                value
            }
        }
    }

    /// Imports a graph. `apart` contains the undecoded nodes and value types of the main graph; the message then has
    /// none.
    fn graph(
        &mut self,
        id: GraphId,
        mut proto: GraphProto,
        apart: (&[Bytes], &[Bytes]),
        depth: usize,
    ) -> Result<(), ImportError> {
        let name = proto.name.take().unwrap_or_default();
        let place = format!("graph '{name}'");
        if depth > MAX_GRAPH_DEPTH {
            return Err(error(place, ImportReason::TooDeep(MAX_GRAPH_DEPTH)));
        }
        // Most nodes have one result and two operands.
        let nodes = proto.node.len().max(apart.0.len());
        let values = proto.input.len() + proto.initializer.len() + nodes;
        self.model.reserve(values, nodes, nodes.saturating_mul(3));
        let mut scope = ByName::default();
        scope.reserve(values);
        self.scopes.push(scope);
        for (index, input) in std::mem::take(&mut proto.input).into_iter().enumerate() {
            let name = input.name.clone().unwrap_or_default();
            if name.is_empty() {
                return Err(error(&place, format!("input {index} has no name")));
            }
            let value = self.define(&name, &|| place.clone())?;
            self.declare(value, input, 11, index);
            self.model.add_input(id, value).map_err(|broken| error(&place, broken))?;
        }
        // If initializers share a name, runtimes use the last one.
        let initializers = std::mem::take(&mut proto.initializer);
        let names = initializers.iter().enumerate().map(|(index, tensor)| (tensor.name(), index));
        let last: FxHashMap<&str, usize> = names.collect();
        let is_last = |(index, tensor): (usize, &TensorProto)| {
            last.get(tensor.name()) == Some(&index) || tensor.name().is_empty()
        };
        let taken: Vec<bool> = initializers.iter().enumerate().map(is_last).collect();
        for ((index, tensor), is_taken) in initializers.into_iter().enumerate().zip(taken) {
            if is_taken {
                self.initializer(id, tensor, index, &place)?;
            }
        }
        for (index, tensor) in std::mem::take(&mut proto.sparse_initializer).into_iter().enumerate() {
            self.sparse_initializer(id, tensor, index, &place)?;
        }
        let nodes = std::mem::take(&mut proto.node);
        self.nodes(id, (nodes, apart.0), 1, depth)?;
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
        let infos = apart.1.iter().map(|info| ValueInfoProto::decode(info.clone()));
        for (index, info) in std::mem::take(&mut proto.value_info).into_iter().map(Ok).chain(infos).enumerate() {
            let info = info.map_err(|broken| error(&place, broken.to_string()))?;
            let name = info.name.as_deref().unwrap_or_default();
            match self.own_value(name) {
                Some(value) => self.declare(value, info, 13, index),
                None => self.keep_homeless(info, (13, index), &mut homeless),
            }
        }
        for (index, annotation) in std::mem::take(&mut proto.quantization_annotation).into_iter().enumerate() {
            self.annotation(annotation, index, &mut homeless);
        }
        let extra = joined(self.rest(proto.encode_to_vec()), homeless.into());
        let graph = self.model.graph_mut(id);
        graph.name = name;
        graph.extra = extra;
        self.scopes.pop();
        Ok(())
    }

    /// Imports an annotation of a value of the innermost graph; keeps any other as wire bytes. Pins the named values.
    fn annotation(&mut self, annotation: TensorAnnotation, index: usize, homeless: &mut Vec<u8>) {
        const FIELD: u32 = 14;
        let tensor = annotation.tensor_name.as_deref().unwrap_or_default();
        let entries = annotation.quant_parameter_tensor_names.iter().filter_map(|entry| entry.value.as_deref());
        let own = self.own_value(tensor).map(|value| (value, Name::from(tensor)));
        let named: Vec<(ValueId, Name)> =
            std::iter::once(tensor).chain(entries).filter_map(|name| Some((self.value(name)?, name.into()))).collect();
        for &(value, _) in &named {
            self.model.value_mut(value).pinned = true;
        }
        let message = self.rest_below(FIELD, index, annotation.encode_to_vec());
        let mut field = Vec::new();
        encode_key(FIELD, WireType::LengthDelimited, &mut field);
        encode_varint(message.len() as u64, &mut field);
        field.extend_from_slice(&message);
        match own {
            Some(tensor) => {
                let parameters = named.into_iter().skip(1).collect();
                self.model.annotations.push(Annotation { tensor, parameters, field: field.into() });
            }
            None => homeless.extend_from_slice(&field),
        }
    }

    /// Keeps a `ValueInfoProto` without a value in its graph and reserves its name. Drops it if another graph has a
    /// value of this name: if that value moved here, the entry would describe it.
    fn keep_homeless(&mut self, info: ValueInfoProto, (field, index): (u32, usize), homeless: &mut Vec<u8>) {
        let name = info.name.as_deref().unwrap_or_default();
        if self.value(name).is_some() || self.homeless.contains(name) || !self.model.has_name(name) {
            self.model.reserve_name(name);
            self.homeless.insert(name.to_string());
            let said = self.rest_below(field, index, info.encode_to_vec());
            encode_key(field, WireType::LengthDelimited, homeless);
            encode_varint(said.len() as u64, homeless);
            homeless.extend_from_slice(&said);
        }
    }

    /// Imports a `ValueInfoProto` of a value. It does not replace the declaration of an input or of an earlier
    /// message.
    fn declare(&mut self, value: ValueId, mut proto: ValueInfoProto, field: u32, index: usize) {
        let ty = proto.r#type.take().and_then(|ty| types::declared(&ty));
        proto.name = None;
        let has_more = proto.doc_string.is_some() || !proto.metadata_props.is_empty() || !self.unknown.is_empty();
        let extra = if has_more { self.rest_below(field, index, proto.encode_to_vec()) } else { Extra::new() };
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
            Decoded::Foreign => Constant { origin: None, ..missing(&proto, unknown) },
            Decoded::Missing => missing(&proto, unknown),
        };
        self.constant(graph, &name, constant, proto.data_type.unwrap_or_default(), &proto.dims)
    }

    fn sparse_initializer(
        &mut self,
        graph: GraphId,
        mut proto: SparseTensorProto,
        index: usize,
        place: &str,
    ) -> Result<(), ImportError> {
        let name = proto.values.as_ref().and_then(|values| values.name.clone()).unwrap_or_default();
        if name.is_empty() {
            return Err(error(place, format!("sparse initializer {index} has no name")));
        }
        let sparse = tensor::take_sparse(&name, &proto, self.files);
        let sparse = sparse.map_err(|reason| error(format!("sparse initializer '{name}'"), reason))?;
        if let Some(sparse) = &sparse {
            // The message is written unchanged, to any directory.
            tensor::take_in(proto.values.as_deref_mut(), &sparse.values);
            tensor::take_in(proto.indices.as_deref_mut(), &sparse.indices);
        }
        let constant = Constant {
            tensor: sparse.as_ref().and_then(tensor::densify),
            verbatim: Some(self.rest_below(15, index, proto.encode_to_vec())),
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
        let value = match self.own_value(name) {
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

    /// Imports the nodes of a graph, as messages or as undecoded bytes.
    fn nodes(
        &mut self,
        graph: GraphId,
        (nodes, apart): (Vec<NodeProto>, &[Bytes]),
        field: u32,
        depth: usize,
    ) -> Result<(), ImportError> {
        // A file may list a node before its producers, so all results are defined first.
        let mut results: Vec<Outputs> = Vec::with_capacity(nodes.len().max(apart.len()));
        for node in &nodes {
            let place = || describe(&NodeParts::in_message(node, Vec::new()));
            results.push(self.results(node.output.iter().map(String::as_str), &place)?);
        }
        for node in apart {
            let place = || NodeParts::in_file(node).map_or_else(|broken| broken.to_string(), |node| describe(&node));
            results.push(self.results(results_in_file(node), &place)?);
        }
        let mut results = results.into_iter();
        for (index, mut node) in (0u32..).zip(nodes) {
            let attributes = std::mem::take(&mut node.attribute);
            let parts = NodeParts::in_message(&node, attributes);
            let outputs = results.next().unwrap_or_default();
            self.within(Descent { field, index }, |import| import.node(graph, parts, outputs, depth))?;
        }
        for (index, node) in (0u32..).zip(apart) {
            let parts = NodeParts::in_file(node).map_err(|broken| error("a node", broken.to_string()))?;
            let outputs = results.next().unwrap_or_default();
            self.within(Descent { field, index }, |import| import.node(graph, parts, outputs, depth))?;
        }
        Ok(())
    }

    /// Defines the results of a node.
    fn results<'n>(
        &mut self,
        names: impl Iterator<Item = &'n str>,
        place: &dyn Fn() -> String,
    ) -> Result<Outputs, ImportError> {
        names.map(|name| if name.is_empty() { Ok(None) } else { self.define(name, place).map(Some) }).collect()
    }

    fn node(
        &mut self,
        graph: GraphId,
        mut parts: NodeParts<'_>,
        outputs: Outputs,
        depth: usize,
    ) -> Result<(), ImportError> {
        // ONNX Runtime ignores nodes without operator and results.
        let computes = parts.output.iter().any(|name| !name.is_empty());
        if computes && parts.op_type.is_empty() {
            return Err(error(describe(&parts), "it names no operator"));
        }
        if self.is_missing_constant(graph, &parts)? {
            return Ok(());
        }
        let inputs = parts.input.iter().map(|name| (!name.is_empty()).then(|| self.operand(name))).collect();
        let (given, rest) = (std::mem::take(&mut parts.attributes), std::mem::take(&mut parts.rest));
        let place = || describe(&parts);
        let mut attributes: Vec<NamedAttribute> = Vec::with_capacity(given.len());
        for (index, attribute) in (0u32..).zip(given) {
            let step = Descent { field: 5, index };
            attributes.push(self.within(step, |import| import.attribute(attribute, &place, depth))?);
        }
        for (i, attribute) in attributes.iter().enumerate() {
            if attributes.iter().take(i).any(|other| other.name == attribute.name) {
                return Err(error(place(), format!("attribute '{}' is listed twice", attribute.name)));
            }
        }
        let node = NewNode {
            name: parts.name.into(),
            domain: parts.domain.into(),
            op_type: parts.op_type.into(),
            overload: parts.overload.into(),
            attributes,
            inputs,
            outputs: outputs.into_vec(),
            extra: self.rest(rest),
        };
        self.model.add_node(graph, node).map_err(|broken| error("a node", broken))?;
        Ok(())
    }

    fn function(&mut self, mut proto: FunctionProto) -> Result<(), ImportError> {
        let name = proto.name.take().unwrap_or_default();
        let place = format!("function '{name}'");
        let body = self.model.add_graph(&name, None);
        self.scopes.clear();
        self.scopes.push(ByName::default());
        for input in std::mem::take(&mut proto.input) {
            let value = self.define(&input, &|| place.clone())?;
            self.model.add_input(body, value).map_err(|broken| error(&place, broken))?;
        }
        let nodes = std::mem::take(&mut proto.node);
        self.nodes(body, (nodes, &[]), 7, 0)?;
        for output in std::mem::take(&mut proto.output) {
            let value = self.operand(&output);
            self.model.add_output(body, value);
        }
        let mut homeless = Vec::new();
        for (index, info) in std::mem::take(&mut proto.value_info).into_iter().enumerate() {
            match self.value(info.name.as_deref().unwrap_or_default()) {
                Some(value) => self.declare(value, info, 12, index),
                None => self.keep_homeless(info, (12, index), &mut homeless),
            }
        }
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
            extra: joined(self.rest(proto.encode_to_vec()), homeless.into()),
        };
        self.model.add_function(function);
        Ok(())
    }
}

/// The values of a node's results.
type Outputs = SmallVec<[Option<ValueId>; 2]>;

/// Names a node in messages.
fn describe(node: &NodeParts<'_>) -> String {
    let operator = if node.op_type.is_empty() { "unnamed" } else { node.op_type };
    match node.name {
        "" => format!("{operator} node that computes '{}'", node.output.first().unwrap_or(&"")),
        name => format!("{operator} node '{name}'"),
    }
}
