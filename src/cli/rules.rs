//! `onnx-slice-fold rules [NAME]`: describes the rewrite rules and passes.

use clap::Args;

#[derive(Args, Debug)]
pub(super) struct Rules {
    /// The rule or pass to describe; by default, list all.
    name: Option<String>,
}

impl Rules {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self.name {
            None => super::tell(&onnx_slice_fold::rule_table()),
            Some(name) => super::tell(&onnx_slice_fold::rule_text(&name)?),
        }
    }
}
