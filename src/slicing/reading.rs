//! How a dialect reads ranges, as data: what `resolve` goes by.

/// What a backward range does that begins before the first element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    /// It stays before the first element and takes nothing: TensorFlow, numpy.
    BeforeFirst,
    /// It begins at the first element: ONNX, OpenVINO.
    First,
}

/// What an end of `INT32_MAX` or `INT64_MAX` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntMax {
    /// Nothing special.
    Ordinary,
    /// Open when the step is positive, and nothing special when it is negative.
    OpenForward,
    /// Open.
    Open,
    /// Open when the step is positive, and disputed when it is negative.
    DisputedBackward,
}

/// How a dialect reads ranges: all in which the dialects differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Where a backward range can begin at the earliest.
    pub floor: Floor,
    /// Which ends are taken for an open one.
    pub int_max: IntMax,
}
