//! The module of the npm package: requests as JSON, models as bytes of the host.

mod host;
mod options;
mod slices;

use onnx_slice_fold::{Error, ErrorKind, OnnxModel};
use serde_json::{Value, json};

/// What went wrong.
struct Failure {
    kind: &'static str,
    message: String,
}

impl Failure {
    fn usage(message: impl Into<String>) -> Self {
        Failure { kind: "usage", message: message.into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure { kind: kind_name(error.kind()), message: format!("{error:#}") }
    }
}

/// Returns the name of a kind of error.
fn kind_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Io => "io",
        ErrorKind::Malformed => "malformed",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::Limit => "limit",
        ErrorKind::Changed => "changed",
        ErrorKind::Assumption => "assumption",
        ErrorKind::Extraction => "extraction",
        ErrorKind::Impossible => "impossible",
        ErrorKind::NotEvaluated => "not evaluated",
        ErrorKind::Usage => "usage",
        _ => "internal",
    }
}

fn run(request: &[u8]) {
    onnx_slice_fold::clock::set(host::now);
    std::panic::set_hook(Box::new(|panic| host::fail(&json!({ "kind": "internal", "message": panic.to_string() }).to_string())));
    let done = serde_json::from_slice(request).map_err(|error| Failure::usage(error.to_string()));
    match done.and_then(|request: Value| answer(&request)) {
        Ok(answer) => host::answer(&answer.to_string()),
        Err(Failure { kind, message }) => host::fail(&json!({ "kind": kind, "message": message }).to_string()),
    }
}

fn answer(request: &Value) -> Result<Value, Failure> {
    let name = request["name"].as_str().unwrap_or("model.onnx");
    let options = || options::options(&request["options"]);
    let list = |field: &str| -> Vec<String> {
        let texts = request[field].as_array().into_iter().flatten();
        texts.filter_map(|text| text.as_str().map(str::to_string)).collect()
    };
    Ok(match request["call"].as_str().unwrap_or_default() {
        "fold" => {
            let (options, mut model) = (options()?.detailed(request["detailed"] == true), open(0)?);
            let (mut report, checked) = match request["check"].as_u64() {
                None => (model.fold_watched(&options, &mut |what| host::progress(what))?, None),
                Some(count) => {
                    let count = usize::try_from(count).unwrap_or(usize::MAX);
                    let (report, checked) = model.fold_checked(&options, count, &mut |what| host::progress(what))?;
                    (report, Some(checked))
                }
            };
            let mut text = report.to_string();
            if let Some(checked) = &checked {
                text.push_str(&format!("{checked}\n"));
            }
            let differs = checked.is_some_and(|checked| checked.difference.is_some());
            if !differs {
                let bytes = model.to_bytes()?;
                host::write(0, &bytes);
                report.bytes_after = Some(bytes.len() as u64);
            }
            json!({ "report": parsed(&report.json(name)), "text": text, "differs": differs })
        }
        "inspect" => {
            let inspection = open(0)?.inspect(&options()?)?;
            let text = onnx_slice_fold::inspection_text(&[(name.to_string(), inspection.clone())]);
            json!({ "report": parsed(&inspection.json(name)), "text": text })
        }
        "explain" => {
            let trials = request["trials"].as_u64().and_then(|trials| usize::try_from(trials).ok()).unwrap_or(200);
            let (report, explanation) = open(0)?.explain(&options()?, &list("names"), trials)?;
            json!({ "report": parsed(&explanation.json(&report, name)), "text": explanation.to_string() })
        }
        "rules" => onnx_slice_fold::passes::records()
            .map(|record| json!({ "name": record.name, "sentence": record.sentence, "law": record.law, "exact": record.exact }))
            .collect(),
        "resolve slice" => slices::resolve(&request["slice"])?,
        "show" => json!(open(0)?.text()),
        "diff" => json!(open(0)?.diff(&open(1)?)),
        other => return Err(Failure::usage(format!("there is no function '{other}'"))),
    })
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

fn open(source: u32) -> Result<OnnxModel, Failure> {
    let mut bytes = vec![0; usize::try_from(host::size(source)).unwrap_or(usize::MAX)];
    if !host::read(source, 0, &mut bytes) {
        return Err(Failure { kind: "io", message: "the model cannot be read".into() });
    }
    Ok(OnnxModel::from_bytes(bytes)?)
}
