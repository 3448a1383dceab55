//! Recognizes files of other formats that users pass instead of an ONNX model, and advises how to get one.

/// A format other than ONNX.
struct Format {
    /// Bytes at `offset` that identify the format. No valid protobuf message begins with them.
    magic: &'static [u8],
    offset: usize,
    /// The format with its article, and the next step for the user.
    advice: &'static str,
}

const fn format(offset: usize, magic: &'static [u8], advice: &'static str) -> Format {
    Format { magic, offset, advice }
}

const HTML: &str = "an HTML page, not an ONNX model; the download probably returned an error or a login page, so download the file again";
const PICKLE: &str = "a Python pickle, as torch.save writes it, not an ONNX model; load it in PyTorch and call torch.onnx.export(model, args, \"model.onnx\")";
const PYTORCH: &str =
    "a PyTorch archive, not an ONNX model; load it in PyTorch and call torch.onnx.export(model, args, \"model.onnx\")";
const KERAS: &str =
    "a Keras archive, not an ONNX model; convert it with tf2onnx or model.export(\"model.onnx\", format=\"onnx\")";
const SAFETENSORS: &str = "a safetensors file, which has weights and no graph; export the model to ONNX, for example with `optimum-cli export onnx`";

const FORMATS: &[Format] = &[
    format(
        0,
        b"version https://git-lfs",
        "a Git LFS pointer, not an ONNX model; run `git lfs pull` to download the file",
    ),
    format(0, b"<!DOCTYPE", HTML),
    format(0, b"<!doctype", HTML),
    format(0, b"<html", HTML),
    format(
        0,
        b"<?xml",
        "an XML file, not an ONNX model; if it is an OpenVINO IR, pass the ONNX model from which it was converted",
    ),
    format(
        4,
        b"ORTM",
        "an ONNX Runtime model (.ort), not an ONNX model; pass the .onnx file from which it was converted",
    ),
    format(
        4,
        b"TFL3",
        "a TensorFlow Lite model, not an ONNX model; convert it with `python -m tf2onnx.convert --tflite FILE --output model.onnx`",
    ),
    format(
        0,
        b"\x89HDF\r\n\x1a\n",
        "an HDF5 file, as Keras 2 writes it, not an ONNX model; load it in Keras and convert it with tf2onnx.convert.from_keras",
    ),
    format(0, b"GGUF", "a GGUF file, which has weights and no graph; export the original model to ONNX"),
    format(0, b"PK\x03\x04", "a ZIP archive, not an ONNX model; unpack it and pass the .onnx file inside"),
    format(0, b"\x1f\x8b", "a gzip archive, not an ONNX model; unpack it first, for example with `gzip -d`"),
    format(
        0,
        b"\x28\xb5\x2f\xfd",
        "a Zstandard archive, not an ONNX model; unpack it first, for example with `zstd -d`",
    ),
    format(0, b"\xfd7zXZ\0", "an XZ archive, not an ONNX model; unpack it first, for example with `xz -d`"),
    format(257, b"ustar", "a tar archive, not an ONNX model; unpack it and pass the .onnx file inside"),
    format(0, b"\x93NUMPY", "a NumPy array, not an ONNX model"),
    format(0, b"ftrt", "a TensorRT engine, not an ONNX model; pass the ONNX model from which it was built"),
    format(0, b"ptrt", "a TensorRT engine, not an ONNX model; pass the ONNX model from which it was built"),
];

/// Returns the format of a file that does not decode as a model, with its article and the next step for the user: "a ZIP archive, not an
/// ONNX model; unpack it …".
pub(super) fn other_format(file: &[u8]) -> Option<&'static str> {
    let has = |format: &&Format| file.get(format.offset..).is_some_and(|rest| rest.starts_with(format.magic));
    if file.starts_with(b"PK\x03\x04") {
        return archive(file).or_else(|| FORMATS.iter().find(has).map(|format| format.advice));
    }
    if let Some(found) = FORMATS.iter().find(has) {
        return Some(found.advice);
    }
    // Protocol 2 to 5 of pickle. The third byte is its first opcode.
    if let [0x80, 2..=5, opcode, ..] = file
        && matches!(opcode, b'}' | b']' | b'c' | b'(' | b'\x8a' | b'\x95' | b'K' | b'X')
    {
        return Some(PICKLE);
    }
    // The length of a JSON header in 8 bytes, and the header.
    let (length, header) = file.split_first_chunk::<8>()?;
    let fits = usize::try_from(u64::from_le_bytes(*length)).is_ok_and(|length| length <= header.len());
    (fits && header.starts_with(b"{\"")).then_some(SAFETENSORS)
}

/// Returns the kind of a ZIP archive, by the name of its first entry.
fn archive(file: &[u8]) -> Option<&'static str> {
    // The name's length is at byte 26 of an entry's header, and the name at byte 30 (APPNOTE.TXT, section 4.3.7).
    let length = u16::from_le_bytes(*file.get(26..)?.first_chunk::<2>()?);
    let name = file.get(30..)?.get(..usize::from(length))?;
    let ends_with = |end: &[u8]| name.ends_with(end);
    if ends_with(b"/data.pkl") || ends_with(b"/version") || ends_with(b"/constants.pkl") || ends_with(b"/byteorder") {
        return Some(PYTORCH);
    }
    if matches!(name, b"metadata.json" | b"config.json" | b"model.weights.h5") {
        return Some(KERAS);
    }
    ends_with(b".npy").then_some("a NumPy archive (.npz), not an ONNX model")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zip(name: &str) -> Vec<u8> {
        let mut file = b"PK\x03\x04".to_vec();
        file.resize(26, 0);
        file.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        file.extend([0, 0]);
        file.extend(name.as_bytes());
        file
    }

    #[test]
    fn files_of_other_formats_are_named() {
        let safetensors = [&16_u64.to_le_bytes()[..], b"{\"w\":{\"dtype\":1}}"].concat();
        let tar = [&[b'm'; 257][..], b"ustar"].concat();
        let cases: [(&[u8], &str); 14] = [
            (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "Git LFS pointer"),
            (b"<!DOCTYPE html><html>", "HTML page"),
            (b"\x1c\0\0\0ORTM", "ONNX Runtime model"),
            (b"\x1c\0\0\0TFL3", "TensorFlow Lite model"),
            (b"\x89HDF\r\n\x1a\n\0", "HDF5 file"),
            (b"GGUF\x03\0\0\0", "GGUF file"),
            (b"\x80\x02}q\0.", "Python pickle"),
            (&safetensors, "safetensors file"),
            (&tar, "tar archive"),
            (&zip("archive/data.pkl"), "PyTorch archive"),
            (&zip("metadata.json"), "Keras archive"),
            (&zip("x.npy"), "NumPy archive"),
            (&zip("model.onnx"), "ZIP archive"),
            (b"PK\x03\x04", "ZIP archive"),
        ];
        for (file, name) in cases {
            assert!(other_format(file).is_some_and(|found| found.contains(name)), "{name}: {:?}", other_format(file));
        }
        let other: [&[u8]; 4] = [b"", b"\x08\x07", b"\x80\x02", b"\xff\xff\xff\xff\0\0\0\0{\"w\":1}"];
        for file in other {
            assert_eq!(other_format(file), None);
        }
    }
}
