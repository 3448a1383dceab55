//! Operators on images and bounding boxes.
//!
//! | file | operators |
//! | --- | --- |
//! | [`resize`] | Resize, Upsample |
//! | [`grid_sample`] | GridSample |
//! | [`affine_grid`] | AffineGrid |
//! | [`roi_align`] | RoiAlign |
//! | [`suppression`] | NonMaxSuppression |
//! | [`decode`] | ImageDecoder |
//!
//! [`sizes`] computes the sizes of a resized image, [`scale_law`] the largest dim for which a scale acts as a fraction.

mod affine_grid;
mod decode;
mod grid_sample;
mod resample;
mod resize;
mod roi_align;
mod scale_law;
mod scales;
mod sizes;
mod suppression;

use super::Operator;

pub(super) const OPERATORS: &[Operator] = &[
    resize::RESIZE,
    resize::UPSAMPLE,
    grid_sample::GRID_SAMPLE,
    affine_grid::AFFINE_GRID,
    roi_align::ROI_ALIGN,
    suppression::NON_MAX_SUPPRESSION,
    decode::IMAGE_DECODER,
];
