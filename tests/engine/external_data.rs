//! The placement of tensors in the written model file or in a data file.

use std::path::Path;

use onnx_slice_fold::ir::text;
use onnx_slice_fold::{ErrorKind, ExternalData, OnnxModel, Options, SaveOptions, Saved};

/// The bytes of each of the two large weights.
const WEIGHT: usize = 64 * 64 * 4;

/// Two products. The first has a scaling that folds into its weight.
fn model() -> OnnxModel {
    let row: Vec<String> = (0..64).map(|n| format!("{}.5", n + 1)).collect();
    let row = row.join(", ");
    let source = format!(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[n, 64] x) => (float[n, 64] y)
         <float[64] r = {{{row}}}, int64[2] s = {{64, 64}}, float[64, 64] o = {{{}}}>
         {{
            w = Expand (r, s)
            v = Mul (w, w)
            a = MatMul (x, v)
            b = Mul (a, r)
            c = Relu (b)
            y = MatMul (c, o)
         }}",
        (0..64 * 64).map(|n| format!("{}.0", n % 97)).collect::<Vec<_>>().join(", ")
    );
    OnnxModel::of(text::parse(&source).unwrap())
}

/// Folds with `exact`, so that the scaling is kept.
fn folded(model: &mut OnnxModel) {
    model.fold(&Options::new().exact(true).max_growth(1000.0)).unwrap();
}

fn save(model: &OnnxModel, target: &Path, options: &SaveOptions) -> Saved {
    model.save_with(target, options).unwrap()
}

/// Returns a model in `dir` with its weights in a data file.
fn external(dir: &Path) -> OnnxModel {
    let mut model = model();
    folded(&mut model);
    let path = dir.join("m.onnx");
    let saved = save(&model, &path, &SaveOptions::new().save_as_external_data(true));
    let data = saved.data.unwrap();
    assert_eq!(data.path, dir.join("m.onnx.data"));
    assert_eq!((data.bytes, saved.external_bytes), (2 * WEIGHT as u64, 2 * WEIGHT as u64));
    assert_eq!(std::fs::metadata(&data.path).unwrap().len(), data.bytes);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), saved.model.bytes);
    // The factors of the scaling have fewer bytes than the threshold.
    assert!(saved.model.bytes < 2000);
    OnnxModel::open(&path).unwrap()
}

/// Returns the model at a path as text, with its data.
fn text_at(path: &Path) -> String {
    OnnxModel::open(path).unwrap().text()
}

fn files(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn no_tensor_becomes_external_by_default() {
    let dir = tempfile::tempdir().unwrap();
    let mut model = model();
    folded(&mut model);
    let saved = save(&model, &dir.path().join("m.onnx"), &SaveOptions::new());
    assert_eq!((saved.data, saved.external_bytes, saved.too_large), (None, 0, None));
    assert_eq!(files(dir.path()), ["m.onnx"]);
}

#[test]
fn a_threshold_selects_external_tensors() {
    let dir = tempfile::tempdir().unwrap();
    let mut model = model();
    folded(&mut model);
    let bytes = |threshold| {
        let options = SaveOptions::new().save_as_external_data(true).threshold(threshold);
        let saved = save(&model, &dir.path().join("m.onnx"), &options);
        assert_eq!(text_at(&dir.path().join("m.onnx")), model.text());
        saved.external_bytes
    };
    assert_eq!(bytes(WEIGHT + 1), 0);
    assert_eq!(bytes(WEIGHT), 2 * WEIGHT as u64);
    assert_eq!(bytes(257), 2 * WEIGHT as u64);
    assert_eq!(bytes(256), 2 * WEIGHT as u64 + 256);
}

#[test]
fn data_are_kept_in_place_in_the_same_directory() {
    let dir = tempfile::tempdir().unwrap();
    let model = external(dir.path());
    let before = std::fs::metadata(dir.path().join("m.onnx.data")).unwrap().modified().unwrap();
    for options in [SaveOptions::new(), SaveOptions::new().external_data(ExternalData::Link)] {
        let saved = save(&model, &dir.path().join("o.onnx"), &options);
        assert_eq!((&saved.data, saved.external_bytes), (&None, 2 * WEIGHT as u64));
        assert_eq!(files(dir.path()), ["m.onnx", "m.onnx.data", "o.onnx"]);
        assert_eq!(text_at(&dir.path().join("o.onnx")), model.text());
    }
    assert_eq!(std::fs::metadata(dir.path().join("m.onnx.data")).unwrap().modified().unwrap(), before);
}

#[test]
fn data_are_copied_or_included_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let model = external(dir.path());
    let copy = SaveOptions::new().external_data(ExternalData::Copy);
    // A copy of the whole file would duplicate it.
    let saved = save(&model, &dir.path().join("again.onnx"), &copy);
    assert_eq!(saved.data, None);
    assert_eq!(
        std::fs::read(dir.path().join("again.onnx")).unwrap(),
        std::fs::read(dir.path().join("m.onnx")).unwrap()
    );
    std::fs::remove_file(dir.path().join("again.onnx")).unwrap();
    // With one more byte it is not the file that would be written.
    let data = dir.path().join("m.onnx.data");
    std::fs::write(&data, [std::fs::read(&data).unwrap(), vec![0]].concat()).unwrap();
    let model = OnnxModel::open(dir.path().join("m.onnx")).unwrap();
    let saved = save(&model, &dir.path().join("o.onnx"), &copy);
    assert_eq!(saved.data.unwrap().path, dir.path().join("o.onnx.data"));
    std::fs::rename(dir.path().join("m.onnx.data"), dir.path().join("away")).unwrap();
    assert_eq!(text_at(&dir.path().join("o.onnx")), model.text());
    std::fs::rename(dir.path().join("away"), dir.path().join("m.onnx.data")).unwrap();

    let inline = SaveOptions::new().external_data(ExternalData::Inline);
    let saved = save(&model, &dir.path().join("i.onnx"), &inline);
    assert_eq!((&saved.data, saved.external_bytes), (&None, 0));
    assert!(saved.model.bytes > 2 * WEIGHT as u64);
    let bytes = std::fs::read(dir.path().join("i.onnx")).unwrap();
    assert_eq!(OnnxModel::from_bytes(bytes).unwrap().text(), model.text());

    // In another directory the references would be invalid.
    let other = dir.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let saved = save(&model, &other.join("o.onnx"), &SaveOptions::new());
    assert_eq!(saved.data.unwrap().path, other.join("o.onnx.data"));
    assert_eq!(text_at(&other.join("o.onnx")), model.text());
}

#[test]
fn only_parent_directories_refer_to_data() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("a/b");
    std::fs::create_dir_all(&inner).unwrap();
    let model = external(&inner);
    let link = SaveOptions::new().external_data(ExternalData::Link);
    let target = dir.path().join("o.onnx");
    let saved = save(&model, &target, &link);
    assert_eq!((&saved.data, saved.external_bytes), (&None, 2 * WEIGHT as u64));
    assert_eq!(text_at(&target), model.text());
    for elsewhere in ["a/b/c", "d"] {
        let target = dir.path().join(elsewhere).join("o.onnx");
        std::fs::create_dir(target.parent().unwrap()).unwrap();
        let error = model.save_with(&target, &link).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains("outside of its directory"), "{error}");
        assert!(files(target.parent().unwrap()).is_empty());
    }
}

#[test]
fn constants_folded_from_external_data_are_external() {
    let dir = tempfile::tempdir().unwrap();
    let mut model = external(dir.path());
    let report = model.fold(&Options::new()).unwrap();
    assert_eq!(report.external_bytes_before, 2 * WEIGHT as u64);
    let target = dir.path().join("o.onnx");
    let saved = save(&model, &target, &SaveOptions::new());
    // One weight is new, the other is kept in its file.
    assert_eq!(saved.data.as_ref().unwrap().bytes, WEIGHT as u64);
    assert_eq!(saved.external_bytes, 2 * WEIGHT as u64);
    assert!(saved.model.bytes < 2000);
    assert_eq!(text_at(&target), model.text());
    let mut told = report;
    told.note_saved(&saved);
    assert_eq!(told.files.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>(), [saved.model.bytes, WEIGHT as u64]);
    assert!(told.to_string().contains(&format!("\nbytes in data files      {0}     {0}\n", 2 * WEIGHT)), "{told}");

    // When writing in place, the data file that is read keeps its name.
    let saved = save(&model, &dir.path().join("m.onnx"), &SaveOptions::new());
    assert_eq!(saved.data.unwrap().path, dir.path().join("m.onnx.2.data"));
    assert_eq!(text_at(&dir.path().join("m.onnx")), model.text());

    let inline = SaveOptions::new().external_data(ExternalData::Inline);
    assert_eq!(save(&model, &target, &inline).data, None);
}

/// Tensors that ONNX Runtime reads from the model file only, and without which it refuses to load the model.
#[test]
fn sizes_and_empty_tensors_are_kept_in_the_model() {
    let dir = tempfile::tempdir().unwrap();
    let source = "<ir_version: 8, opset_import: [\"\" : 17]> g (float[n, 4] x) => (float[p, q] y, float[n, 4, 1] z, float[k, m] w)
         <int64[2] s = {2, -1}, int64[1] last = {2}, float[2] scales = {2, 2}, float[0, 4] nothing = {}, float[3, 4] rows = {0, 1, 2, 3, 4, 5, 6,
          7, 8, 9, 10, 11}>
         {
            same = Identity (s)
            y = Reshape (x, same)
            z = Unsqueeze (x, last)
            all = Concat <axis = 0> (nothing, x, rows)
            w = Resize <mode: string = \"nearest\"> (all, \"\", scales)
         }";
    let mut model = OnnxModel::of(text::parse(source).unwrap());
    let options = SaveOptions::new().save_as_external_data(true).threshold(0);
    let path = dir.path().join("m.onnx");
    // Only the rows.
    assert_eq!(save(&model, &path, &options).external_bytes, 48);
    assert_eq!(text_at(&path), model.text());
    model.fold(&Options::new()).unwrap();
    assert_eq!(save(&model, &path, &options).external_bytes, 48);
}

/// Encodes a field of a message: its number, and text, bytes or another message, of fewer than 128 bytes.
fn field(number: u8, parts: &[&[u8]]) -> Vec<u8> {
    let bytes = parts.concat();
    [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes.as_slice()].concat()
}

#[test]
fn sizes_in_a_data_file_are_moved_into_the_model() {
    let dir = tempfile::tempdir().unwrap();
    // `y = Reshape (x, Identity (s))` with the two sizes in `w.bin`. ONNX Runtime loads this model; without the Identity it would not.
    let node = |operator: &str, inputs: &[&str], output: &str| {
        let inputs: Vec<u8> = inputs.iter().flat_map(|input| field(1, &[input.as_bytes()])).collect();
        field(1, &[&inputs, &field(2, &[output.as_bytes()]), &field(4, &[operator.as_bytes()])])
    };
    let place = field(13, &[&field(1, &[b"location"]), &field(2, &[b"w.bin"])]);
    let sizes = field(5, &[&[8, 2, 16, 7], &field(8, &[b"s"]), &place, &[112, 1]]);
    let value =
        |number, name: &str| field(number, &[&field(1, &[name.as_bytes()]), &field(2, &[&field(1, &[&[8, 1]])])]);
    let nodes = [node("Identity", &["s"], "t"), node("Reshape", &["x", "t"], "y")].concat();
    let graph = [nodes, field(2, &[b"g"]), sizes, value(11, "x"), value(12, "y")].concat();
    let mut bytes = vec![
        8,
        8,
        7 << 3 | 2,
        u8::try_from(graph.len() % 128).unwrap() | 128,
        u8::try_from(graph.len() / 128).unwrap(),
    ];
    bytes.extend(graph);
    bytes.extend(field(8, &[&[16, 17]]));
    std::fs::write(dir.path().join("m.onnx"), bytes).unwrap();
    std::fs::write(dir.path().join("w.bin"), [2i64.to_le_bytes(), (-1i64).to_le_bytes()].concat()).unwrap();
    let mut model = OnnxModel::open(dir.path().join("m.onnx")).unwrap();
    assert!(model.fold(&Options::new()).unwrap().external_bytes_before == 16);
    let target = dir.path().join("o.onnx");
    for options in [SaveOptions::new(), SaveOptions::new().external_data(ExternalData::Link)] {
        let saved = save(&model, &target, &options);
        assert_eq!((saved.data, saved.external_bytes), (None, 0));
        assert_eq!(text_at(&target), model.text());
    }
}
