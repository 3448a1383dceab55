//! Prints and parses tensor contents as lists of elements.

use bytes::Bytes;
use half::{bf16, f16};

use crate::tensor::{DType, Tensor, pack};

/// An element as written.
#[derive(Clone, Debug)]
pub(super) enum Element {
    Number(String),
    Text(Vec<u8>),
}

/// The largest number of elements that are printed.
pub(super) const SHOWN: usize = 64;

/// Prints the elements of a tensor, at most [`SHOWN`].
pub(super) fn shown(tensor: &Tensor) -> String {
    listed(tensor, SHOWN)
}

fn listed(tensor: &Tensor, most: usize) -> String {
    let more = if tensor.len() > most { ",..." } else { "" };
    let listed: Vec<String> = if let Some(strings) = tensor.strings() {
        strings.iter().take(most).map(|text| quote(text)).collect()
    } else if tensor.dtype().is_complex() {
        let parts = tensor.bytes().chunks(tensor.dtype().byte_len(1).unwrap_or(8) / 2);
        parts
            .take(most.saturating_mul(2))
            .map(|part| match part {
                [a, b, c, d] => f32::from_le_bytes([*a, *b, *c, *d]).to_string(),
                part => part.try_into().map(f64::from_le_bytes).map_or_else(|_| "?".into(), |value| value.to_string()),
            })
            .collect()
    } else {
        let head = head(tensor, most);
        match head.to_i64s() {
            Some(ints) => ints.iter().map(i64::to_string).collect(),
            None if tensor.dtype() == DType::Uint64 => {
                head.elements::<u64>().map(|values| values.iter().map(u64::to_string).collect()).unwrap_or_default()
            }
            None if tensor.dtype() == DType::Double => {
                head.to_f64s().unwrap_or_default().iter().map(f64::to_string).collect()
            }
            None => head.to_f64s().unwrap_or_default().iter().map(|&value| (value as f32).to_string()).collect(),
        }
    };
    // The standard's parser only accepts the lowercase form.
    let listed = listed.iter().map(|element| if element == "NaN" { "nan" } else { element });
    format!("{{{}{more}}}", listed.collect::<Vec<_>>().join(","))
}

/// Prints all elements as stored, for the standard's parser. Floats of 16 or fewer bits are printed as their codes,
/// packed elements as bytes, all others as numbers.
pub(super) fn codes(tensor: &Tensor) -> String {
    let bytes = tensor.bytes();
    let join = |items: Vec<String>| format!("{{{}}}", items.join(","));
    if let Some(strings) = tensor.strings() {
        return join(strings.iter().map(|text| quote_plainly(text)).collect());
    }
    match tensor.dtype() {
        DType::Float16 | DType::Bfloat16 => join(
            bytes
                .chunks_exact(2)
                .filter_map(|code| code.try_into().ok())
                .map(|code| u16::from_le_bytes(code).to_string())
                .collect(),
        ),
        DType::Int8 | DType::Uint8 | DType::Bool => {
            join(tensor.to_i64s().unwrap_or_default().iter().map(i64::to_string).collect())
        }
        dtype if dtype.bits().is_some_and(|bits| bits <= 8) => join(bytes.iter().map(u8::to_string).collect()),
        _ => listed(tensor, usize::MAX),
    }
}

/// Returns the first elements as a vector.
fn head(tensor: &Tensor, most: usize) -> Tensor {
    let count = tensor.len().min(most);
    let bytes = tensor.dtype().byte_len(count).and_then(|bytes| tensor.bytes().get(..bytes));
    let part =
        bytes.map(Bytes::copy_from_slice).and_then(|bytes| Tensor::from_bytes(tensor.dtype(), &[count], bytes).ok());
    part.unwrap_or_else(|| tensor.clone())
}

/// Quotes text.
pub(super) fn quote(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => {
                    text.push('\\');
                    text.push(c);
                }
                '\n' => text.push_str("\\n"),
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text.push('"');
    text
}

/// Quotes text for the standard's parser, which only supports escapes of quotes and backslashes.
pub fn quote_plainly(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Creates a tensor of these elements; the error contains the element that does not fit.
pub(super) fn tensor(dtype: DType, shape: &[usize], elements: &[Element]) -> Result<Tensor, String> {
    use DType::*;
    let result = match dtype {
        String => {
            let texts = elements.iter().map(|element| match element {
                Element::Text(text) => Ok(Bytes::from(text.clone())),
                Element::Number(number) => Err(format!("{number} is no string")),
            });
            Tensor::from_strings(shape, texts.collect::<Result<_, _>>()?)
        }
        Float => Tensor::from_vec(shape, numbers::<f32>(elements)?),
        Double => Tensor::from_vec(shape, numbers::<f64>(elements)?),
        Float16 => Tensor::from_vec(shape, numbers::<f32>(elements)?.into_iter().map(f16::from_f32).collect()),
        Bfloat16 => Tensor::from_vec(shape, numbers::<f32>(elements)?.into_iter().map(bf16::from_f32).collect()),
        Int8 => Tensor::from_vec(shape, numbers::<i8>(elements)?),
        Int16 => Tensor::from_vec(shape, numbers::<i16>(elements)?),
        Int32 => Tensor::from_vec(shape, numbers::<i32>(elements)?),
        Int64 => Tensor::from_vec(shape, numbers::<i64>(elements)?),
        Uint8 => Tensor::from_vec(shape, numbers::<u8>(elements)?),
        Uint16 => Tensor::from_vec(shape, numbers::<u16>(elements)?),
        Uint32 => Tensor::from_vec(shape, numbers::<u32>(elements)?),
        Uint64 => Tensor::from_vec(shape, numbers::<u64>(elements)?),
        Bool => {
            let flags: Vec<bool> = numbers::<u8>(elements)?.into_iter().map(|flag| flag != 0).collect();
            Tensor::from_bools(shape, &flags)
        }
        Complex64 => {
            let bytes: Vec<u8> = numbers::<f32>(elements)?.into_iter().flat_map(f32::to_le_bytes).collect();
            Tensor::from_bytes(dtype, shape, bytes.into())
        }
        Complex128 => {
            let bytes: Vec<u8> = numbers::<f64>(elements)?.into_iter().flat_map(f64::to_le_bytes).collect();
            Tensor::from_bytes(dtype, shape, bytes.into())
        }
        Uint4 | Uint2 | Int4 | Int2 => {
            let bits = dtype.bits().unwrap_or(8);
            let mask = ((1u16 << bits) - 1) as u8;
            let codes: Vec<u8> = numbers::<i8>(elements)?.into_iter().map(|value| value as u8 & mask).collect();
            Tensor::from_bytes(dtype, shape, pack(&codes, bits).into())
        }
        _ => return Err(format!("elements of type {} have no text form", dtype.name())),
    };
    result.map_err(|error| error.to_string())
}

fn numbers<T: std::str::FromStr>(elements: &[Element]) -> Result<Vec<T>, String> {
    let number = |element: &Element| match element {
        Element::Number(text) => text.parse::<T>().map_err(|_| format!("{text} does not fit the element type")),
        Element::Text(_) => Err("expected a number, found a string".to_string()),
    };
    elements.iter().map(number).collect()
}
