//! The public model type: opened, folded, saved.

use std::fmt;
use std::path::Path;

use bytes::Bytes;

use crate::dim::Scope;
use crate::error::{Cause, Error};
use crate::ir::{CustomOperator, Model};
use crate::onnx::{self, Limits, MissingData, OpenOptions, Source, SourceError};
use crate::pages;
use crate::passes::{self, Options};
use crate::report::{Census, Interface, Report};
use crate::tensor::{ByteSource, SharedSource};

mod fold;
mod save;

/// An ONNX model that can be folded and written.
///
/// Tensor payloads are slices of the file, or of the given bytes, until they are written. The model may be sent to another thread between
/// calls.
///
/// ```
/// use onnx_slice_fold::{OnnxModel, Options};
///
/// let mut model = OnnxModel::open("models/bert_dy18d.onnx")?;
/// let report = model.fold(&Options::new())?;
/// assert!(report.after.nodes() < report.before.nodes());
/// let bytes = model.to_bytes()?;
/// # assert_eq!(OnnxModel::from_bytes(bytes)?.text(), model.text());
/// # Ok::<(), onnx_slice_fold::Error>(())
/// ```
pub struct OnnxModel {
    model: Model,
    /// The symbols of the dimensions. The passes share the scope while they run. Between calls only this field owns it, so that the model
    /// is `Send`.
    scope: Scope,
    source: Option<Source>,
    /// The number of bytes of the file, or of the given bytes.
    bytes: usize,
    /// The number of bytes of tensors in other files.
    external_bytes: u64,
    /// `true` if an error ended the passes, so that the model is in an undefined state.
    half_folded: bool,
}

impl OnnxModel {
    /// Opens and decodes a model file. External data is searched below the directory of `path` and, if `path` is a symbolic link, below the
    /// directory of its target. Tensors whose data file is missing have no values; [`missing_data`](Self::missing_data) lists them.
    ///
    /// # Errors
    /// The file cannot be read, is not a well-formed model, or exceeds a limit. The text names the place and the reason.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, &OpenOptions::new())
    }

    /// Opens a model with options, such as other directories for external data.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self, Error> {
        let path = path.as_ref();
        Self::decoded(onnx::open(path)?, options, &|| format!("cannot read {}", onnx::QuotedPath(path)))
    }

    /// Decodes a model in memory: the bytes of a `ModelProto`. Owned bytes, such as a `Vec<u8>`, are not copied. Tensors with data in files
    /// have no values.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self, Error> {
        Self::from_bytes_with(bytes, &OpenOptions::new())
    }

    /// Decodes a model in memory whose external data is below `directory`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes_in(bytes: impl Into<Bytes>, directory: impl AsRef<Path>) -> Result<Self, Error> {
        Self::from_bytes_with(bytes, &OpenOptions::new().external_data_root(directory.as_ref()))
    }

    /// Decodes a model in memory with options. The first directory for external data counts as the model's own.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes_with(bytes: impl Into<Bytes>, options: &OpenOptions) -> Result<Self, Error> {
        Self::decoded(Source::of_bytes(bytes.into()), options, &|| "cannot read the model".to_string())
    }

    /// Decodes a model outside of memory, such as in a Blob of a browser. `model` reads any part of it. `find` returns the data file at a
    /// location, `None` if it is missing, or the reason why it must not be read. Only the graph and small payloads are read at once; others
    /// are read when folding needs their values.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_source(
        model: Box<dyn ByteSource>,
        mut find: impl FnMut(&str) -> std::io::Result<Option<Box<dyn ByteSource>>> + Send + 'static,
    ) -> Result<Self, Error> {
        let find = move |location: &str| Ok(find(location)?.map(SharedSource::new));
        let source = Source::of_host(SharedSource::new(model), Box::new(find));
        let doing = || "cannot read the model".to_string();
        let source = source.map_err(|error| Error::new(Some(doing()), SourceError::of_host(error)))?;
        Self::decoded(source, &OpenOptions::new(), &doing)
    }

    fn decoded(mut source: Source, options: &OpenOptions, doing: &dyn Fn() -> String) -> Result<Self, Error> {
        source.data.also_beneath(options.external_data_roots.iter().cloned());
        pages::suit(|| onnx::count_nodes(source.bytes()));
        let (parts, unknown) = source.decode(&Limits::default()).map_err(|error| Error::new(Some(doing()), error))?;
        let model = onnx::import_parts(parts, &unknown, &mut source.data);
        let model = model.map_err(|error| Error::new(Some(doing()), error))?;
        source.verify()?;
        let bytes = usize::try_from(source.len()).unwrap_or(usize::MAX);
        let external_bytes = onnx::external_bytes(&model);
        Ok(OnnxModel { model, scope: Scope::new(), source: Some(source), bytes, external_bytes, half_folded: false })
    }

    /// Wraps a model that was built in memory.
    #[doc(hidden)]
    pub fn of(model: Model) -> Self {
        OnnxModel { model, scope: Scope::new(), source: None, bytes: 0, external_bytes: 0, half_folded: false }
    }

    /// Returns the model in its present state.
    #[doc(hidden)]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the scope of the symbols in its dimensions.
    #[doc(hidden)]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Returns the data files that the model refers to and that were missing when it was opened. Their tensors have a type and a shape, but
    /// no values. Nodes that read them are kept, and the model is written with the same references.
    pub fn missing_data(&self) -> Vec<MissingData> {
        self.source.iter().flat_map(|source| source.data.missing().cloned()).collect()
    }

    /// Reduces the model to the part between these values: `inputs` become its inputs and `outputs` its outputs, in the given order. An
    /// empty list keeps all inputs or outputs. Computed values that become inputs have the type inferred under `options`. The assumptions
    /// of `options` are not used here; they apply when the part is folded.
    ///
    /// # Errors
    /// The model has no such value; an input is a constant, or of unknown type; an output depends on an input that is not listed. The model
    /// is then unchanged, unless the options are invalid.
    pub fn extract(&mut self, inputs: &[String], outputs: &[String], options: &Options) -> Result<(), Error> {
        if !inputs.is_empty() {
            let mut options = options.clone().fold(false);
            options.assumptions.clear();
            self.fold(&options)?;
        }
        self.whole()?;
        Ok(passes::extract(&mut self.model, inputs, outputs)?)
    }

    /// Removes outputs. All inputs are kept, even unused ones.
    ///
    /// # Errors
    /// The model has no such output, or no other one. It is then unchanged.
    pub fn remove_outputs(&mut self, names: &[String]) -> Result<(), Error> {
        self.whole()?;
        Ok(passes::remove_outputs(&mut self.model, names)?)
    }

    /// Returns the names of the values of the main graph, from which [`extract`](Self::extract) can make inputs and outputs.
    pub fn value_names(&self) -> Vec<&str> {
        passes::values(&self.model).map(|value| self.model.value(value).name.as_str()).collect()
    }

    /// Returns the names of the inputs and of the outputs.
    pub fn interface(&self) -> (Vec<String>, Vec<String>) {
        let interface = Interface::of(&self.model);
        let (inputs, outputs) = interface.names();
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_string).collect();
        (owned(inputs), owned(outputs))
    }

    /// Returns the names of the outputs.
    pub fn output_names(&self) -> Vec<&str> {
        let outputs = self.model.graph(self.model.main()).outputs();
        outputs.iter().map(|&value| self.model.value(value).name.as_str()).collect()
    }

    /// Registers an operator for this model: its type inference and, optionally, its evaluation. Replaces an earlier one with the same
    /// name.
    ///
    /// # Errors
    /// The program already defines an operator with this name.
    pub fn register(&mut self, operator: CustomOperator) -> Result<(), Error> {
        if operator.name().is_empty() || crate::ops::operator(operator.domain(), operator.name()).is_some() {
            return Err(Cause::Taken(format!("{operator:?}")).into());
        }
        self.model.add_custom(operator);
        Ok(())
    }

    /// # Errors
    /// An earlier call left the model in an undefined state.
    fn whole(&self) -> Result<(), Error> {
        if self.half_folded { Err(Cause::HalfFolded.into()) } else { Ok(()) }
    }
}

impl fmt::Debug for OnnxModel {
    /// Shows the size of the model; [`text`](OnnxModel::text) shows its content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let census = Census::of(&self.model);
        f.debug_struct("OnnxModel").field("nodes", &census.nodes()).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// Fails to compile if a public type cannot be sent to another thread.
const _: () = {
    const fn is_send<T: Send>() {}
    const fn is_send_and_sync<T: Send + Sync>() {}
    is_send::<OnnxModel>();
    is_send_and_sync::<Options>();
    is_send_and_sync::<Report>();
    is_send_and_sync::<Error>();
};

#[cfg(test)]
mod tests;
