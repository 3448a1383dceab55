//! The readings of ranges in which the dialects differ, as parameters of `resolve`.

/// The treatment of a backward range that begins before the first element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    /// The range is empty: TensorFlow, numpy.
    BeforeFirst,
    /// The range begins at the first element: ONNX, OpenVINO.
    First,
}

/// The meaning of an end of `INT32_MAX` or `INT64_MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntMax {
    /// An ordinary bound.
    Ordinary,
    /// Open for a positive step, an ordinary bound for a negative one.
    OpenForward,
    /// Open.
    Open,
    /// Open for a positive step, disputed for a negative one.
    DisputedBackward,
}

/// All properties in which dialects differ when they read ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The earliest begin of a backward range.
    pub floor: Floor,
    /// The ends that count as open.
    pub int_max: IntMax,
}
