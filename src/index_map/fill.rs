//! Constants of a map as elements of tensors.

use bytes::Bytes;

use super::form::Fill;
use crate::tensor::{DType, Tensor, pack};

impl Fill {
    /// The constant for an element: its bits, in little-endian order. `None` if the tensor does not hold exactly one element, or if the
    /// element is a string or has more than 64 bits.
    pub fn of_element(tensor: &Tensor) -> Option<Fill> {
        if tensor.len() != 1 {
            return None;
        }
        if tensor.dtype().is_packed() {
            return tensor.codes()?.next().map(|code| Fill(u64::from(code)));
        }
        let width = tensor.dtype().byte_len(1).filter(|&width| width <= 8)?;
        let mut bits = [0; 8];
        bits.get_mut(..width)?.copy_from_slice(tensor.bytes().get(..width)?);
        Some(Fill(u64::from_le_bytes(bits)))
    }

    /// The element of this type with these bits, as a tensor of rank 0. `None` if the type has no elements of at most 64 bits.
    pub fn to_element(self, dtype: DType) -> Option<Tensor> {
        let bytes = self.0.to_le_bytes();
        if dtype.is_packed() {
            let code = bytes.first().copied()?;
            return Tensor::from_bytes(dtype, &[], pack(&[code], dtype.bits()?).into()).ok();
        }
        let width = dtype.byte_len(1).filter(|&width| width <= 8)?;
        Tensor::from_bytes(dtype, &[], Bytes::copy_from_slice(bytes.get(..width)?)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::Fill;
    use crate::tensor::{DType, Tensor};

    #[test]
    fn elements_keep_their_bits() {
        let elements = [
            Tensor::scalar(-0.0f32),
            Tensor::scalar(f64::NAN),
            Tensor::scalar(-3i64),
            Tensor::scalar(u8::MAX),
            Tensor::from_bytes(DType::Int4, &[], vec![0x0d].into()).unwrap(),
        ];
        for element in elements {
            let fill = Fill::of_element(&element).unwrap();
            assert!(fill.to_element(element.dtype()).unwrap().same(&element), "{}", element.dtype());
        }
        assert_ne!(Fill::of_element(&Tensor::scalar(-0.0f32)), Fill::of_element(&Tensor::scalar(0.0f32)));
        assert_eq!(Fill::of_element(&Tensor::vector(vec![1i64, 1])), None);
        assert_eq!(Fill::of_element(&Tensor::from_strings(&[], vec!["a".into()]).unwrap()), None);
        assert!(Fill(0).to_element(DType::Complex128).is_none());
        assert!(Fill(0).to_element(DType::String).is_none());
    }
}
