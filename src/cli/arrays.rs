//! Arrays of NumPy archives (`.npz`) as values of inputs: a ZIP archive of `.npy` files, version 1 to 3.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use bytes::Bytes;
use onnx_slice_fold::{DType, Data, Tensor};
use zip::ZipArchive;

/// The maximum bytes of an array: a few bytes of an archive can request any number.
const MOST_BYTES: u64 = 4 << 30;
/// The maximum bytes of an array's header.
const MOST_OF_HEADER: usize = 1 << 16;

/// Returns the arrays of an archive by name, and the archive's name for messages.
pub(super) fn read(path: &Path) -> anyhow::Result<(String, BTreeMap<String, Data>)> {
    let source = format!("'{}'", path.display());
    let reading = || format!("cannot read {source}");
    let file = File::open(path).with_context(reading)?;
    let mut archive = ZipArchive::new(BufReader::new(file)).with_context(reading)?;
    let mut values = BTreeMap::new();
    for at in 0..archive.len() {
        let entry = archive.by_index(at).with_context(reading)?;
        let name = entry.name().with_context(reading)?.trim_end_matches(".npy").to_string();
        let tensor = tensor(entry).with_context(|| format!("cannot read array '{name}' of {source}"))?;
        values.insert(name, Data::Tensor(tensor));
    }
    Ok((source, values))
}

/// Reads a `.npy` file: a magic number, the length of the header, the header, and the elements in order.
fn tensor(mut file: impl Read) -> anyhow::Result<Tensor> {
    let mut start = [0; 8];
    file.read_exact(&mut start)?;
    let [b'\x93', b'N', b'U', b'M', b'P', b'Y', major, _] = start else { bail!("not an array in the .npy format") };
    let length = if major == 1 {
        let mut length = [0; 2];
        file.read_exact(&mut length)?;
        usize::from(u16::from_le_bytes(length))
    } else {
        let mut length = [0; 4];
        file.read_exact(&mut length)?;
        usize::try_from(u32::from_le_bytes(length))?
    };
    if length > MOST_OF_HEADER {
        bail!("its header has {length} bytes");
    }
    let mut header = vec![0; length];
    file.read_exact(&mut header)?;
    let header = Header::parse(&String::from_utf8_lossy(&header)).ok_or_else(|| anyhow!("its header is malformed"))?;
    if header.is_fortran && header.shape.len() > 1 {
        bail!("the array is in Fortran order; save numpy.ascontiguousarray(x) instead");
    }
    let (dtype, size) = element(&header.element)
        .ok_or_else(|| anyhow!("unsupported element type '{}'; use floats, integers or booleans", header.element))?;
    let bytes = header.shape.iter().try_fold(size, |bytes, &size| bytes.checked_mul(u64::try_from(size).ok()?));
    let bytes = bytes.filter(|&bytes| bytes <= MOST_BYTES);
    let bytes = bytes.ok_or_else(|| anyhow!("the array is larger than {} GiB", MOST_BYTES >> 30))?;
    // The header may declare more data than the file contains.
    let mut payload = Vec::new();
    file.take(bytes).read_to_end(&mut payload)?;
    if header.element.starts_with('>') {
        payload.chunks_exact_mut(usize::try_from(size)?).for_each(<[u8]>::reverse);
    }
    Ok(Tensor::from_bytes(dtype, &header.shape, Bytes::from(payload))?)
}

/// Returns the element type, and the bytes of an element.
fn element(text: &str) -> Option<(DType, u64)> {
    Some(match text.trim_start_matches(['<', '>', '|', '=']) {
        "f2" => (DType::Float16, 2),
        "f4" => (DType::Float, 4),
        "f8" => (DType::Double, 8),
        "i1" => (DType::Int8, 1),
        "i2" => (DType::Int16, 2),
        "i4" => (DType::Int32, 4),
        "i8" => (DType::Int64, 8),
        "u1" => (DType::Uint8, 1),
        "u2" => (DType::Uint16, 2),
        "u4" => (DType::Uint32, 4),
        "u8" => (DType::Uint64, 8),
        "b1" => (DType::Bool, 1),
        _ => return None,
    })
}

/// The header: the text of a Python dictionary with three keys.
#[derive(Debug, PartialEq, Eq)]
struct Header {
    element: String,
    is_fortran: bool,
    shape: Vec<usize>,
}

impl Header {
    fn parse(text: &str) -> Option<Header> {
        let after = |key: &str| Some(text.split_once(key)?.1.trim_start().strip_prefix(':')?.trim_start());
        let element = after("'descr'")?.strip_prefix('\'')?.split_once('\'')?.0.to_string();
        let is_fortran = after("'fortran_order'")?.starts_with("True");
        let sizes = after("'shape'")?.strip_prefix('(')?.split_once(')')?.0;
        let sizes = sizes.split(',').map(str::trim).filter(|size| !size.is_empty());
        Some(Header { element, is_fortran, shape: sizes.map(|size| size.parse().ok()).collect::<Option<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an array in NumPy's format.
    fn array(header: &str, payload: &[u8]) -> Vec<u8> {
        let length = u16::try_from(header.len()).unwrap().to_le_bytes();
        [&b"\x93NUMPY\x01\x00"[..], &length, header.as_bytes(), payload].concat()
    }

    #[test]
    fn arrays_are_read() {
        let matrix = array("{'descr': '<i2', 'fortran_order': False, 'shape': (1, 2), }  \n", &[1, 0, 2, 1]);
        let read = tensor(&matrix[..]).unwrap();
        assert_eq!((read.dtype(), read.shape(), read.to_i64s()), (DType::Int16, &[1, 2][..], Some(vec![1, 258])));
        let turned = array("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }", &[0, 1, 1, 2]);
        assert_eq!(tensor(&turned[..]).unwrap().to_i64s(), Some(vec![1, 258]));
        let scalar = array("{'descr': '|b1', 'fortran_order': True, 'shape': (), }", &[1]);
        assert_eq!(tensor(&scalar[..]).unwrap().bools(), Some(vec![true]));
    }

    #[test]
    fn other_files_are_refused() {
        let header = |element: &str, order: &str, shape: &str| {
            array(&format!("{{'descr': '{element}', 'fortran_order': {order}, 'shape': {shape}, }}"), &[0; 8])
        };
        for (bytes, reason) in [
            (header("<f4", "True", "(1, 2)"), "Fortran order"),
            (header("<U3", "False", "(2,)"), "unsupported element type '<U3'"),
            (header("<f8", "False", "(99999999999, 99999999999)"), "larger than 4 GiB"),
            (header("<f8", "False", "(7,)"), "bytes"),
            (header("<f8", "False", "(-1,)"), "malformed"),
            (b"PK\x03\x04 and more".to_vec(), "not an array"),
        ] {
            let said = tensor(&bytes[..]).unwrap_err().to_string();
            assert!(said.contains(reason), "{said}");
        }
    }
}
