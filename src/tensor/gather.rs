//! Copying a strided view into a dense tensor.
use bytes::Bytes;

use super::error::TensorError;
use super::index::Indices;
use super::storage::Tensor;
use super::strided::StridedView;

/// The view as a dense tensor.
pub fn gather(tensor: &Tensor, view: &StridedView) -> Result<Tensor, TensorError> {
    let len = view.len().ok_or_else(|| TensorError::ElementCount { shape: view.shape().into() })?;
    view.reach(tensor.len())?;
    let mut positions = Vec::new();
    positions.try_reserve_exact(len).map_err(|_| TensorError::OutOfMemory { bytes: len })?;
    let mut indices = Indices::new(view.shape());
    while let Some(index) = indices.advance() {
        let distance: isize = index.iter().zip(view.strides()).map(|(&at, &stride)| at as isize * stride).sum();
        positions.push((view.offset() + distance) as usize);
    }
    if let Some(strings) = tensor.strings() {
        return Tensor::from_strings(view.shape(), positions.iter().map(|&at| strings[at].clone()).collect());
    }
    let bits = tensor.dtype().bits().ok_or(TensorError::StringPayload)?;
    let payload: Vec<u8> = if tensor.dtype().is_packed() {
        let codes: Vec<u8> = tensor.codes().into_iter().flatten().collect();
        super::packed::pack(&positions.iter().map(|&at| codes[at]).collect::<Vec<_>>(), bits)
    } else {
        let width = bits / 8;
        positions.iter().flat_map(|&at| &tensor.bytes()[at * width..][..width]).copied().collect()
    };
    Tensor::from_bytes(tensor.dtype(), view.shape(), Bytes::from(payload))
}
