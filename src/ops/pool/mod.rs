//! Pooling over windows and whole images, its inverse, and pooling of regions of interest.

mod global;
mod roi;
mod unpool;
mod windowed;

pub(super) use windowed::shape_of;

use super::Operator;

pub(super) const OPERATORS: &[Operator] = &[
    windowed::MAX_POOL,
    windowed::AVERAGE_POOL,
    windowed::LP_POOL,
    global::GLOBAL_MAX_POOL,
    global::GLOBAL_AVERAGE_POOL,
    global::GLOBAL_LP_POOL,
    unpool::MAX_UNPOOL,
    roi::MAX_ROI_POOL,
];
