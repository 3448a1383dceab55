//! Imports attributes of nodes and defaults of functions, with their graphs and tensors.

use prost::Message;

use super::{Import, ImportError, error};
use crate::ir::{Attribute, Extra, GraphId, Name, NamedAttribute};
use crate::onnx::proto::{AttributeProto, GraphProto, TensorProto, attribute_proto};
use crate::onnx::tensor::{self, Decoded};
use crate::onnx::types::{self, joined};
use crate::onnx::wire::Descent;

impl Import<'_> {
    pub(super) fn attribute(
        &mut self,
        mut proto: AttributeProto,
        place: &dyn Fn() -> String,
        depth: usize,
    ) -> Result<NamedAttribute, ImportError> {
        let name = Name::from(proto.name.take().unwrap_or_default());
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
                proto.name = Some(name.to_string());
                Attribute::Opaque(proto.encode_to_vec().into())
            }
        };
        Ok(NamedAttribute { name, value, extra })
    }

    /// Returns the value of an attribute; `None` if its kind or data type is unknown, or its data file is missing.
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
        self.within(step, |import| import.graph(graph, proto, (&[], &[]), depth + 1))?;
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
            Decoded::Foreign | Decoded::Missing => None,
        })
    }
}

/// Returns the kind of an attribute that does not declare it (IR version 1): the present field decides.
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
