//! A model file on its way through the program: opened, folded, saved.

use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use anyhow::Context;

use crate::dim::Scope;
use crate::ir::{self, Model};
use crate::onnx::{self, Limits, Source};
use crate::passes::{self, Options};
use crate::report::{Census, Report};

/// An opened model.
pub struct Document {
    model: Model,
    scope: Rc<Scope>,
    source: Option<Source>,
    /// Bytes of the file and of the payloads it refers to.
    bytes: usize,
}

impl Document {
    /// Opens and decodes a model file. Payloads stay where they are: nothing is copied.
    ///
    /// # Errors
    /// If the file cannot be read or is no well-formed model; the message names the place and the reason.
    pub fn open(path: impl AsRef<Path>) -> anyhow::Result<Self> {
        let path = path.as_ref();
        let mut source = onnx::open(path)?;
        let context = || format!("cannot read '{}'", path.display());
        let (proto, unknown) = onnx::decode(source.bytes(), &Limits::default()).with_context(context)?;
        let model = onnx::import(proto, &unknown, &mut source.data).with_context(context)?;
        source.verify()?;
        let bytes = source.bytes().len();
        Ok(Document { model, scope: Rc::new(Scope::new()), source: Some(source), bytes })
    }

    /// Wraps a model that was built in memory.
    pub fn of(model: Model) -> Self {
        Document { model, scope: Rc::new(Scope::new()), source: None, bytes: 0 }
    }

    /// The model as it is now.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The symbols its dimensions are expressions of.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Infers all shapes, folds what is decided and removes what is dead.
    ///
    /// # Errors
    /// If the model is inconsistent. The document must not be saved then.
    pub fn fold(&mut self, options: &Options) -> anyhow::Result<Report> {
        self.fold_watched(options, &mut |_| {})
    }

    /// The same, telling `watch` what is being done whenever that changes.
    ///
    /// # Errors
    /// As [`Document::fold`].
    pub fn fold_watched(&mut self, options: &Options, watch: &mut dyn FnMut(&'static str)) -> anyhow::Result<Report> {
        let begin = Instant::now();
        let before = Census::of(&self.model);
        let outcome = passes::run(&mut self.model, Rc::clone(&self.scope), options, self.bytes, watch)?;
        Ok(Report {
            before,
            after: Census::of(&self.model),
            bytes_before: self.bytes,
            bytes_after: None,
            rounds: outcome.rounds,
            notes: outcome.notes,
            fired: outcome.fired,
            last_edit: outcome.last_edit,
            passes: outcome.passes,
            seconds: begin.elapsed().as_secs_f64(),
        })
    }

    /// The model in the ONNX text syntax.
    pub fn text(&self) -> String {
        ir::text::print(&self.model)
    }

    /// Writes the model, whole or not at all: to a temporary file beside the target, synced, then renamed. Returns the bytes
    /// of the file.
    ///
    /// # Errors
    /// If the target cannot be written, or a file the model came from changed meanwhile. The target is untouched then.
    pub fn save(&self, path: impl AsRef<Path>) -> anyhow::Result<u64> {
        onnx::store(&self.model, path.as_ref(), self.source.as_ref())
    }
}
