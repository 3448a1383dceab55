//! Writing a model of the intermediate representation to a file: which payloads go where, then the bytes.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};

use rustc_hash::{FxHashMap, FxHashSet};

use super::data::{DataWriter, offset_after};
use super::encode::{Destination, EncodeError, Encoded};
use super::export::{Exported, Externals, export_apart};
use super::external::Reference;
use super::fill::Filler;
use super::fill::NewData;
use super::proto::StringStringEntryProto;
use super::save::{NewFile, SaveError, directory_of};
use super::source::Source;
use super::write::{Parts, write_model};
use crate::ir::{ExternalOrigin, Model, ValueId};
use crate::tensor::{ByteRange, DType, Tensor};

/// What becomes of tensors whose data lie in files beside the model that was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExternalData {
    /// The output refers to data in its own directory that no symbolic link leads out of. Other data are copied to a file next to the
    /// output.
    #[default]
    Keep,
    /// Data are copied to a file next to the output, unless the copy would equal the file next to the output that holds them already.
    Copy,
    /// The output refers to the data: its directory must be that of the model, or one above it, and no symbolic link may lead out of it.
    Link,
    /// They go into the output itself.
    Inline,
}

/// How a model is written.
///
/// Whatever these say, the data of a model that would exceed the 2 GiB of a protobuf message go to a file beside it. And where the model that
/// was opened has external data, tensors that folding made go to a file as well, not into the output: those of at least
/// [`threshold`](Self::threshold) bytes. Up to 16 MiB that folding made stay in the output all the same: constants that are added before
/// normalizations, which optimizers want as nodes. Nor does what may be sizes, which ONNX Runtime reads of the model file alone: vectors and
/// single numbers, of integers of fewer than 1024 bytes and of up to eight floats.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SaveOptions {
    /// What becomes of data that lie in files already.
    pub external_data: ExternalData,
    /// Whether tensors go to a data file that need not.
    pub save_as_external_data: bool,
    /// Bytes from which on a tensor goes to a data file. The small ones, which shapes are computed of, stay in the model.
    pub threshold: usize,
}

/// Payloads of fewer bytes stay in the model file even when others leave it.
const STAYS: usize = 1024;

/// Floats of a vector that may be sizes: a scale for each axis of a Resize, the limits of a Range.
const SCALES: usize = 8;

impl Default for SaveOptions {
    fn default() -> Self {
        SaveOptions { external_data: ExternalData::Keep, save_as_external_data: false, threshold: STAYS }
    }
}

impl SaveOptions {
    /// Data stay where they are, as far as that is possible.
    pub fn new() -> Self {
        SaveOptions::default()
    }

    /// Sets [`external_data`](Self::external_data).
    #[must_use]
    pub fn external_data(mut self, external_data: ExternalData) -> Self {
        self.external_data = external_data;
        self
    }

    /// Sets [`save_as_external_data`](Self::save_as_external_data).
    #[must_use]
    pub fn save_as_external_data(mut self, save_as_external_data: bool) -> Self {
        self.save_as_external_data = save_as_external_data;
        self
    }

    /// Sets [`threshold`](Self::threshold).
    #[must_use]
    pub fn threshold(mut self, threshold: usize) -> Self {
        self.threshold = threshold;
        self
    }
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SavedFile {
    /// Its path: the target, or beside it.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// The model file.
    pub model: SavedFile,
    /// Its data file, if there is one that is new.
    pub data: Option<SavedFile>,
    /// Bytes of tensors that the model refers to, in that file and in those that are left where they are.
    pub external_bytes: u64,
    /// The bytes that the model would have taken as one file, where these were more than a protobuf message may have.
    pub too_large: Option<u64>,
}

/// Bytes of the tensors of a model that lie in files beside it.
pub fn external_bytes(model: &Model) -> u64 {
    payload_bytes(model, initializers(model).filter(|&value| origin(model, value).is_some()))
}

/// Writes `model` to `target`, whole or not at all.
///
/// # Errors
/// If the target cannot be written, is one of the source's data files, data are to be referred to from where that cannot be, or the source
/// changed meanwhile; nothing is left behind then.
pub fn store(model: &Model, target: &Path, source: Option<&Source>, options: &SaveOptions) -> Result<Saved, SaveError> {
    let mut open = |path: &Path| Ok(Filler::new(NewFile::create(path, source)?, source));
    place_and_write(model, (target, source), options, &mut open, |exported, measured, data| {
        let Exported { model: proto, unknown, deferred, apart } = exported;
        let apart = Some(apart);
        write_model(target, Parts { model: proto, unknown, deferred, apart, measured, data, source })
    })
}

/// Files of a host that take a model: bytes and ranges of the files of the host, in order.
pub trait ModelSink {
    /// Appends bytes to the model, or to its data file.
    ///
    /// # Errors
    /// The error of the host.
    fn bytes(&mut self, is_data: bool, bytes: &[u8]) -> io::Result<()>;

    /// Appends a range of a file of the host.
    ///
    /// # Errors
    /// The error of the host.
    fn range(&mut self, is_data: bool, range: &ByteRange) -> io::Result<()>;
}

/// The same to files of a host. `target` is the name of the model file.
///
/// # Errors
/// If the host fails, or the source could not be read.
pub fn store_to(
    model: &Model,
    target: &Path,
    source: Option<&Source>,
    options: &SaveOptions,
    sink: &mut dyn ModelSink,
) -> Result<Saved, SaveError> {
    let sink = RefCell::new(sink);
    let out = |is_data| HostFile { sink: &sink, target, is_data, len: 0 };
    place_and_write(model, (target, source), options, &mut |_| Ok(out(true)), |exported, measured, _| {
        let (mut file, measured) = (out(false), measured.map_or_else(|| exported.measure(), Ok));
        let written = measured.and_then(|encoded| encoded.write(&mut file).map(|()| encoded.len()));
        // Payloads that could not be read were written as zeros.
        source.map_or(Ok(()), Source::verify)?;
        written.map_err(|error| SaveError::Write { target: target.to_path_buf(), error })
    })
}

/// A file of a host.
struct HostFile<'s, 'm> {
    sink: &'s RefCell<&'m mut dyn ModelSink>,
    target: &'s Path,
    is_data: bool,
    len: u64,
}

impl Destination for HostFile<'_, '_> {
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.len = self.len.saturating_add(bytes.len() as u64);
        self.sink.borrow_mut().bytes(self.is_data, bytes)
    }

    fn deferred(&mut self, tensor: &Tensor) -> io::Result<()> {
        let Some(range) = tensor.range() else { return self.computed(tensor, &mut Vec::new()) };
        self.len = self.len.saturating_add(range.len() as u64);
        self.sink.borrow_mut().range(self.is_data, range)
    }
}

impl NewData for HostFile<'_, '_> {
    fn len(&self) -> u64 {
        self.len
    }

    fn must_hold(&self, _: u64) -> Result<(), SaveError> {
        Ok(())
    }

    fn failed(&self, error: io::Error) -> SaveError {
        SaveError::Write { target: self.target.to_path_buf(), error: error.into() }
    }
}

/// Writes the tensors of a model that belong into a data file, and then the model by `write`, which returns its size.
fn place_and_write<'s, O: NewData>(
    model: &'s Model,
    (target, source): (&'s Path, Option<&'s Source>),
    options: &SaveOptions,
    open: &mut dyn FnMut(&Path) -> Result<O, SaveError>,
    write: impl FnOnce(&Exported, Option<Encoded>, Option<DataWriter<'s, O>>) -> Result<u64, SaveError>,
) -> Result<Saved, SaveError> {
    let mut store = Store { model, target, source, open, data: None, externals: Externals::default() };
    store.known(options)?;
    let whole = export_apart(model, &store.externals)?;
    let parted;
    let (exported, measured, too_large) = match whole.measure() {
        Err(EncodeError::TooLarge(bytes)) => {
            let least = options.threshold.min(STAYS);
            store.place(&|value| store_at(model, value, least))?;
            parted = export_apart(model, &store.externals)?;
            (&parted, None, Some(bytes))
        }
        measured => (&whole, measured.ok(), None),
    };
    let Store { data, externals, .. } = store;
    let external_bytes = payload_bytes(model, initializers(model).filter(|value| externals.contains_key(value)));
    let name = |data: &DataWriter<O>| SavedFile { path: target.with_file_name(data.location()), bytes: data.len() };
    let written = data.as_ref().map(name);
    let bytes = write(exported, measured, data)?;
    let model = SavedFile { path: target.to_path_buf(), bytes };
    Ok(Saved { model, data: written, external_bytes, too_large })
}

/// Whether an initializer can lie in a file and has at least so many bytes.
fn store_at(model: &Model, value: ValueId, least: usize) -> bool {
    model.value(value).tensor().is_some_and(|tensor| can_leave(tensor) && tensor.byte_len() >= least)
}

/// Whether a tensor can lie in a data file. ONNX Runtime reads sizes, which it infers shapes of, in the model alone, and refuses to load a
/// model that has them elsewhere: a node between such a tensor and its reader may be gone. Of nothing it asks for a place in the file.
fn can_leave(tensor: &Tensor) -> bool {
    let may_be_sizes = match tensor.dtype() {
        DType::Int32 | DType::Int64 => tensor.byte_len() < STAYS,
        DType::Float | DType::Double => tensor.len() <= SCALES,
        _ => false,
    };
    tensor.strings().is_none() && !tensor.is_empty() && !(may_be_sizes && tensor.rank() <= 1)
}

/// The bytes of `model`, whole: payloads that lay in data files of the source are among them.
///
/// # Errors
/// If they are more than one protobuf message may have, or the source changed meanwhile.
pub fn to_bytes(model: &Model, source: Option<&Source>) -> Result<Vec<u8>, SaveError> {
    let exported = export_apart(model, &Externals::default())?;
    let encoded = exported.measure().map_err(in_memory)?;
    let mut bytes = Vec::with_capacity(usize::try_from(encoded.len()).unwrap_or(0));
    encoded.write(&mut bytes).map_err(in_memory)?;
    // Mapped payloads that were cut meanwhile read as zeros.
    source.map_or(Ok(()), Source::verify)?;
    Ok(bytes)
}

/// The bytes that a model takes in one message.
///
/// # Errors
/// If they are more than one protobuf message may have.
pub fn length(model: &Model) -> Result<u64, SaveError> {
    Ok(export_apart(model, &Externals::default())?.measure().map_err(in_memory)?.len())
}

fn in_memory(error: EncodeError) -> SaveError {
    match error {
        EncodeError::TooLarge(bytes) => SaveError::TooLarge(bytes),
        EncodeError::Io(error) => SaveError::Write { target: "memory".into(), error: error.into() },
    }
}

/// A model on its way to a file.
struct Store<'s, 'o, O> {
    model: &'s Model,
    target: &'s Path,
    source: Option<&'s Source>,
    /// Opens the data file.
    open: &'o mut dyn FnMut(&Path) -> Result<O, SaveError>,
    /// The data file, once something goes there.
    data: Option<DataWriter<'s, O>>,
    /// What lies in data files, by their entries.
    externals: Externals,
}

impl<O: NewData> Store<'_, '_, O> {
    /// Decides about all that does not depend on how large the model is.
    fn known(&mut self, options: &SaveOptions) -> Result<(), SaveError> {
        let (model, source) = (self.model, self.source);
        let inline = options.external_data == ExternalData::Inline;
        let directory = std::fs::canonicalize(directory_of(self.target)).ok();
        for value in initializers(model) {
            let tensor = model.value(value).tensor();
            let Some(origin) = origin(model, value).filter(|_| tensor.is_none_or(can_leave)) else { continue };
            let location = self.location(origin, tensor.is_none(), (directory.as_deref(), options.external_data))?;
            if let Some(location) = location {
                self.externals.insert(value, entries(origin, &location));
            }
        }
        let had_files = source.is_some_and(|source| source.data.are_some());
        let is_new =
            |value| source.zip(model.value(value).tensor()).is_some_and(|(source, tensor)| !source.holds(tensor));
        let leaves = |value| {
            let was_external = origin(model, value).is_some();
            let is_large = || store_at(model, value, options.threshold);
            was_external && !inline
                || options.save_as_external_data && is_large()
                || had_files && !inline && !was_external && is_large() && is_new(value)
        };
        if let Some(repeated) = directory.and_then(|directory| self.repeated(&directory, &leaves)) {
            self.externals.extend(repeated);
        }
        self.place(&leaves)
    }

    /// The references of all tensors for a new data file, if that file would equal the one in `directory` that holds them already: the result
    /// of an earlier run, whose data need not be copied again.
    fn repeated(
        &self,
        directory: &Path,
        leaves: &dyn Fn(ValueId) -> bool,
    ) -> Option<Vec<(ValueId, Vec<StringStringEntryProto>)>> {
        let (model, source) = (self.model, self.source?);
        let (mut found, mut file, mut len) = (Vec::new(), None, 0);
        let mut placed = FxHashMap::default();
        for value in initializers(model).filter(|value| !self.externals.contains_key(value) && leaves(*value)) {
            let Some(tensor) = model.value(value).tensor().filter(|tensor| can_leave(tensor)) else { continue };
            let origin = origin(model, value)?;
            let entries = entries(origin, origin.location()?);
            let reference = Reference::parse(&entries).ok()?;
            let (key, length) = (tensor.payload_key(), tensor.byte_len() as u64);
            let offset = *placed.entry(key).or_insert_with(|| {
                let offset = offset_after(len, length);
                len = offset.saturating_add(length);
                offset
            });
            let is_there = reference.offset == offset && reference.length.is_none_or(|there| there == length);
            let is_same_file = *file.get_or_insert_with(|| reference.location.to_owned()) == reference.location;
            (is_there && is_same_file).then(|| found.push((value, entries)))?;
        }
        (source.data.len_beside(&file?, directory)? == len).then_some(found)
    }

    /// The location by which a model in `directory` refers to data that are not copied; `None` if they are copied, or missing.
    fn location(
        &self,
        origin: &ExternalOrigin,
        is_missing: bool,
        (directory, external_data): (Option<&Path>, ExternalData),
    ) -> Result<Option<String>, SaveError> {
        let refers = matches!(external_data, ExternalData::Keep | ExternalData::Link);
        let Some((source, location)) = self.source.filter(|_| refers).zip(origin.location()) else { return Ok(None) };
        if source.is_hosted() {
            return Ok(Some(location.to_string()));
        }
        match (directory.and_then(|directory| source.data.location_from(location, directory)), external_data) {
            // Only `Link` refers to data in a directory below.
            (Some(there), ExternalData::Keep) => Ok((there == location).then_some(there)),
            (None, ExternalData::Link) if !is_missing => Err(SaveError::Target {
                target: self.target.to_path_buf(),
                reason: "cannot refer to the data of the model: they lie outside of its directory, where no model may look for them; \
                         copy them or write the model elsewhere"
                    .into(),
            }),
            (there, _) => Ok(there),
        }
    }

    /// Puts the payloads of these initializers into the data file, beginning it if need be, unless they lie in one already.
    fn place(&mut self, leaves: &dyn Fn(ValueId) -> bool) -> Result<(), SaveError> {
        for value in initializers(self.model) {
            if self.externals.contains_key(&value) || !leaves(value) {
                continue;
            }
            let tensor = self.model.value(value).tensor().filter(|tensor| can_leave(tensor));
            let Some(tensor) = tensor else { continue };
            let writer = match &mut self.data {
                Some(writer) => writer,
                None => self.data.insert(DataWriter::begin(self.target, self.source, self.open)?),
            };
            let placement = writer.place_tensor(tensor)?;
            self.externals.insert(value, writer.entries(placement));
        }
        Ok(())
    }
}

/// The entries of data that are not copied, with another location.
fn entries(origin: &ExternalOrigin, location: &str) -> Vec<StringStringEntryProto> {
    let entry = |(key, value): &(String, String)| {
        let value = if key == "location" { location.to_string() } else { value.clone() };
        StringStringEntryProto { key: Some(key.clone()), value: Some(value) }
    };
    origin.entries.iter().map(entry).collect()
}

fn origin(model: &Model, value: ValueId) -> Option<&ExternalOrigin> {
    model.value(value).constant.as_ref()?.origin.as_ref()
}

/// Bytes of these, each payload that several share once.
fn payload_bytes(model: &Model, values: impl Iterator<Item = ValueId>) -> u64 {
    let mut seen = FxHashSet::default();
    let payloads = values.filter_map(|value| model.value(value).tensor()).map(Tensor::payload_key);
    let once = payloads.filter(|&payload| seen.insert(payload));
    once.fold(0, |sum, (_, _, len)| sum.saturating_add(len as u64))
}

/// Initializers of every graph that still belongs to the model.
fn initializers(model: &Model) -> impl Iterator<Item = ValueId> + '_ {
    let live = model.graphs().filter(|&graph| model.is_live(graph));
    live.flat_map(|graph| model.graph(graph).initializers().iter().copied())
}
