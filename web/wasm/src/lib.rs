//! The module of the npm package: requests as JSON, models as bytes of the host.

mod detail;
mod host;
mod options;
mod slices;

use std::io;

use onnx_slice_fold::{ByteRange, ByteSource, DrawingForm, Error, ErrorKind, ModelSink, OnnxModel, Report, Shapes};
use serde_json::{Value, json};

/// An error for the host.
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
    std::panic::set_hook(Box::new(|panic| fail("internal", &panic.to_string())));
    let done = serde_json::from_slice(request).map_err(|error| Failure::usage(error.to_string()));
    match done.and_then(|request: Value| answer(&request)) {
        Ok(answer) => host::answer(&answer.to_string()),
        Err(Failure { kind, message }) => fail(kind, &message),
    }
}

fn fail(kind: &str, message: &str) {
    host::fail(&json!({ "kind": kind, "message": message }).to_string());
}

fn answer(request: &Value) -> Result<Value, Failure> {
    let name = request["name"].as_str().unwrap_or("model.onnx");
    let number = |field: &str| request[field].as_u64().and_then(|number| usize::try_from(number).ok());
    let open = || -> Result<(options::Given, OnnxModel), Failure> {
        let given = options::options(&request["options"])?;
        let model = given.part_of(open(0)?)?;
        Ok((given, model))
    };
    Ok(match request["call"].as_str().unwrap_or_default() {
        "fold" => fold(request, name, open()?)?,
        "inspect" => {
            let (given, model) = open()?;
            let inspection = model.inspect(&given.options)?;
            let text = onnx_slice_fold::inspection_text(&[(name.to_string(), inspection.clone())]);
            json!({ "report": parsed(&inspection.json(name)), "text": text })
        }
        "explain" => {
            let (mut given, mut model) = open()?;
            if !given.names_shapes {
                given.options = given.options.shapes(Shapes::All);
            }
            if let Some(rule) = request["rule"].as_str() {
                let (_, explanation) = model.explain_rule(&given.options, rule, request["node"].as_str())?;
                return Ok(json!({ "report": parsed(&explanation.json(name)), "text": explanation.to_string() }));
            }
            let names = options::texts(&request["names"]);
            let (report, explanation) = model.explain(&given.options, &names, number("trials").unwrap_or(10))?;
            let mut answer = parsed(&explanation.json(&report, name));
            for suggestion in answer["suggestions"].as_array_mut().into_iter().flatten() {
                suggestion["options"] = options::of_flags(suggestion["flags"].as_str().unwrap_or_default());
            }
            json!({ "report": answer, "text": explanation.to_string() })
        }
        "show" => {
            let (given, mut model) = open()?;
            let is_folded = request["folded"] == true;
            let mut options = given.options.fold(is_folded);
            if !given.names_shapes {
                options = options.shapes(Shapes::All);
            }
            // The model is only shown, so it gets no metadata about a run.
            model.fold(&if is_folded { options } else { options.stamp(false) })?;
            let drawn = |form| {
                let text = model.drawing().text(form, request["around"].as_str(), number("depth").unwrap_or(2));
                text.map_err(|error| Failure::usage(error.to_string()))
            };
            json!(match request["form"].as_str().unwrap_or("text") {
                "text" => model.parser_text(false),
                "full" => model.parser_text(true),
                "dot" => drawn(DrawingForm::Dot)?,
                "mermaid" => drawn(DrawingForm::Mermaid)?,
                other => {
                    return Err(Failure::usage(format!("'{other}' is not a form; expected text, full, dot or mermaid")));
                }
            })
        }
        "options" => options::OPTIONS.iter().map(|(name, kind)| (name.to_string(), json!(kind.name()))).collect(),
        "rules" => onnx_slice_fold::passes::records()
            .map(|record| json!({ "name": record.name, "sentence": record.sentence, "law": record.law, "exact": record.exact }))
            .collect(),
        "resolve slice" => slices::resolve(&request["slice"])?,
        "diff" => json!(self::open(0)?.diff(&self::open(1)?)),
        other => return Err(Failure::usage(format!("there is no function '{other}'"))),
    })
}

fn fold(request: &Value, name: &str, (given, mut model): (options::Given, OnnxModel)) -> Result<Value, Failure> {
    let options = given.options.detailed(request["detailed"] == true);
    let watch = host::progress;
    let (mut report, checked) = match given.check {
        None => (model.fold_watched(&options, &mut |what| watch(what))?, None),
        Some(count) => {
            let (report, checked) = model.fold_checked(&options, count, &mut |what| watch(what))?;
            (report, Some(checked))
        }
    };
    let differs = checked.as_ref().is_some_and(|checked| checked.difference.is_some());
    let checked = checked.map(|checked| checked.to_string());
    let mut data = Value::Null;
    if !differs {
        host::progress("writing the result");
        let target = request["target"].as_str().unwrap_or("model.onnx");
        let saved = model.save_to(target, &given.save, &mut Sink)?;
        report.note_saved(&saved);
        data = json!(saved.data.map(|data| data.path.to_string_lossy().into_owned()));
    }
    Ok(json!({
        "report": told(&report, name),
        "text": format!("{report}\n"),
        "checked": checked,
        "differs": differs,
        "data": data,
    }))
}

/// The report as JSON, with the details that a page shows.
fn told(report: &Report, name: &str) -> Value {
    let mut told = parsed(&report.json(name));
    if let Some(detail) = detail::detail(report) {
        told["detail"] = detail;
    }
    told
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// A file of the host.
struct Source(u32);

impl ByteSource for Source {
    fn size(&self) -> u64 {
        host::size(self.0)
    }

    fn read(&self, from: u64, out: &mut [u8]) -> io::Result<()> {
        if host::read(self.0, from, out) { Ok(()) } else { Err(io::Error::other("the host could not read it")) }
    }

    fn number(&self) -> u32 {
        self.0
    }
}

/// The files of the host that take a result.
struct Sink;

impl ModelSink for Sink {
    fn bytes(&mut self, is_data: bool, bytes: &[u8]) -> io::Result<()> {
        host::write(u32::from(is_data), bytes);
        Ok(())
    }

    fn range(&mut self, is_data: bool, range: &ByteRange) -> io::Result<()> {
        host::copy(u32::from(is_data), range.source().number(), range.from(), range.len() as u64);
        Ok(())
    }
}

fn open(source: u32) -> Result<OnnxModel, Failure> {
    let find = move |location: &str| -> io::Result<Option<Box<dyn ByteSource>>> {
        let found = host::find(source, location).map_err(io::Error::other)?;
        Ok(found.map(|found| Box::new(Source(found)) as Box<dyn ByteSource>))
    };
    Ok(OnnxModel::from_source(Box::new(Source(source)), find)?)
}
