//! Mutated inputs of every kind that the program reads: each run ends normally or with an error, and a folded model computes the same as
//! before. The checks are in `tests/support/readers.rs`; the targets of `fuzz/` run the same checks with coverage guidance.
//!
//! The tests need no nightly toolchain and are bounded: `FUZZ_SECONDS=600 cargo test --release --test binary mutations` takes ten minutes
//! for each reader. The default is a thousand fixed inputs. A failing input is printed in hexadecimal digits, to become a test.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::{Numbers, readers};

/// The largest seed; a larger one takes the time of many small ones.
const LARGEST_SEED: usize = 32 << 10;

/// The number of inputs for each reader, without a time limit.
const USUAL: u64 = 1000;

fn files(folder: &str, extension: &str) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = open.pop() {
        let mut paths: Vec<_> =
            fs::read_dir(folder).expect("the folder is listed").map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|own| own == extension) {
                found.push(fs::read(&path).expect("the seed is read"));
            }
        }
    }
    found.retain(|seed| seed.len() <= LARGEST_SEED);
    assert!(!found.is_empty(), "{folder} has no seeds");
    found
}

fn below(numbers: &mut Numbers, count: usize) -> usize {
    (numbers.next() % count.max(1) as u64) as usize
}

/// Applies one to eight changes: flips a bit, replaces a byte by an extreme one, removes or repeats a range, inserts a range of another seed
/// or a word, or truncates the input.
fn changed(seed: &[u8], other: &[u8], words: &[&str], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=below(numbers, 8) {
        let at = below(numbers, bytes.len());
        let end = (at + 1 + below(numbers, 24)).min(bytes.len());
        match below(numbers, 8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << below(numbers, 8),
            1 if at < bytes.len() => bytes[at] = numbers.next() as u8,
            2 => drop(bytes.drain(at..end)),
            3 => {
                let stretch = bytes[at..end].to_vec();
                bytes.splice(at..at, stretch);
            }
            4 => {
                let from = below(numbers, other.len());
                let to = (from + below(numbers, 64)).min(other.len());
                bytes.splice(at..end, other[from..to].iter().copied());
            }
            5 => bytes.truncate(at),
            6 => {
                let word = words[below(numbers, words.len())].bytes();
                bytes.splice(at..end, word);
            }
            _ if at < bytes.len() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][below(numbers, 5)],
            _ => {}
        }
    }
    bytes
}

/// Passes mutated seeds to a reader until the time is over, and prints the number of accepted ones.
fn attack(name: &str, seeds: &[Vec<u8>], words: &[&str], seed: u64, read: &dyn Fn(&[u8]) -> bool) {
    let seconds = std::env::var("FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let (begin, limit) = (Instant::now(), seconds.map(Duration::from_secs));
    let mut numbers = Numbers::new(seed);
    let (mut tried, mut taken) = (0_u64, 0_u64);
    let mut slowest = Duration::ZERO;
    while limit.map_or(tried < USUAL, |limit| begin.elapsed() < limit) {
        let first = &seeds[below(&mut numbers, seeds.len())];
        let second = &seeds[below(&mut numbers, seeds.len())];
        let bytes = changed(first, second, words, &mut numbers);
        let start = Instant::now();
        let shown = || bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        match catch_unwind(AssertUnwindSafe(|| read(&bytes))) {
            Ok(is_taken) => taken += u64::from(is_taken),
            Err(_) => panic!("{name}: input {tried} ends in a panic: {}", shown()),
        }
        slowest = slowest.max(start.elapsed());
        tried += 1;
    }
    println!("{name}: {tried} inputs, {taken} of them taken, the slowest took {} ms", slowest.as_millis());
}

const WORDS: &[&str] =
    &["-1", "9223372036854775807", "-9223372036854775808", "0", "Slice", "Reshape", "Loop", "axis", "\u{0}"];

#[test]
fn models_as_bytes() {
    attack("decode", &files("models", "onnx"), WORDS, 1, &readers::model_bytes);
}

#[test]
fn models_as_text() {
    attack("text", &files("tests/rules", "onnxtxt"), WORDS, 2, &readers::model_text);
}

#[test]
fn sizes_as_expressions() {
    let seeds =
        ["floor((s + 3)/4)", "8*floor((seq + 7)/8)", "max(0, n - 1)", "Mod(7*s, 8) + min(a, b, c)*d", "-(a - -b)//2"];
    let seeds: Vec<Vec<u8>> = seeds.iter().map(|text| text.as_bytes().to_vec()).collect();
    attack("dim", &seeds, &["(", ")", "**", "//", "9223372036854775807", "floor(", "max("], 3, &readers::size);
}

#[test]
fn folded_models_compute_the_same() {
    attack("fold", &files("tests/rules", "onnxtxt"), WORDS, 4, &readers::folded_text);
}

#[test]
fn data_files_and_their_locations() {
    let folder = TempDir::new().expect("a folder");
    let (model, seed) = readers::data_folder(folder.path());
    let words = ["../secret.bin", "/etc/passwd", "w.bin", ".", "..", "9223372036854775807", "-4", "model.onnx"];
    assert!(readers::external_data(&model, &seed), "the seed is a model");
    attack("external data", &[seed], &words, 5, &|bytes| readers::external_data(&model, bytes));
}

#[test]
fn whole_models() {
    attack("pipeline", &files("models", "onnx"), WORDS, 6, &readers::whole_program);
}

#[test]
fn generated_graphs() {
    let seeds: Vec<Vec<u8>> =
        (0..32u8).map(|seed| (0..96u8).map(|at| at.wrapping_mul(seed * 2 + 41) ^ seed).collect()).collect();
    attack("graphs", &seeds, &["\u{1}\u{2}", "\u{5}"], 7, &readers::generated_graph);
}
