//! Writing a model of the intermediate representation to a file: which payloads go where, then the bytes.

use std::path::Path;

use super::data::DataWriter;
use super::encode::{EncodeError, Encoded};
use super::export::{Externals, export};
use super::proto::StringStringEntryProto;
use super::save::SaveError;
use super::source::Source;
use super::write::{Parts, write_model};
use crate::ir::{Model, ValueId};
use crate::tensor::Tensor;

/// Payloads of fewer bytes stay in the model file even when others have to leave it.
const STAYS: usize = 1024;

/// Writes `model` to `target`, whole or not at all. Returns the bytes of the model file.
///
/// Payloads that lay in data files of the source stay there when the target is in the source's directory and are copied
/// to a data file beside the target otherwise. A model too large for one protobuf message gets a data file, too.
///
/// # Errors
/// If the target cannot be written, is one of the source's data files, or the source changed meanwhile; nothing is left
/// behind then.
pub fn store(model: &Model, target: &Path, source: Option<&Source>) -> Result<u64, SaveError> {
    let beside = source.is_some_and(|source| source.data.serve(target));
    let mut externals = Externals::default();
    let mut data = None;
    let mut leaving: Vec<ValueId> = Vec::new();
    for value in initializers(model) {
        let Some(origin) = model.value(value).constant.as_ref().and_then(|constant| constant.origin.as_ref()) else {
            continue;
        };
        if beside {
            let entry = |(key, value): &(String, String)| StringStringEntryProto {
                key: Some(key.clone()),
                value: Some(value.clone()),
            };
            externals.insert(value, origin.entries.iter().map(entry).collect());
        } else {
            leaving.push(value);
        }
    }
    place(model, &leaving, &mut data, &mut externals, target, source)?;
    let (mut proto, mut unknown) = export(model, &externals)?;
    let too_large = matches!(Encoded::measure(&proto, &unknown), Err(EncodeError::TooLarge(_)));
    if too_large {
        let large = |value: &ValueId| model.value(*value).tensor().is_some_and(|tensor| tensor.byte_len() >= STAYS);
        let leaving: Vec<ValueId> =
            initializers(model).filter(|value| !externals.contains_key(value)).filter(large).collect();
        place(model, &leaving, &mut data, &mut externals, target, source)?;
        (proto, unknown) = export(model, &externals)?;
    }
    write_model(target, Parts { model: &proto, unknown: &unknown, data, source })
}

/// The bytes of `model`, whole: payloads that lay in data files of the source are among them.
///
/// # Errors
/// If they are more than one protobuf message may have, or the source changed meanwhile.
pub fn to_bytes(model: &Model, source: Option<&Source>) -> Result<Vec<u8>, SaveError> {
    let (proto, unknown) = export(model, &Externals::default())?;
    let encoded = Encoded::measure(&proto, &unknown).map_err(in_memory)?;
    let mut bytes = Vec::with_capacity(usize::try_from(encoded.len()).unwrap_or(0));
    encoded.write(&mut bytes).map_err(in_memory)?;
    // Mapped payloads that were cut meanwhile read as zeros.
    source.map_or(Ok(()), Source::verify)?;
    Ok(bytes)
}

fn in_memory(error: EncodeError) -> SaveError {
    match error {
        EncodeError::TooLarge(bytes) => SaveError::TooLarge(bytes),
        EncodeError::Io(error) => SaveError::Write { target: "memory".into(), error: error.into() },
    }
}

/// Puts the payloads of these initializers into the data file, beginning it if need be.
fn place<'s>(
    model: &Model,
    values: &[ValueId],
    data: &mut Option<DataWriter<'s>>,
    externals: &mut Externals,
    target: &Path,
    source: Option<&'s Source>,
) -> Result<(), SaveError> {
    for &value in values {
        let Some(bytes) = model.value(value).tensor().filter(|tensor| tensor.strings().is_none()).map(Tensor::bytes)
        else {
            continue;
        };
        let writer = match data {
            Some(writer) => writer,
            None => data.insert(DataWriter::create(target, source)?),
        };
        let placement = writer.place(bytes)?;
        externals.insert(value, writer.entries(placement));
    }
    Ok(())
}

/// Initializers of every graph that still belongs to the model.
fn initializers(model: &Model) -> impl Iterator<Item = ValueId> + '_ {
    let live = model.graphs().filter(|&graph| model.is_live(graph));
    live.flat_map(|graph| model.graph(graph).initializers().iter().copied())
}
