use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::DType;

pub(super) const IMAGE_DECODER: Operator = Operator::infer_only("ImageDecoder", &[20], infer);

/// The order of the channels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PixelFormat {
    Rgb,
    Bgr,
    Grayscale,
}

impl PixelFormat {
    fn of(site: &Site<'_>) -> Result<PixelFormat, Refusal> {
        match site.attr_str("pixel_format")? {
            None | Some("RGB") => Ok(PixelFormat::Rgb),
            Some("BGR") => Ok(PixelFormat::Bgr),
            Some("Grayscale") => Ok(PixelFormat::Grayscale),
            Some(other) => Err(Refusal::invalid(format!("pixel_format is '{other}'"))),
        }
    }

    fn channels(self) -> usize {
        if self == PixelFormat::Grayscale { 1 } else { 3 }
    }
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let channels = PixelFormat::of(cx)?.channels();
    if cx.required(0)?.rank().is_some_and(|rank| rank != 1) {
        return Err(Refusal::invalid("the encoded image is no vector of bytes"));
    }
    let shape = vec![cx.fresh_dim(), cx.fresh_dim(), Dim::constant(channels as i64)];
    Ok(vec![Fact::tensor(Some(DType::Uint8), Some(shape))])
}
