//! `onnx-slice-fold ops`: prints the supported operators.

use clap::Args;

#[derive(Args, Debug)]
pub(super) struct Ops {}

impl Ops {
    pub(super) fn run(self) -> anyhow::Result<()> {
        super::tell(&onnx_slice_fold::operator_table())
    }
}
