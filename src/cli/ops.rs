//! `onnx-slice-fold ops`: which operators are known.

use std::io::Write;

use clap::Args;

#[derive(Args, Debug)]
pub(super) struct Ops {}

impl Ops {
    pub(super) fn run(self) -> anyhow::Result<()> {
        // A reader that closes the pipe early has seen enough.
        let _ = std::io::stdout().write_all(onnx_slice_fold::operator_table().as_bytes());
        Ok(())
    }
}
