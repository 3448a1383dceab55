//! A model on its way through the program: opened, folded, saved.

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

/// An ONNX model: opened, to be folded and written.
///
/// What is large stays where it is: the payloads of tensors are slices of the file, or of the bytes it was made from, until they
/// are written. The model may be sent to another thread between calls.
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
    /// The symbols that dimensions are expressions of. While the passes run they share it; between calls it is owned here alone,
    /// which is what makes the whole `Send`.
    scope: Scope,
    source: Option<Source>,
    /// Bytes of the file, or of the bytes it was made from.
    bytes: usize,
    /// Bytes of its tensors that lie in other files.
    external_bytes: u64,
    /// Whether the passes were ended by an error, so that the model may be anything.
    half_folded: bool,
}

impl OnnxModel {
    /// Opens and decodes a model file. External data is looked for below the directory of `path`, and below the directory of the file that
    /// `path` leads to if it is a symbolic link. Tensors whose data file is missing have no values, which
    /// [`missing_data`](Self::missing_data) tells.
    ///
    /// # Errors
    /// If the file cannot be read, is no well-formed model, or asks for more than is allowed. The text names the place and the
    /// reason.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, &OpenOptions::new())
    }

    /// The same with options: other directories for external data.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self, Error> {
        let path = path.as_ref();
        Self::decoded(onnx::open(path)?, options, &|| format!("cannot read {}", onnx::QuotedPath(path)))
    }

    /// Decodes a model that is in memory: the bytes of a `ModelProto`. Bytes that are given away, such as a `Vec<u8>`, are not
    /// copied. Tensors whose data lie in files have no values.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self, Error> {
        Self::from_bytes_with(bytes, &OpenOptions::new())
    }

    /// The same for a model with external data, which is looked for beneath `directory`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes_in(bytes: impl Into<Bytes>, directory: impl AsRef<Path>) -> Result<Self, Error> {
        Self::from_bytes_with(bytes, &OpenOptions::new().external_data_root(directory.as_ref()))
    }

    /// The same with options. The first directory for external data is taken as the model's own.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes_with(bytes: impl Into<Bytes>, options: &OpenOptions) -> Result<Self, Error> {
        Self::decoded(Source::of_bytes(bytes.into()), options, &|| "cannot read the model".to_string())
    }

    /// Decodes a model that is held outside of memory, such as in a Blob of a browser: `model` reads any part of it, and `find` returns the data
    /// file at a location, `None` if it is missing, or the reason why it must not be read. Only the graph and small payloads are read; others are read where folding needs their values.
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

    /// The model as it is now.
    #[doc(hidden)]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The symbols its dimensions are expressions of.
    #[doc(hidden)]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The data files that the model refers to and that were not found when it was opened. Their tensors have type and shape and no
    /// values: nodes that read them are kept, and the model is written with the same references.
    pub fn missing_data(&self) -> Vec<MissingData> {
        self.source.iter().flat_map(|source| source.data.missing().cloned()).collect()
    }

    /// Makes of the model the part of it between these values: `inputs` become its inputs and `outputs` its outputs, in the order given. All
    /// outputs stay if none is given, and all inputs likewise. Values computed on the way that become inputs have the type that is
    /// inferred for them under `options`. What these assume of inputs is not used here: it is for the part, when that is folded.
    ///
    /// # Errors
    /// The model has no such value; what is given as an input is a constant, or of unknown type; an output needs an input that is not
    /// given. The model is as it was then, unless the options are wrong.
    pub fn extract(&mut self, inputs: &[String], outputs: &[String], options: &Options) -> Result<(), Error> {
        if !inputs.is_empty() {
            let mut options = options.clone().fold(false);
            options.assumptions.clear();
            self.fold(&options)?;
        }
        self.whole()?;
        Ok(passes::extract(&mut self.model, inputs, outputs)?)
    }

    /// Takes outputs away. The inputs stay, needed or not.
    ///
    /// # Errors
    /// The model has no such output, or no other. It is as it was then.
    pub fn remove_outputs(&mut self, names: &[String]) -> Result<(), Error> {
        self.whole()?;
        Ok(passes::remove_outputs(&mut self.model, names)?)
    }

    /// The names of the values of the main graph, of which [`extract`](Self::extract) makes inputs and outputs.
    pub fn value_names(&self) -> Vec<&str> {
        passes::values(&self.model).map(|value| self.model.value(value).name.as_str()).collect()
    }

    /// The names of the inputs, and of the outputs.
    pub fn interface(&self) -> (Vec<String>, Vec<String>) {
        let interface = Interface::of(&self.model);
        let (inputs, outputs) = interface.names();
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_string).collect();
        (owned(inputs), owned(outputs))
    }

    /// The names of the outputs.
    pub fn output_names(&self) -> Vec<&str> {
        let outputs = self.model.graph(self.model.main()).outputs();
        outputs.iter().map(|&value| self.model.value(value).name.as_str()).collect()
    }

    /// Makes an operator known for this model: what its nodes make of types and, if it says so, of values. One that was registered
    /// before under the same name is replaced.
    ///
    /// # Errors
    /// The program knows an operator of this name, and takes nodes for that.
    pub fn register(&mut self, operator: CustomOperator) -> Result<(), Error> {
        if operator.name().is_empty() || crate::ops::operator(operator.domain(), operator.name()).is_some() {
            return Err(Cause::Taken(format!("{operator:?}")).into());
        }
        self.model.add_custom(operator);
        Ok(())
    }

    /// # Errors
    /// An earlier call left the model half folded.
    fn whole(&self) -> Result<(), Error> {
        if self.half_folded { Err(Cause::HalfFolded.into()) } else { Ok(()) }
    }
}

impl fmt::Debug for OnnxModel {
    /// How large it is; [`text`](OnnxModel::text) shows what is in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let census = Census::of(&self.model);
        f.debug_struct("OnnxModel").field("nodes", &census.nodes()).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// Fails to compile if what users hold between calls cannot go to another thread.
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
