//! Times the constant copier for `scripts/compare_numpy_copy.py`.
//!
//! `slicing-benches D0 D1 D2 BYTES REPEATS PATTERN …` makes a tensor with these dims and elements of this number of bytes (1, 2, 4 or 8).
//! It takes the slice of each pattern (`START:STEP,START:STEP,START:STEP`, to the end of each axis) and prints one line for each pattern:
//! its text, the seconds of the fastest copy, a checksum of the result, and whether the result is a view.

use std::error::Error;
use std::time::Instant;

use onnx_slice_fold::slicing::{self, SliceRule, SliceSpec, onnx};
use onnx_slice_fold::tensor::{DType, Tensor};

fn spec(pattern: &str) -> Result<SliceSpec, Box<dyn Error>> {
    let (mut starts, mut ends, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    for axis in pattern.split(',') {
        let (start, step) = axis.split_once(':').ok_or("a pattern is START:STEP,START:STEP,START:STEP")?;
        let step: i64 = step.parse()?;
        starts.push(start.parse()?);
        ends.push(if step > 0 { i64::MAX } else { i64::MIN });
        steps.push(step);
    }
    let operand = |numbers: &[i64]| slicing::Operand::constant(numbers);
    let operands =
        onnx::Operands { starts: operand(&starts), ends: operand(&ends), axes: None, steps: Some(operand(&steps)) };
    Ok(onnx::slice(&operands, SliceRule::Agree)?)
}

/// A checksum that depends on the position of each byte.
fn checksum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(8).map(|chunk| chunk.iter().rev().fold(0u64, |word, &byte| word << 8 | u64::from(byte)));
    (1u64..)
        .zip(words)
        .fold(0, |sum, (at, word)| sum.wrapping_add(word.wrapping_mul(at.wrapping_mul(2).wrapping_sub(1))))
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [d0, d1, d2, width, repeats, patterns @ ..] = arguments.as_slice() else {
        return Err("usage: slicing-benches D0 D1 D2 BYTES REPEATS PATTERN …".into());
    };
    let shape: Vec<usize> = [d0, d1, d2].into_iter().map(|dim| dim.parse()).collect::<Result<_, _>>()?;
    let (width, repeats): (usize, usize) = (width.parse()?, repeats.parse()?);
    let dtype = match width {
        1 => DType::Uint8,
        2 => DType::Uint16,
        4 => DType::Uint32,
        8 => DType::Uint64,
        _ => return Err("elements have 1, 2, 4 or 8 bytes".into()),
    };
    let len = shape.iter().product::<usize>() * width;
    // Byte i is the top byte of i times a large odd number.
    let bytes: Vec<u8> = (0..len as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
    let tensor = Tensor::from_bytes(dtype, &shape, bytes.into())?;
    let begin = tensor.bytes().as_ptr() as usize;
    for pattern in patterns {
        let spec = spec(pattern)?;
        let mut fastest = f64::INFINITY;
        let mut last = None;
        for _ in 0..repeats.max(1) {
            drop(last.take());
            let start = Instant::now();
            let copy = slicing::slice(&tensor, &spec)?;
            fastest = fastest.min(start.elapsed().as_secs_f64());
            last = Some(copy);
        }
        let Some(copy) = last else { continue };
        let is_view = (begin..begin + len).contains(&(copy.bytes().as_ptr() as usize));
        println!("{pattern} {fastest:.9} {} {}", checksum(copy.bytes()), u8::from(is_view));
    }
    Ok(())
}
