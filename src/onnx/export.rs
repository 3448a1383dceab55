//! Converts the intermediate representation to messages for the encoder.

use bytes::Bytes;
use prost::Message;
use rustc_hash::{FxHashMap, FxHashSet};

use super::encode::{Apart, DeferredPayloads, EncodeError, Encoded};
use super::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, SparseTensorProto,
    StringStringEntryProto, TensorProto, ValueInfoProto, attribute_proto, tensor_proto,
};
use super::types;
use super::wire::{Descent, UnknownFields};
use crate::ir::{
    Attribute, Broken, Constant, Function, GraphId, Model, NamedAttribute, Node, NodeId, OpsetImport, ValueId,
};

/// The `external_data` entries of initializers whose payloads are outside the model's own file.
pub type Externals = FxHashMap<ValueId, Vec<StringStringEntryProto>>;

/// Converts a model to messages, unknown fields and deferred payloads. Initializers in `externals` only refer to
/// their payloads. All others contain their payload, even if it was external in the source file.
///
/// # Errors
/// [`Broken::Cycle`] if the nodes of a graph have no topological order.
pub fn export(model: &Model, externals: &Externals) -> Result<(ModelProto, UnknownFields, DeferredPayloads), Broken> {
    let mut export = Export::of(model, externals);
    let proto = export.model(&mut |export| export.graph(model.main()))?;
    Ok((proto, export.extra, export.deferred))
}

/// A model in the form to be written: messages, and the parts that are written from the model itself.
pub struct Exported<'m> {
    pub(super) model: ModelProto,
    pub(super) unknown: UnknownFields,
    pub(super) deferred: DeferredPayloads,
    pub(super) apart: Apart<'m>,
}

impl Exported<'_> {
    /// Measures the model.
    ///
    /// # Errors
    /// [`EncodeError::TooLarge`].
    pub(super) fn measure(&self) -> Result<Encoded<'_>, EncodeError> {
        Encoded::measure_with(&self.model, &self.unknown, &self.deferred, Some(&self.apart))
    }
}

/// Exports the same bytes, but keeps most of the main graph in the model until it is written.
///
/// # Errors
/// The errors of [`export`].
pub(super) fn export_apart<'m>(model: &'m Model, externals: &Externals) -> Result<Exported<'m>, Broken> {
    let mut export = Export::of(model, externals);
    let (mut nodes, mut values) = (Vec::new(), Vec::new());
    let proto = export.model(&mut |export| {
        let (proto, order) = export.shell(model.main())?;
        nodes.reserve(order.len());
        for (index, node) in order.iter().filter_map(|&node| model.node(node)).enumerate() {
            nodes.push((node, export.within(1, index, |export| export.attributes(node))?));
        }
        for value in stated(model, model.main(), &order) {
            let place = model.value(value);
            export.within(13, values.len(), |export| export.note(&place.extra));
            values.push(place);
        }
        Ok(proto)
    })?;
    let apart = Apart::new(model, nodes, values);
    Ok(Exported { model: proto, unknown: export.extra, deferred: export.deferred, apart })
}

/// Returns the values of a graph that need an entry in `value_info`: inputs and outputs have their own type fields.
fn stated(model: &Model, graph: GraphId, order: &[NodeId]) -> Vec<ValueId> {
    let held = model.graph(graph);
    // The message of a constant contains its type. For unreadable elements, the declared type is a copy of that type.
    let is_unread = |value: &&ValueId| model.value(**value).tensor().is_none() && model.value(**value).extra.is_empty();
    let unread = held.initializers().iter().filter(is_unread);
    let told: FxHashSet<ValueId> = held.inputs().iter().chain(held.outputs()).chain(unread).copied().collect();
    let results = order.iter().filter_map(|&node| model.node(node)).flat_map(|node| node.outputs().iter().flatten());
    let is_stated = |value: &ValueId| {
        let place = model.value(*value);
        (place.declared.is_some() || !place.extra.is_empty()) && !told.contains(value)
    };
    held.initializers().iter().chain(results).copied().filter(is_stated).collect()
}

struct Export<'a> {
    model: &'a Model,
    externals: &'a Externals,
    extra: UnknownFields,
    deferred: DeferredPayloads,
    path: Vec<Descent>,
}

/// Returns the text of a field, or `None` for an empty text.
fn text(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_string())
}

impl<'a> Export<'a> {
    fn of(model: &'a Model, externals: &'a Externals) -> Self {
        let (extra, deferred) = (UnknownFields::default(), DeferredPayloads::new());
        Export { model, externals, extra, deferred, path: Vec::new() }
    }

    fn model(&mut self, main: &mut dyn FnMut(&mut Self) -> Result<GraphProto, Broken>) -> Result<ModelProto, Broken> {
        let model = self.model;
        self.note(&model.extra);
        let opset_import = self.opsets(&model.opsets, 8);
        let graph = self.within(7, 0, main)?;
        let functions = model
            .functions()
            .enumerate()
            .map(|(index, (_, function))| self.within(25, index, |export| export.function(function)));
        let functions = functions.collect::<Result<Vec<_>, _>>()?;
        Ok(ModelProto {
            ir_version: (model.ir_version != 0).then_some(model.ir_version),
            opset_import,
            graph: Some(graph),
            functions,
            ..ModelProto::default()
        })
    }

    fn within<T>(&mut self, field: u32, index: usize, go: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(Descent { field, index: u32::try_from(index).unwrap_or(u32::MAX) });
        let result = go(self);
        self.path.pop();
        result
    }

    /// Adds these fields to the message at the current path.
    fn note(&mut self, extra: &Bytes) {
        if !extra.is_empty() {
            self.extra.add(&self.path, [extra.clone()]);
        }
    }

    fn opsets(&mut self, imports: &[OpsetImport], field: u32) -> Vec<OperatorSetIdProto> {
        let import = |(index, import): (usize, &OpsetImport)| {
            self.within(field, index, |export| export.note(&import.extra));
            OperatorSetIdProto { domain: Some(import.domain.clone()), version: Some(import.version) }
        };
        imports.iter().enumerate().map(import).collect()
    }

    fn name(&self, value: ValueId) -> String {
        self.model.value(value).name.to_string()
    }

    fn names(&self, values: &[Option<ValueId>]) -> Vec<String> {
        values.iter().map(|value| value.map_or_else(String::new, |value| self.name(value))).collect()
    }

    fn graph(&mut self, id: GraphId) -> Result<GraphProto, Broken> {
        let model = self.model;
        let (mut proto, order) = self.shell(id)?;
        for (index, node) in order.iter().filter_map(|&node| model.node(node)).enumerate() {
            proto.node.push(self.within(1, index, |export| export.node(node))?);
        }
        for value in stated(model, id, &order) {
            let info = self.within(13, proto.value_info.len(), |export| export.value_info(value));
            proto.value_info.push(info);
        }
        Ok(proto)
    }

    /// Converts a graph without its nodes and `value_info`; also returns the nodes in topological order.
    fn shell(&mut self, id: GraphId) -> Result<(GraphProto, Vec<NodeId>), Broken> {
        let model = self.model;
        let graph = model.graph(id);
        self.note(&graph.extra);
        model.annotations_of(id).for_each(|annotation| self.note(&annotation.field));
        let mut proto = GraphProto { name: Some(graph.name.clone()), ..GraphProto::default() };
        for (index, &value) in graph.inputs().iter().enumerate() {
            proto.input.push(self.within(11, index, |export| export.value_info(value)));
        }
        for &value in graph.initializers() {
            if let Some(constant) = &model.value(value).constant {
                self.initializer(&mut proto, value, constant);
            }
        }
        for (index, &value) in graph.outputs().iter().enumerate() {
            proto.output.push(self.within(12, index, |export| export.value_info(value)));
        }
        Ok((proto, model.topological(id)?))
    }

    fn value_info(&mut self, value: ValueId) -> ValueInfoProto {
        let place = self.model.value(value);
        self.note(&place.extra);
        ValueInfoProto {
            name: Some(place.name.to_string()),
            r#type: place.declared.as_ref().map(types::message),
            ..ValueInfoProto::default()
        }
    }

    fn initializer(&mut self, proto: &mut GraphProto, value: ValueId, constant: &Constant) {
        let name = self.name(value);
        match (&constant.verbatim, &constant.tensor) {
            (Some(bytes), _) if constant.sparse => {
                let index = proto.sparse_initializer.len();
                let mut sparse = SparseTensorProto::decode(bytes.clone()).unwrap_or_default();
                if let Some(values) = sparse.values.as_mut() {
                    values.name = Some(name);
                }
                self.within(15, index, |export| export.note(&constant.extra));
                proto.sparse_initializer.push(sparse);
            }
            (Some(bytes), _) => {
                let mut tensor = TensorProto::decode(bytes.clone()).unwrap_or_default();
                tensor.name = Some(name);
                if let Some(entries) = self.externals.get(&value) {
                    tensor.external_data = entries.clone();
                }
                self.within(5, proto.initializer.len(), |export| export.note(&constant.extra));
                proto.initializer.push(tensor);
            }
            (None, Some(tensor)) => {
                let entries = self.externals.get(&value);
                let mut message = match tensor.is_deferred() || entries.is_some() {
                    true => super::tensor::message_without_payload(Some(&name), tensor),
                    false => super::tensor::message(Some(&name), tensor),
                };
                if entries.is_none() && tensor.is_deferred() {
                    let deferred = |export: &mut Self| export.deferred.insert(export.path.clone(), tensor.clone());
                    self.within(5, proto.initializer.len(), deferred);
                }
                if let Some(entries) = entries {
                    message.data_location = Some(tensor_proto::DataLocation::External as i32);
                    message.external_data = entries.clone();
                }
                self.within(5, proto.initializer.len(), |export| export.note(&constant.extra));
                proto.initializer.push(message);
            }
            (None, None) => {}
        }
    }

    fn node(&mut self, node: &Node) -> Result<NodeProto, Broken> {
        let attribute = self.attributes(node)?;
        Ok(NodeProto {
            input: self.names(node.inputs()),
            output: self.names(node.outputs()),
            name: text(&node.name),
            op_type: Some(node.op_type.to_string()),
            domain: text(&node.domain),
            overload: text(&node.overload),
            attribute,
            ..NodeProto::default()
        })
    }

    /// Converts the attributes of a node, and records its unknown fields.
    fn attributes(&mut self, node: &Node) -> Result<Vec<AttributeProto>, Broken> {
        self.note(&node.extra);
        let attributes = node.attributes.iter().enumerate();
        attributes.map(|(index, held)| self.within(5, index, |export| export.attribute(held))).collect()
    }

    fn attribute(&mut self, held: &NamedAttribute) -> Result<AttributeProto, Broken> {
        use attribute_proto::AttributeType as Kind;
        self.note(&held.extra);
        let mut proto = AttributeProto { name: Some(held.name.to_string()), ..AttributeProto::default() };
        let kind = match &held.value {
            Attribute::Float(value) => {
                proto.f = Some(*value);
                Kind::Float
            }
            Attribute::Int(value) => {
                proto.i = Some(*value);
                Kind::Int
            }
            Attribute::String(value) => {
                proto.s = Some(value.clone());
                Kind::String
            }
            Attribute::Tensor(tensor, extra) => {
                proto.t = Some(Box::new(if tensor.is_deferred() {
                    self.within(5, 0, |export| export.deferred.insert(export.path.clone(), tensor.clone()));
                    super::tensor::message_without_payload(None, tensor)
                } else {
                    super::tensor::message(None, tensor)
                }));
                self.within(5, 0, |export| export.note(extra));
                Kind::Tensor
            }
            Attribute::Graph(graph) => {
                proto.g = Some(Box::new(self.within(6, 0, |export| export.graph(*graph))?));
                Kind::Graph
            }
            Attribute::SparseTensor(sparse) => {
                proto.sparse_tensor = Some(Box::new(self.sparse(sparse, 22, 0)));
                Kind::SparseTensor
            }
            Attribute::Type(ty) => {
                proto.tp = Some(Box::new(types::message(ty)));
                Kind::TypeProto
            }
            Attribute::Floats(values) => {
                proto.floats = values.clone();
                Kind::Floats
            }
            Attribute::Ints(values) => {
                proto.ints = values.clone();
                Kind::Ints
            }
            Attribute::Strings(values) => {
                proto.strings = values.clone();
                Kind::Strings
            }
            Attribute::Tensors(tensors) => {
                for (index, (tensor, extra)) in tensors.iter().enumerate() {
                    proto.tensors.push(super::tensor::message(None, tensor));
                    self.within(10, index, |export| export.note(extra));
                }
                Kind::Tensors
            }
            Attribute::Graphs(graphs) => {
                for (index, graph) in graphs.iter().enumerate() {
                    proto.graphs.push(self.within(11, index, |export| export.graph(*graph))?);
                }
                Kind::Graphs
            }
            Attribute::SparseTensors(tensors) => {
                for (index, sparse) in tensors.iter().enumerate() {
                    let sparse = self.sparse(sparse, 23, index);
                    proto.sparse_tensors.push(sparse);
                }
                Kind::SparseTensors
            }
            Attribute::Types(types) => {
                proto.type_protos = types.iter().map(types::message).collect();
                Kind::TypeProtos
            }
            Attribute::Reference { name, kind } => {
                proto.ref_attr_name = Some(name.clone());
                proto.r#type = Some(*kind);
                return Ok(proto);
            }
            Attribute::Opaque(bytes) => return Ok(AttributeProto::decode(bytes.clone()).unwrap_or(proto)),
        };
        proto.r#type = Some(kind as i32);
        Ok(proto)
    }

    fn sparse(&mut self, sparse: &crate::ir::SparseTensor, field: u32, index: usize) -> SparseTensorProto {
        let [own, values, indices] = &sparse.extra;
        self.within(field, index, |export| {
            export.note(own);
            export.within(1, 0, |export| export.note(values));
            export.within(2, 0, |export| export.note(indices));
        });
        SparseTensorProto {
            values: Some(Box::new(super::tensor::message(None, &sparse.values))),
            indices: Some(Box::new(super::tensor::message(None, &sparse.indices))),
            dims: sparse.shape.iter().map(|&dim| i64::try_from(dim).unwrap_or(i64::MAX)).collect(),
        }
    }

    fn function(&mut self, function: &Function) -> Result<FunctionProto, Broken> {
        let model = self.model;
        self.note(&function.extra);
        let body = model.graph(function.body);
        let order = model.topological(function.body)?;
        let mut proto = FunctionProto {
            name: Some(function.name.clone()),
            domain: Some(function.domain.clone()),
            overload: text(&function.overload),
            attribute: function.attributes.clone(),
            input: body.inputs().iter().map(|&value| self.name(value)).collect(),
            output: body.outputs().iter().map(|&value| self.name(value)).collect(),
            opset_import: self.opsets(&function.opsets, 9),
            ..FunctionProto::default()
        };
        for (index, held) in function.defaults.iter().enumerate() {
            proto.attribute_proto.push(self.within(11, index, |export| export.attribute(held))?);
        }
        for (index, node) in order.iter().filter_map(|&node| model.node(node)).enumerate() {
            proto.node.push(self.within(7, index, |export| export.node(node))?);
        }
        let results =
            order.iter().filter_map(|&node| model.node(node)).flat_map(|node| node.outputs().iter().flatten());
        for &value in body.inputs().iter().chain(results) {
            let place = model.value(value);
            if place.declared.is_some() || !place.extra.is_empty() {
                let info = self.within(12, proto.value_info.len(), |export| export.value_info(value));
                proto.value_info.push(info);
            }
        }
        Ok(proto)
    }
}
