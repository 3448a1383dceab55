//! Imports constants with unreadable elements: type and shape are known, and the message is written unchanged.

use prost::Message;

use super::{Import, ImportError, describe, error};
use crate::ir::{Constant, Extra, GraphId};
use crate::onnx::parts::NodeParts;
use crate::onnx::proto::TensorProto;
use crate::onnx::tensor::{self, Decoded};

impl Import<'_> {
    /// Imports a Constant whose data file is missing as an initializer, which has a type. Returns `false` for other
    /// nodes.
    pub(super) fn is_missing_constant(&mut self, graph: GraphId, parts: &NodeParts<'_>) -> Result<bool, ImportError> {
        const NODE_OF_GRAPH: u32 = 1;
        let ([attribute], [name]) = (parts.attributes.as_slice(), parts.output.as_slice()) else { return Ok(false) };
        let tensor = attribute.t.as_deref().filter(|tensor| tensor.data_location.is_some());
        let (Some(tensor), true) = (tensor, parts.op_type == "Constant" && parts.domain.is_empty()) else {
            return Ok(false);
        };
        // Functions have no initializers, and in old models initializers must be inputs.
        if self.path.last().is_none_or(|step| step.field != NODE_OF_GRAPH) || self.model.ir_version < 4 {
            return Ok(false);
        }
        let taken = tensor::take(name, tensor, self.files).map_err(|reason| error(describe(parts), reason))?;
        if !matches!(taken, Decoded::Missing) {
            return Ok(false);
        }
        let constant = missing(tensor, Extra::new());
        self.constant(graph, name, constant, tensor.data_type.unwrap_or_default(), &tensor.dims).map(|()| true)
    }
}

/// Returns a constant without elements.
pub(super) fn missing(proto: &TensorProto, extra: Extra) -> Constant {
    Constant {
        tensor: None,
        verbatim: Some(proto.encode_to_vec().into()),
        sparse: false,
        origin: Some(tensor::origin_of(proto)),
        extra,
    }
}
