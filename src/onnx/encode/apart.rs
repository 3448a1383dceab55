//! Writes the nodes of the main graph, and the types of its values, from the model itself.
//!
//! Building messages would copy every name only for writing.

use super::fields::{scalar, text};
use super::{Put, Sink};
use crate::ir::{DeclaredType, DimClaim, Model, Node, Value, ValueId};
use crate::onnx::proto::AttributeProto;
use crate::onnx::types;
use crate::onnx::wire::Descent;

/// The parts of the main graph that its message lacks.
pub struct Apart<'m> {
    model: &'m Model,
    /// The nodes with their attributes.
    nodes: Vec<(&'m Node, Vec<AttributeProto>)>,
    /// The values whose types are written.
    values: Vec<&'m Value>,
}

impl<'m> Apart<'m> {
    pub(in crate::onnx) fn new(
        model: &'m Model,
        nodes: Vec<(&'m Node, Vec<AttributeProto>)>,
        values: Vec<&'m Value>,
    ) -> Self {
        Apart { model, nodes, values }
    }

    /// Writes the elements of a field of the graph.
    pub(super) fn put<S: Sink>(&self, sink: &mut S, field: u32) {
        match field {
            1 => (0u32..).zip(&self.nodes).for_each(|(index, node)| {
                sink.open(Descent { field, index });
                self.node(sink, node);
                sink.close();
            }),
            13 => (0u32..).zip(&self.values).for_each(|(index, value)| {
                sink.open(Descent { field, index });
                text(sink, 1, &value.name);
                if let Some(ty) = &value.declared {
                    declared(sink, ty);
                }
                sink.close();
            }),
            _ => {}
        }
    }

    fn node<S: Sink>(&self, sink: &mut S, (node, attributes): &(&Node, Vec<AttributeProto>)) {
        let name = |value: &Option<ValueId>| value.map_or("", |value| self.model.value(value).name.as_str());
        node.inputs().iter().for_each(|value| text(sink, 1, name(value)));
        node.outputs().iter().for_each(|value| text(sink, 2, name(value)));
        let unless_empty = |sink: &mut S, field, what: &str| {
            if !what.is_empty() {
                text(sink, field, what);
            }
        };
        unless_empty(sink, 3, &node.name);
        text(sink, 4, &node.op_type);
        (0u32..).zip(attributes).for_each(|(index, attribute)| attribute.put_in(sink, 5, index));
        unless_empty(sink, 7, &node.domain);
        unless_empty(sink, 8, &node.overload);
    }
}

/// Writes the type of a value. Plain tensor types need no message.
fn declared<S: Sink>(sink: &mut S, ty: &DeclaredType) {
    let step = |field| Descent { field, index: 0 };
    match ty {
        DeclaredType::Tensor { dtype, shape, extra }
            if extra.is_empty() && shape.iter().flatten().all(|dim| dim.extra.is_empty()) =>
        {
            sink.open(step(2));
            sink.open(step(1));
            scalar(sink, 1, *dtype);
            if let Some(dims) = shape {
                sink.open(step(2));
                for (index, dim) in (0u32..).zip(dims) {
                    sink.open(Descent { field: 1, index });
                    match &dim.claim {
                        DimClaim::Unknown => {}
                        DimClaim::Value(size) => scalar(sink, 1, *size),
                        DimClaim::Param(name) => text(sink, 2, name),
                    }
                    sink.close();
                }
                sink.close();
            }
            sink.close();
            sink.close();
        }
        ty => types::message(ty).put_in(sink, 2, 0),
    }
}
