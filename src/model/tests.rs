use super::*;
use crate::ErrorKind;
use crate::ir;
use crate::onnx::{ModelSink, SaveOptions};
use crate::tensor::ByteSource;

const SOURCE: &str = r#"<ir_version: 8, opset_import: ["" : 17]> g (float[n] x) => (float[m] y) {
    shape = Shape (x)
    same = Reshape (x, shape)
    y = Neg (same)
}"#;

fn model() -> OnnxModel {
    OnnxModel::of(ir::text::parse(SOURCE).unwrap())
}

#[test]
fn a_model_is_folded_in_another_thread_and_again_in_this() {
    let mut model = model();
    let (mut model, nodes) = std::thread::spawn(move || {
        let report = model.fold(&Options::new()).unwrap();
        (model, report.after.nodes())
    })
    .join()
    .unwrap();
    assert_eq!(nodes, 1, "{}", model.text());
    // The symbols are those it had before.
    assert!(model.scope().lookup("n").is_some());
    assert_eq!(model.fold(&Options::new()).unwrap().after.nodes(), 1);
}

#[test]
fn models_are_read_from_and_written_to_bytes() {
    let mut model = OnnxModel::from_bytes(model().to_bytes().unwrap()).unwrap();
    model.fold(&Options::new().dim("n=3")).unwrap();
    let bytes = model.to_bytes().unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    assert_eq!(model.save(file.path()).unwrap(), bytes.len() as u64);
    assert_eq!(std::fs::read(file.path()).unwrap(), bytes);
    assert!(OnnxModel::from_bytes(bytes).unwrap().text().contains("float[3] x"));
}

/// Bytes outside of memory.
struct Outside(Vec<u8>);

impl ByteSource for Outside {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, from: u64, out: &mut [u8]) -> std::io::Result<()> {
        let from = usize::try_from(from).unwrap();
        out.copy_from_slice(&self.0[from..from + out.len()]);
        Ok(())
    }
}

/// The bytes that a host gets for the model and its data file, and how many of them are ranges of files.
#[derive(Default)]
struct Gathered([Vec<u8>; 2], usize);

impl ModelSink for Gathered {
    fn bytes(&mut self, is_data: bool, bytes: &[u8]) -> std::io::Result<()> {
        self.0[usize::from(is_data)].extend_from_slice(bytes);
        Ok(())
    }

    fn range(&mut self, is_data: bool, range: &crate::ByteRange) -> std::io::Result<()> {
        let mut bytes = vec![0; range.len()];
        range.source().read(range.from(), &mut bytes)?;
        self.1 += bytes.len();
        self.bytes(is_data, &bytes)
    }
}

#[test]
fn a_model_outside_of_memory_is_folded_to_the_same_bytes() {
    let files = std::fs::read_dir("models").unwrap().map(|entry| entry.unwrap().path());
    let mut ranges = 0;
    for path in files.filter(|path| path.extension().is_some_and(|extension| extension == "onnx")) {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("model.onnx");
        for options in [Options::new(), Options::new().stop_after(0), Options::new().exact(true)] {
            let mut inside = OnnxModel::open(&path).unwrap();
            inside.fold(&options).unwrap();
            let save = SaveOptions::new().save_as_external_data(options.exact);
            inside.save_with(&target, &save).unwrap();
            let source = Box::new(Outside(std::fs::read(&path).unwrap()));
            let mut outside = OnnxModel::from_source(source, |_| Ok(None)).unwrap();
            outside.fold(&options).unwrap();
            let mut sink = Gathered::default();
            let saved = outside.save_to("model.onnx", &save, &mut sink).unwrap();
            assert!(sink.0[0] == std::fs::read(&target).unwrap(), "{}", path.display());
            assert_eq!(saved.model.bytes, sink.0[0].len() as u64);
            if let Some(data) = saved.data {
                assert_eq!(data.path.to_str(), Some("model.onnx.data"));
                assert!(sink.0[1] == std::fs::read(directory.path().join(&data.path)).unwrap(), "{}", path.display());
            }
            ranges += sink.1;
        }
    }
    assert!(ranges > 1 << 17, "{ranges} bytes are copied by the host");
}

#[test]
fn data_of_a_host_are_read_where_they_lie() {
    let directory = tempfile::tempdir().unwrap();
    let model = OnnxModel::open("models/bert_dy18d.onnx").unwrap();
    let save = SaveOptions::new().save_as_external_data(true);
    model.save_with(directory.path().join("apart.onnx"), &save).unwrap();
    let read = |name: &str| std::fs::read(directory.path().join(name)).unwrap();
    let source = |name: &str| -> Box<dyn ByteSource> { Box::new(Outside(read(name))) };
    let data = read("apart.onnx.data");
    let find = move |location: &str| -> std::io::Result<Option<Box<dyn ByteSource>>> {
        assert_eq!(location, "apart.onnx.data");
        Ok(Some(Box::new(Outside(data.clone()))))
    };
    let mut outside = OnnxModel::from_source(source("apart.onnx"), find).unwrap();
    let mut inside = OnnxModel::open(directory.path().join("apart.onnx")).unwrap();
    assert_eq!(outside.missing_data(), []);
    outside.fold(&Options::new()).unwrap();
    inside.fold(&Options::new()).unwrap();
    inside.save(directory.path().join("folded.onnx")).unwrap();
    let mut sink = Gathered::default();
    outside.save_to("folded.onnx", &SaveOptions::new(), &mut sink).unwrap();
    assert!(sink.0[0] == read("folded.onnx"));
    let mut missing = OnnxModel::from_source(source("apart.onnx"), |_| Ok(None)).unwrap();
    assert_eq!(missing.missing_data().len(), 1);
    missing.fold(&Options::new()).unwrap();
    let refuse = |_: &str| Err(std::io::Error::other("is a pipe, not a regular file"));
    let error = OnnxModel::from_source(source("apart.onnx"), refuse).unwrap_err();
    assert!(format!("{error:#}").contains("external data file 'apart.onnx.data' is a pipe"), "{error:#}");
}

#[test]
fn a_source_that_fails_is_an_error() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    struct Cut(Outside, Arc<AtomicBool>);
    impl ByteSource for Cut {
        fn size(&self) -> u64 {
            self.0.size()
        }

        fn read(&self, from: u64, out: &mut [u8]) -> std::io::Result<()> {
            if self.1.load(Ordering::Relaxed) {
                Err(std::io::ErrorKind::NotFound.into())
            } else {
                self.0.read(from, out)
            }
        }
    }
    let (file, is_cut) = (std::fs::read("models/bert_dy18d.onnx").unwrap(), Arc::new(AtomicBool::new(false)));
    let source = |file: &[u8]| Box::new(Cut(Outside(file.to_vec()), Arc::clone(&is_cut)));
    let mut model = OnnxModel::from_source(source(&file), |_| Ok(None)).unwrap();
    model.fold(&Options::new()).unwrap();
    is_cut.store(true, Ordering::Relaxed);
    let error = model.save_to("model.onnx", &SaveOptions::new(), &mut Gathered::default()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Changed | ErrorKind::Io), "{error:#}");
    let error = OnnxModel::from_source(source(&file), |_| Ok(None)).unwrap_err();
    assert_eq!((error.kind(), error.io_kind()), (ErrorKind::Io, Some(std::io::ErrorKind::NotFound)));
}

#[test]
fn an_error_leaves_no_model_to_use() {
    let mut model = model();
    let error = model.fold(&Options::new().dim("q=3")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Assumption);
    assert_eq!(
        error.to_string(),
        "dimension \"q\" not found; the model's only symbolic dimension is n (x, axis 0); did you mean n?"
    );
    for error in [model.fold(&Options::new()).unwrap_err(), model.to_bytes().unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Usage);
    }
}
