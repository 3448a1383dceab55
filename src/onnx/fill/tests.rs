use std::cell::Cell;

use super::*;
use crate::onnx::open;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// Returns bytes without a pattern.
fn noise(len: usize) -> Vec<u8> {
    (0..len as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Creates a source of noise in a temporary directory.
fn source(len: usize) -> (tempfile::TempDir, Source) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.onnx");
    std::fs::write(&path, noise(len)).unwrap();
    let source = open(&path).unwrap();
    (dir, source)
}

/// Returns the bytes of the file that these parts make, and the given bytes.
fn filled(copy: CopyRange, len: usize, give: impl Fn(&[u8], &mut dyn FnMut(&[u8], bool))) -> [Vec<u8>; 2] {
    let (dir, source) = source(len);
    let target = dir.path().join("o");
    let mut filler = Filler::new(NewFile::create(&target, None).unwrap(), Some(&source));
    filler.copy = copy;
    filler.expect(1 << 25);
    let mut given = Vec::new();
    give(source.bytes(), &mut |bytes, is_payload| {
        if is_payload {
            filler.payload(bytes).unwrap()
        } else {
            filler.bytes(bytes).unwrap()
        }
        given.extend_from_slice(bytes);
        assert_eq!(filler.len(), given.len() as u64);
    });
    filler.finish().unwrap();
    // The announced length was larger.
    filler.new.file.set_len(filler.len()).unwrap();
    filler.new.put_in_place().unwrap();
    source.verify().unwrap();
    [std::fs::read(&target).unwrap(), given]
}

const COPIES: [CopyRange; 5] = [
    copy_range,
    // No copy call, as on other systems.
    |_, _, _, _| Ok(0),
    |_, _, _, _| Err(io::ErrorKind::CrossesDevices.into()),
    // Copies less than requested.
    |from, at, to, len| copy_range(from, at, to, len.min(70_001)),
    // Fails from time to time.
    |from, at, to, len| {
        let calls = CALLS.replace(CALLS.get() + 1);
        if calls % 3 == 2 { Err(io::ErrorKind::Interrupted.into()) } else { copy_range(from, at, to, len) }
    },
];

#[test]
fn the_bytes_are_those_that_were_given() {
    for copy in COPIES {
        let [written, given] = filled(copy, 9 << 20, |file, give| {
            let new = noise(3 * BUFFER + 17);
            // At the same offset, then shifted by a few bytes.
            give(&file[..100], false);
            give(&file[100..5 << 20], true);
            give(b"new", false);
            give(&file[5 << 20..6 << 20], true);
            give(&file[6 << 20..][..9], false);
            give(&file[(6 << 20) + 9..7 << 20], true);
            // New payloads of sizes at the limits of buffering, then ranges again, backwards and twice.
            for len in [LARGE - 1, LARGE, BUFFER - 1, BUFFER, BUFFER + 1, 0, new.len()] {
                give(&new[..len], true);
            }
            give(&file[3 << 20..4 << 20], true);
            give(&file[1 << 20..2 << 20], true);
            give(&file[1 << 20..2 << 20], true);
            give(&file[8 << 20..], true);
            give(b"end", false);
        });
        assert!(written == given);
    }
}

#[test]
fn every_offset_within_a_block() {
    for shift in [0, 1, 63, 4095] {
        for len in [LARGE, LARGE + 1, LARGE + 4096, LARGE + 5000] {
            let [written, given] = filled(copy_range, 2 << 20, |file, give| {
                give(&noise(shift), false);
                give(&file[shift..][..len], true);
                give(&file[4096 * 40 + shift..][..len], true);
            });
            assert!(written == given, "{shift} {len}");
        }
    }
}

/// Without maps the payloads are read, and their file is not recorded.
#[cfg(feature = "mmap")]
#[test]
fn neighbours_are_copied_as_one() {
    let count: CopyRange = |from, at, to, len| {
        CALLS.set(CALLS.get() + 1);
        copy_range(from, at, to, len)
    };
    let calls = |gap: &'static [u8]| {
        CALLS.set(0);
        let [written, given] = filled(count, 4 << 20, |file, give| {
            give(b"moved", false);
            for part in file[..3 << 20].chunks(1 << 18) {
                give(&part[..20], false);
                give(gap, false);
                give(&part[20..], true);
            }
        });
        assert!(written == given);
        CALLS.get()
    };
    assert_eq!(calls(b""), 1);
    assert_eq!(calls(b"something else"), 12);
}

// A file that was read into memory cannot change later.
#[cfg(feature = "mmap")]
#[test]
fn a_source_that_is_cut_is_an_error() {
    for copy in COPIES {
        for cut in [0, 1 << 20, (2 << 20) + 1, (4 << 20) - 1] {
            let (dir, source) = source(4 << 20);
            let mut filler = Filler::new(NewFile::create(&dir.path().join("o"), None).unwrap(), Some(&source));
            filler.copy = copy;
            filler.payload(source.bytes()).unwrap();
            File::options().write(true).open(dir.path().join("m.onnx")).unwrap().set_len(cut).unwrap();
            assert_eq!(filler.finish().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
            assert!(source.verify().is_err());
        }
    }
}

#[test]
fn holes_stay_holes() {
    use std::os::unix::fs::{FileExt, MetadataExt};
    const MIB: u64 = 1 << 20;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.onnx");
    // Data at the beginning and in the middle, a gap shorter than a hole, and a hole at the end.
    let file = File::create(&path).unwrap();
    for (at, byte) in [(0, 1), (20 * MIB + 5, 2), (20 * MIB + 600_000, 3)] {
        file.write_all_at(&[byte; 70_000], at).unwrap();
    }
    file.set_len(64 * MIB).unwrap();
    drop(file);
    for (range, before) in [(0..64 * MIB, 0), (4096..64 * MIB - 1, 7), (2 * MIB..30 * MIB, 3), (30 * MIB..40 * MIB, 1)]
    {
        let source = open(&path).unwrap();
        let target = dir.path().join("o");
        let mut filler = Filler::new(NewFile::create(&target, None).unwrap(), Some(&source));
        let payload = &source.bytes()[range.start as usize..range.end as usize];
        filler.bytes(&vec![9; before]).unwrap();
        filler.payload(payload).unwrap();
        filler.bytes(b"end").unwrap();
        filler.finish().unwrap();
        filler.new.put_in_place().unwrap();
        source.verify().unwrap();
        assert!(std::fs::read(&target).unwrap() == [&vec![9; before], payload, b"end"].concat(), "{range:?}");
        // If the source was read, or its file system keeps no holes, the copy need not have holes.
        let blocks = |path: &std::path::Path| std::fs::metadata(path).unwrap().blocks() * 512;
        let has_holes = cfg!(feature = "mmap") && blocks(&path) <= 8 * MIB;
        assert!(!has_holes || blocks(&target) < 8 * MIB, "{range:?}: {} bytes", blocks(&target));
    }
    // The file ends with a hole.
    let source = open(&path).unwrap();
    let target = dir.path().join("o");
    let mut filler = Filler::new(NewFile::create(&target, None).unwrap(), Some(&source));
    filler.payload(&source.bytes()[30 * MIB as usize..]).unwrap();
    filler.finish().unwrap();
    filler.new.put_in_place().unwrap();
    assert_eq!(std::fs::metadata(&target).unwrap().len(), 34 * MIB);
}
