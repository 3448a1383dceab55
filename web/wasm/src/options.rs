//! The options of a request: the flags of the command line in camel case.

use onnx_slice_fold::{
    Assumption, Construct, ExternalData, OnnxModel, Options, SaveOptions, Shapes, SliceName, SliceRule, nearest_name,
    sizes,
};
use serde_json::{Map, Value};

use crate::Failure;

/// The options of a request.
pub struct Given {
    pub options: Options,
    pub save: SaveOptions,
    /// The number of inputs on which original and result are compared.
    pub check: Option<usize>,
    /// Returns `true` if the request selects the shapes to write.
    pub names_shapes: bool,
    inputs: Vec<String>,
    outputs: Vec<String>,
    unused_outputs: Vec<String>,
}

impl Given {
    /// Extracts the requested part of a model.
    ///
    /// # Errors
    /// The model has no such part.
    pub fn part_of(&self, mut model: OnnxModel) -> Result<OnnxModel, Failure> {
        if !self.unused_outputs.is_empty() {
            model.remove_outputs(&self.unused_outputs)?;
        }
        if !self.inputs.is_empty() || !self.outputs.is_empty() {
            model.extract(&self.inputs, &self.outputs, &self.options)?;
        }
        Ok(model)
    }
}

/// The values that an option has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Flag,
    /// One text or number.
    Value,
    /// A list of texts, or one text.
    List,
}

impl Kind {
    /// Returns the name of the kind, as the call `options` gives it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Flag => "flag",
            Kind::Value => "value",
            Kind::List => "list",
        }
    }
}

/// All options.
pub const OPTIONS: &[(&str, Kind)] = &[
    ("dim", Kind::List),
    ("assume", Kind::List),
    ("overwriteInputShape", Kind::List),
    ("trustDeclaredShapes", Kind::Flag),
    ("trustInputNames", Kind::Flag),
    ("inputs", Kind::List),
    ("outputs", Kind::List),
    ("unusedOutput", Kind::List),
    ("sliceRule", Kind::Value),
    ("stridedSlice", Kind::List),
    ("maxGrowth", Kind::Value),
    ("foldSizeThreshold", Kind::Value),
    ("strict", Kind::Flag),
    ("skip", Kind::List),
    ("only", Kind::List),
    ("avoid", Kind::List),
    ("noRules", Kind::Flag),
    ("exact", Kind::Flag),
    ("foldDequantize", Kind::Flag),
    ("unroll", Kind::Value),
    ("noStamp", Kind::Flag),
    ("shapes", Kind::Value),
    ("lean", Kind::Flag),
    ("noNewShapes", Kind::Flag),
    ("opset", Kind::Value),
    ("stopAfter", Kind::Value),
    ("verifyEach", Kind::Flag),
    ("check", Kind::Value),
    ("externalData", Kind::Value),
    ("saveAsExternalData", Kind::Flag),
    ("externalDataThreshold", Kind::Value),
];

/// Reads the options of a request.
///
/// # Errors
/// An option that does not exist, or a value that it does not have. The message names the values it has.
pub fn options(given: &Value) -> Result<Given, Failure> {
    let mut read = Given {
        options: Options::new(),
        save: SaveOptions::new(),
        check: None,
        names_shapes: false,
        inputs: Vec::new(),
        outputs: Vec::new(),
        unused_outputs: Vec::new(),
    };
    // Shapes of inputs first, then dims, then relations, as on the command line.
    let mut assumptions: [Vec<Assumption>; 3] = Default::default();
    for (name, value) in given.as_object().into_iter().flatten() {
        let options = read.options.clone();
        let expected = |what: &str| Failure::usage(format!("option '{name}' is {value}; expected {what}"));
        let flag = || value.as_bool().ok_or_else(|| expected("true or false"));
        let text = || match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let number = || -> Result<usize, Failure> { text().parse().map_err(|_| expected("a number of at least 0")) };
        let bytes = || sizes::bytes(&text()).map_err(|what| expected(what.trim_start_matches("expected ")));
        let texts = || match value {
            Value::String(text) => Ok(vec![text.clone()]),
            Value::Array(list) if list.iter().all(Value::is_string) => Ok(self::texts(value)),
            _ => Err(expected("a text or a list of texts")),
        };
        let one_of = |known: &[&'static str]| {
            let found = known.iter().find(|known| value.as_str() == Some(known)).copied();
            found.ok_or_else(|| expected(&known.join(", ")))
        };
        read.options = match name.as_str() {
            "dim" => {
                assumptions[1] = texts()?.into_iter().map(Assumption::Dim).collect();
                options
            }
            "assume" => {
                assumptions[2] = texts()?.into_iter().map(Assumption::Relation).collect();
                options
            }
            "overwriteInputShape" => {
                assumptions[0] = texts()?.into_iter().map(Assumption::InputShape).collect();
                options
            }
            "inputs" => {
                read.inputs = texts()?;
                options
            }
            "outputs" => {
                read.outputs = texts()?;
                options
            }
            "unusedOutput" => {
                read.unused_outputs = texts()?;
                options
            }
            "check" => {
                read.check = match value {
                    Value::Bool(wanted) => wanted.then_some(8),
                    _ => Some(number()?),
                };
                options
            }
            "saveAsExternalData" => {
                read.save = read.save.save_as_external_data(flag()?);
                options
            }
            "externalDataThreshold" => {
                read.save = read.save.threshold(bytes()?);
                options
            }
            "externalData" => {
                let external_data = match one_of(&["keep", "copy", "link", "inline"])? {
                    "copy" => ExternalData::Copy,
                    "link" => ExternalData::Link,
                    "inline" => ExternalData::Inline,
                    _ => ExternalData::Keep,
                };
                read.save = read.save.external_data(external_data);
                options
            }
            "trustDeclaredShapes" => options.trust_declared_shapes(flag()?),
            "trustInputNames" => options.trust_input_names(flag()?),
            "stridedSlice" => {
                let names = texts()?.iter().map(|text| text.parse()).collect::<Result<Vec<SliceName>, _>>();
                options.slice_names(names.map_err(|error| Failure::usage(error.to_string()))?)
            }
            "maxGrowth" => {
                let percent = sizes::percent(&text());
                options.max_growth(percent.map_err(|what| expected(what.trim_start_matches("expected ")))? / 100.0)
            }
            "foldSizeThreshold" => options.max_constant(bytes()?),
            "skip" => options.skip(texts()?),
            "only" => options.only(texts()?),
            "avoid" => {
                let constructs = texts()?.iter().map(|text| text.parse()).collect::<Result<Vec<Construct>, _>>();
                options.avoid(constructs.map_err(|error| Failure::usage(error.to_string()))?)
            }
            "noRules" => options.rules(!flag()?),
            "exact" => options.exact(flag()?),
            "foldDequantize" => options.fold_dequantize(flag()?),
            "unroll" => options.unroll(number()?),
            "strict" => options.strict(flag()?),
            "noStamp" => options.stamp(!flag()?),
            "stopAfter" => options.stop_after(number()?),
            "verifyEach" => options.verify_each(flag()?),
            "opset" => {
                let opset = sizes::opset(&text());
                options.opset(Some(opset.map_err(|what| expected(what.trim_start_matches("expected ")))?))
            }
            "lean" if flag()? => {
                read.names_shapes = true;
                options.shapes(Shapes::Lean)
            }
            "noNewShapes" if flag()? => {
                read.names_shapes = true;
                options.shapes(Shapes::Keep)
            }
            "lean" | "noNewShapes" => options,
            "shapes" => {
                read.names_shapes = true;
                options.shapes(match one_of(&["auto", "all", "keep", "lean", "none"])? {
                    "all" => Shapes::All,
                    "keep" => Shapes::Keep,
                    "lean" => Shapes::Lean,
                    "none" => Shapes::None,
                    _ => Shapes::Auto,
                })
            }
            "sliceRule" => options.slice_rule(match one_of(&["agree", "onnxruntime", "spec", "numpy"])? {
                "onnxruntime" => SliceRule::OnnxRuntime,
                "spec" => SliceRule::Spec,
                "numpy" => SliceRule::Numpy,
                _ => SliceRule::Agree,
            }),
            unknown => {
                let names: Vec<&str> = OPTIONS.iter().map(|(name, _)| *name).collect();
                let nearest = nearest_name(unknown, names.iter().copied());
                let hint = nearest.map_or_else(
                    || format!("; the options are {}", names.join(", ")),
                    |nearest| format!("; did you mean '{nearest}'?"),
                );
                return Err(Failure::usage(format!("there is no option '{unknown}'{hint}")));
            }
        };
    }
    let shapes =
        ["shapes", "lean", "noNewShapes"].iter().filter(|name| given.get(name).is_some_and(|value| *value != false));
    if shapes.count() > 1 {
        return Err(Failure::usage("'shapes', 'lean' and 'noNewShapes' exclude one another; use 'shapes' alone"));
    }
    read.options = read.options.assumptions(assumptions.into_iter().flatten());
    Ok(read)
}

/// Returns the texts in a list.
pub fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_string)).collect()
}

/// Returns the options that equal flags of the command line, in the form of suggestions: `--dim batch=1 --assume 'a <= b'`.
pub fn of_flags(flags: &str) -> Value {
    let mut options: Map<String, Value> = Map::new();
    let words = words(flags);
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let Some(flag) = word.strip_prefix("--") else { continue };
        let mut parts = flag.split('-');
        let mut name = parts.next().unwrap_or_default().to_string();
        for part in parts {
            let mut letters = part.chars();
            name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
            name.push_str(letters.as_str());
        }
        match words.next_if(|next| !next.starts_with("--")) {
            None => _ = options.insert(name, Value::Bool(true)),
            Some(value) => {
                let list = options.entry(name).or_insert_with(|| Value::Array(Vec::new()));
                list.as_array_mut().into_iter().for_each(|list| list.push(Value::String(value.clone())));
            }
        }
    }
    Value::Object(options)
}

/// Splits a command line at spaces outside of quotes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (letter, quote) {
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (letter, Some(open)) if letter == open => quote = None,
            (' ', None) => words.extend(word.take()),
            (letter, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}
