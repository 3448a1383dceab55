//! Writes a model of the intermediate representation to a file: places the payloads, then writes the bytes.

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

/// The treatment of tensors whose data is in external files of the opened model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExternalData {
    /// Refers to data in the output's own directory that no symbolic link leads out of. Copies all other data to a
    /// file next to the output.
    #[default]
    Keep,
    /// Copies data to a file next to the output. Refers to the existing file instead if the copy would equal it.
    Copy,
    /// Refers to the data. The output's directory must be the model's or one above it, and no symbolic link may lead out of
    /// it.
    Link,
    /// Writes the data into the output itself.
    Inline,
}

/// Options for writing a model.
///
/// A model that exceeds the 2 GiB of a protobuf message always gets a data file. If the opened model has external
/// data, new tensors of at least [`threshold`](Self::threshold) bytes go to a data file, too. Two kinds of tensors
/// are exceptions:
/// * up to 16 MiB of new constants that are added before normalizations: optimizers need them in the model;
/// * tensors that may be sizes: ONNX Runtime reads sizes from the model file only. These are vectors and scalars of
///   integers below 1024 bytes or of up to eight floats.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SaveOptions {
    /// The treatment of data that already is in external files.
    pub external_data: ExternalData,
    /// `true` if tensors go to a data file although they need not.
    pub save_as_external_data: bool,
    /// The smallest byte length of a tensor in a data file. Small tensors, from which shapes are computed, remain in
    /// the model.
    pub threshold: usize,
}

/// Smaller payloads are always in the model file.
const STAYS: usize = 1024;

/// The largest number of floats that may be sizes: scales of a Resize, limits of a Range.
const SCALES: usize = 8;

impl Default for SaveOptions {
    fn default() -> Self {
        SaveOptions { external_data: ExternalData::Keep, save_as_external_data: false, threshold: STAYS }
    }
}

impl SaveOptions {
    /// Creates options that keep data in their files where possible.
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

/// A written file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SavedFile {
    /// The path of the target or of its data file.
    pub path: PathBuf,
    /// The size in bytes.
    pub bytes: u64,
}

/// The written files and their sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// The model file.
    pub model: SavedFile,
    /// The new data file, if any.
    pub data: Option<SavedFile>,
    /// The number of external tensor bytes of the model, in new and old data files.
    pub external_bytes: u64,
    /// The size of the model as one file, if it exceeds the limit of a protobuf message.
    pub too_large: Option<u64>,
}

/// Returns the number of tensor bytes of a model that are in external files.
pub fn external_bytes(model: &Model) -> u64 {
    payload_bytes(model, initializers(model).filter(|&value| origin(model, value).is_some()))
}

/// Writes `model` to `target` atomically.
///
/// # Errors
/// The target cannot be written or is a data file of the source; the target's location cannot refer to the data; or
/// the source changed meanwhile. No file is created then.
pub fn store(model: &Model, target: &Path, source: Option<&Source>, options: &SaveOptions) -> Result<Saved, SaveError> {
    let mut open = |path: &Path| Ok(Filler::new(NewFile::create(path, source)?, source));
    place_and_write(model, (target, source), options, &mut open, |exported, measured, data| {
        let Exported { model: proto, unknown, deferred, apart } = exported;
        let apart = Some(apart);
        write_model(target, Parts { model: proto, unknown, deferred, apart, measured, data, source })
    })
}

/// Receives the files of a model for a host: bytes and ranges of the host's files, in order.
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

/// Writes a model to files of a host. `target` is the name of the model file.
///
/// # Errors
/// The host fails, or the source cannot be read.
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
        // Unreadable payloads were written as zeros.
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

/// Writes tensors to a data file as needed, and then the model by `write`, which returns its size.
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

/// Returns `true` if an initializer can be external and has at least `least` bytes.
fn store_at(model: &Model, value: ValueId, least: usize) -> bool {
    model.value(value).tensor().is_some_and(|tensor| can_leave(tensor) && tensor.byte_len() >= least)
}

/// Returns `true` if a tensor can be external. ONNX Runtime infers shapes from sizes in the model only, and rejects a
/// model with external sizes; a node between such a tensor and its consumer may be removed. Empty tensors have no
/// bytes to store.
fn can_leave(tensor: &Tensor) -> bool {
    let may_be_sizes = match tensor.dtype() {
        DType::Int32 | DType::Int64 => tensor.byte_len() < STAYS,
        DType::Float | DType::Double => tensor.len() <= SCALES,
        _ => false,
    };
    tensor.strings().is_none() && !tensor.is_empty() && !(may_be_sizes && tensor.rank() <= 1)
}

/// Encodes `model` with all its payloads, including those from data files of the source.
///
/// # Errors
/// The model exceeds the limit of one protobuf message, or the source changed meanwhile.
pub fn to_bytes(model: &Model, source: Option<&Source>) -> Result<Vec<u8>, SaveError> {
    let exported = export_apart(model, &Externals::default())?;
    let encoded = exported.measure().map_err(in_memory)?;
    let mut bytes = Vec::with_capacity(usize::try_from(encoded.len()).unwrap_or(0));
    encoded.write(&mut bytes).map_err(in_memory)?;
    // Mapped payloads of a truncated file read as zeros.
    source.map_or(Ok(()), Source::verify)?;
    Ok(bytes)
}

/// Returns the number of bytes of a model as one message.
///
/// # Errors
/// The model exceeds the limit of one protobuf message.
pub fn length(model: &Model) -> Result<u64, SaveError> {
    Ok(export_apart(model, &Externals::default())?.measure().map_err(in_memory)?.len())
}

fn in_memory(error: EncodeError) -> SaveError {
    match error {
        EncodeError::TooLarge(bytes) => SaveError::TooLarge(bytes),
        EncodeError::Io(error) => SaveError::Write { target: "memory".into(), error: error.into() },
    }
}

/// A model that is being written to files.
struct Store<'s, 'o, O> {
    model: &'s Model,
    target: &'s Path,
    source: Option<&'s Source>,
    /// Opens the data file.
    open: &'o mut dyn FnMut(&Path) -> Result<O, SaveError>,
    /// The data file, once it has content.
    data: Option<DataWriter<'s, O>>,
    /// The `external_data` entries of external initializers.
    externals: Externals,
}

impl<O: NewData> Store<'_, '_, O> {
    /// Places all tensors whose place does not depend on the size of the model.
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

    /// Returns the references for a new data file that would equal the existing one in `directory`. That file is the
    /// result of an earlier run and need not be copied.
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

    /// Returns the location of uncopied data for a model in `directory`; `None` if the data is copied or missing.
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

    /// Appends the payloads of these initializers to the data file, unless they are external already. Creates the
    /// file if needed.
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

/// Returns the entries of uncopied data with another location.
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

/// Returns the number of bytes of these payloads, each shared payload counted once.
fn payload_bytes(model: &Model, values: impl Iterator<Item = ValueId>) -> u64 {
    let mut seen = FxHashSet::default();
    let payloads = values.filter_map(|value| model.value(value).tensor()).map(Tensor::payload_key);
    let once = payloads.filter(|&payload| seen.insert(payload));
    once.fold(0, |sum, (_, _, len)| sum.saturating_add(len as u64))
}

/// Returns the initializers of all live graphs.
fn initializers(model: &Model) -> impl Iterator<Item = ValueId> + '_ {
    let live = model.graphs().filter(|&graph| model.is_live(graph));
    live.flat_map(|graph| model.graph(graph).initializers().iter().copied())
}
