//! A model on its way through the program: opened, folded, saved.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::rc::Rc;

use bytes::Bytes;

use crate::check::{self, Checked, Trial};
use crate::clock::Instant;
use crate::dim::Scope;
use crate::error::{Cause, Error};
use crate::evaluation;
use crate::explain::{self, Explanation, Folded, RuleExplanation};
use crate::ir::{self, CustomOperator, Data, Model};
use crate::onnx::{self, Limits, MissingData, ModelSink, OpenOptions, SaveOptions, Saved, Source, SourceError};
use crate::pages;
use crate::passes::{self, Options, Outcome, RunError, Shapes};
use crate::report::{
    Census, Detail, Drawing, Inspected, Inspection, Interface, LeftOut, Note, Report, author_names, diff, input_names,
    inspect, moves, slices_taken,
};
use crate::slicing::SliceRule;
use crate::stated::Said;
use crate::tensor::{ByteSource, SharedSource};

/// The number of times that a model is folded again for the suggestions on the page of a report.
const PAGE_TRIALS: usize = 10;

/// An ONNX model: opened, to be folded and written.
///
/// What is large stays where it is: the payloads of tensors are slices of the file, or of the bytes it was made from, until they
/// are written. The model may be sent to another thread between calls.
///
/// ```
/// use onnx_slice_fold::{OnnxModel, Options};
///
/// let mut model = OnnxModel::open("models/bert_dy18d.onnx")?;
/// let report = model.fold(&Options::new())?;
/// assert!(report.after.nodes() < report.before.nodes());
/// let bytes = model.to_bytes()?;
/// # assert_eq!(OnnxModel::from_bytes(bytes)?.text(), model.text());
/// # Ok::<(), onnx_slice_fold::Error>(())
/// ```
pub struct OnnxModel {
    model: Model,
    /// The symbols that dimensions are expressions of. While the passes run they share it; between calls it is owned here alone,
    /// which is what makes the whole `Send`.
    scope: Scope,
    source: Option<Source>,
    /// Bytes of the file, or of the bytes it was made from.
    bytes: usize,
    /// Bytes of its tensors that lie in other files.
    external_bytes: u64,
    /// Whether the passes were ended by an error, so that the model may be anything.
    half_folded: bool,
}

impl OnnxModel {
    /// Opens and decodes a model file. External data is looked for below the directory of `path`, and below the directory of the file that
    /// `path` leads to if it is a symbolic link. Tensors whose data file is missing have no values, which
    /// [`missing_data`](Self::missing_data) tells.
    ///
    /// # Errors
    /// If the file cannot be read, is no well-formed model, or asks for more than is allowed. The text names the place and the
    /// reason.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, &OpenOptions::new())
    }

    /// The same with options: other directories for external data.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self, Error> {
        let path = path.as_ref();
        Self::decoded(onnx::open(path)?, options, &|| format!("cannot read {}", onnx::QuotedPath(path)))
    }

    /// Decodes a model that is in memory: the bytes of a `ModelProto`. Bytes that are given away, such as a `Vec<u8>`, are not
    /// copied. Tensors whose data lie in files have no values.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self, Error> {
        Self::from_bytes_with(bytes, &OpenOptions::new())
    }

    /// The same for a model with external data, which is looked for beneath `directory`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes_in(bytes: impl Into<Bytes>, directory: impl AsRef<Path>) -> Result<Self, Error> {
        Self::from_bytes_with(bytes, &OpenOptions::new().external_data_root(directory.as_ref()))
    }

    /// The same with options. The first directory for external data is taken as the model's own.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes_with(bytes: impl Into<Bytes>, options: &OpenOptions) -> Result<Self, Error> {
        Self::decoded(Source::of_bytes(bytes.into()), options, &|| "cannot read the model".to_string())
    }

    /// Decodes a model that is held outside of memory, such as in a Blob of a browser: `model` reads any part of it, and `find` returns the data
    /// file at a location, `None` if it is missing, or the reason why it must not be read. Only the graph and small payloads are read; others are read where folding needs their values.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_source(
        model: Box<dyn ByteSource>,
        mut find: impl FnMut(&str) -> std::io::Result<Option<Box<dyn ByteSource>>> + Send + 'static,
    ) -> Result<Self, Error> {
        let find = move |location: &str| Ok(find(location)?.map(SharedSource::new));
        let source = Source::of_host(SharedSource::new(model), Box::new(find));
        let doing = || "cannot read the model".to_string();
        let source = source.map_err(|error| Error::new(Some(doing()), SourceError::of_host(error)))?;
        Self::decoded(source, &OpenOptions::new(), &doing)
    }

    fn decoded(mut source: Source, options: &OpenOptions, doing: &dyn Fn() -> String) -> Result<Self, Error> {
        source.data.also_beneath(options.external_data_roots.iter().cloned());
        pages::suit(|| onnx::count_nodes(source.bytes()));
        let (parts, unknown) = source.decode(&Limits::default()).map_err(|error| Error::new(Some(doing()), error))?;
        let model = onnx::import_parts(parts, &unknown, &mut source.data);
        let model = model.map_err(|error| Error::new(Some(doing()), error))?;
        source.verify()?;
        let bytes = usize::try_from(source.len()).unwrap_or(usize::MAX);
        let external_bytes = onnx::external_bytes(&model);
        Ok(OnnxModel { model, scope: Scope::new(), source: Some(source), bytes, external_bytes, half_folded: false })
    }

    /// Wraps a model that was built in memory.
    #[doc(hidden)]
    pub fn of(model: Model) -> Self {
        OnnxModel { model, scope: Scope::new(), source: None, bytes: 0, external_bytes: 0, half_folded: false }
    }

    /// The model as it is now.
    #[doc(hidden)]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The symbols its dimensions are expressions of.
    #[doc(hidden)]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The data files that the model refers to and that were not found when it was opened. Their tensors have type and shape and no
    /// values: nodes that read them are kept, and the model is written with the same references.
    pub fn missing_data(&self) -> Vec<MissingData> {
        self.source.iter().flat_map(|source| source.data.missing().cloned()).collect()
    }

    /// Makes of the model the part of it between these values: `inputs` become its inputs and `outputs` its outputs, in the order given. All
    /// outputs stay if none is given, and all inputs likewise. Values computed on the way that become inputs have the type that is
    /// inferred for them under `options`. What these assume of inputs is not used here: it is for the part, when that is folded.
    ///
    /// # Errors
    /// The model has no such value; what is given as an input is a constant, or of unknown type; an output needs an input that is not
    /// given. The model is as it was then, unless the options are wrong.
    pub fn extract(&mut self, inputs: &[String], outputs: &[String], options: &Options) -> Result<(), Error> {
        if !inputs.is_empty() {
            let mut options = options.clone().fold(false);
            options.assumptions.clear();
            self.fold(&options)?;
        }
        self.whole()?;
        Ok(passes::extract(&mut self.model, inputs, outputs)?)
    }

    /// Takes outputs away. The inputs stay, needed or not.
    ///
    /// # Errors
    /// The model has no such output, or no other. It is as it was then.
    pub fn remove_outputs(&mut self, names: &[String]) -> Result<(), Error> {
        self.whole()?;
        Ok(passes::remove_outputs(&mut self.model, names)?)
    }

    /// The names of the values of the main graph, of which [`extract`](Self::extract) makes inputs and outputs.
    pub fn value_names(&self) -> Vec<&str> {
        passes::values(&self.model).map(|value| self.model.value(value).name.as_str()).collect()
    }

    /// The names of the inputs, and of the outputs.
    pub fn interface(&self) -> (Vec<String>, Vec<String>) {
        let interface = Interface::of(&self.model);
        let (inputs, outputs) = interface.names();
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_string).collect();
        (owned(inputs), owned(outputs))
    }

    /// The names of the outputs.
    pub fn output_names(&self) -> Vec<&str> {
        let outputs = self.model.graph(self.model.main()).outputs();
        outputs.iter().map(|&value| self.model.value(value).name.as_str()).collect()
    }

    /// Makes an operator known for this model: what its nodes make of types and, if it says so, of values. One that was registered
    /// before under the same name is replaced.
    ///
    /// # Errors
    /// The program knows an operator of this name, and takes nodes for that.
    pub fn register(&mut self, operator: CustomOperator) -> Result<(), Error> {
        if operator.name().is_empty() || crate::ops::operator(operator.domain(), operator.name()).is_some() {
            return Err(Cause::Taken(format!("{operator:?}")).into());
        }
        self.model.add_custom(operator);
        Ok(())
    }

    /// Infers all shapes, folds what is decided and removes what is dead.
    ///
    /// # Errors
    /// An option is wrong, an assumption does not fit the model, or the model is inconsistent. After an error the model can only be
    /// dropped: every later call fails.
    pub fn fold(&mut self, options: &Options) -> Result<Report, Error> {
        self.fold_watched(options, &mut |_| {})
    }

    /// The same, telling `watch` what is being done whenever that changes: a few words for a progress display.
    ///
    /// # Errors
    /// As [`fold`](Self::fold).
    pub fn fold_watched(&mut self, options: &Options, watch: &mut dyn FnMut(&'static str)) -> Result<Report, Error> {
        if !options.detailed && !options.page {
            return self.fold_noting(options, watch, &mut |_, _, _| Ok(()));
        }
        self.whole()?;
        let (original, bytes) = (self.model.clone(), self.bytes);
        let mut detail = Detail { before: Drawing::of(&original), ..Detail::default() };
        let before = if options.page { Some(self.inspect(options)?) } else { None };
        let (mut inferred, infers) = (original.clone(), options.clone().fold(false).stop_after(0));
        let outcome = passes::run(&mut inferred, Rc::new(Scope::new()), &infers, bytes, watch)?;
        detail.slices_before = slices_taken(&inferred, &outcome.facts);
        (detail.inferred, detail.moves_before) = (Drawing::of(&inferred), moves(&inferred, &outcome.facts));
        if options.page {
            self.scope.note_doubts();
        }
        let recording = options.clone().detailed(true);
        let mut report = self.fold_noting(&recording, watch, &mut |model, outcome, work| {
            detail.slices_after = slices_taken(model, &outcome.facts);
            detail.moves_after = moves(model, &outcome.facts);
            let folded = Folded { original: &original, model, outcome, options, bytes, work };
            if options.page {
                let explanation = explain::explain(&folded, &[], PAGE_TRIALS)?;
                (detail.causes, detail.suggestions) = (explanation.causes, explanation.suggestions);
            } else {
                detail.causes = explain::causes(&folded);
            }
            Ok(())
        })?;
        detail.after = Drawing::of(&self.model);
        if let Some(before) = before {
            // Numbers are written into the inputs by now, and an assumption about a dim that became a number names nothing.
            let after = self.inspect(options).or_else(|_| {
                let mut without = options.clone();
                without.assumptions.clear();
                self.inspect(&without)
            })?;
            detail.inspected = Some((before, after));
        }
        report.detail = Some(Box::new(detail));
        Ok(report)
    }

    /// The same, and before what is proved is forgotten `note` sees the folded model with it, and how much work folding was.
    fn fold_noting(
        &mut self,
        options: &Options,
        watch: &mut dyn FnMut(&'static str),
        note: &mut dyn FnMut(&Model, &Outcome, u64) -> Result<(), Error>,
    ) -> Result<Report, Error> {
        self.whole()?;
        let missing_data = self.missing_data();
        if let Some(missing) = missing_data.first().filter(|_| options.strict) {
            return Err(Cause::NoData(missing.clone()).into());
        }
        let begin = Instant::now();
        let before = Census::of(&self.model);
        let interface = Interface::of(&self.model);
        let mut names = author_names(&self.model);
        let said = (options.shapes != Shapes::All).then(|| Said::of(&self.model));
        // Until the passes have come to their end, a panic included.
        self.half_folded = true;
        let scope = Rc::new(std::mem::take(&mut self.scope));
        let begun = scope.meter().done();
        let outcome = passes::run(&mut self.model, Rc::clone(&scope), options, self.bytes, watch)?;
        let seconds = begin.elapsed().as_secs_f64();
        let noted = note(&self.model, &outcome, scope.meter().done().saturating_sub(begun));
        let size_nodes = explain::size_nodes(&self.model, &outcome.facts);
        let label_relations = passes::relations_in_labels(&self.model, outcome.facts.scope());
        if options.stamp {
            self.model.stamp(format!("{} {}", env!("CARGO_PKG_VERSION"), options.told()).trim_end());
            self.model.remember(&outcome.remembers);
        }
        let limit = (self.bytes > 0 && self.external_bytes == 0).then_some(self.bytes);
        let left_out = said.and_then(|said| said.leave_out(&mut self.model, &outcome.facts, options, limit));
        drop(outcome.facts);
        // The facts were the last to share it.
        self.scope = Rc::into_inner(scope).unwrap_or_default();
        self.half_folded = false;
        noted?;
        let after = Interface::of(&self.model);
        names.extend(input_names(&self.model));
        let (inputs, outputs) = interface.until(after);
        Ok(Report {
            before,
            after: Census::knowing(&self.model, &names),
            inputs,
            outputs,
            bytes_before: self.bytes,
            bytes_after: None,
            external_bytes_before: self.external_bytes,
            external_bytes_after: None,
            files: Vec::new(),
            missing_data,
            rounds: outcome.rounds,
            opset: outcome.opset,
            notes: outcome.notes.into_iter().map(Note::from).collect(),
            fired: outcome.fired,
            last_edit: outcome.last_edit,
            edits: outcome.edits,
            size_nodes,
            left_out: left_out.map(|(shapes, reason)| LeftOut { shapes, reason }),
            label_relations,
            detail: None,
            passes: outcome.passes,
            pass_ends: outcome.ends,
            seconds,
        })
    }

    /// Folds, and tells why what is left is left: each node, each size that the inputs' sizes do not tell, and what would let more be done if
    /// it were known of the inputs. That is found by folding copies again, at most `trials` times and with about seven times the work that
    /// folding took; what is not tried is not told. Of `names`, which are those of nodes, tensors or sizes, more is told.
    ///
    /// # Errors
    /// As [`fold`](Self::fold); and nothing has one of the names.
    pub fn explain(
        &mut self,
        options: &Options,
        names: &[String],
        trials: usize,
    ) -> Result<(Report, Explanation), Error> {
        self.whole()?;
        let (original, bytes) = (self.model.clone(), self.bytes);
        let recording = options.clone().detailed(true);
        self.scope.note_doubts();
        let mut explanation = Explanation::default();
        let report = self.fold_noting(&recording, &mut |_| {}, &mut |model, outcome, work| {
            let folded = Folded { original: &original, model, outcome, options, bytes, work };
            explanation = explain::explain(&folded, names, trials)?;
            Ok(())
        })?;
        Ok((report, explanation))
    }

    /// Folds, and returns the answer of one rule at every remaining node with the pattern of the rule: the first premise that fails, the
    /// operand or dim that it is about, and the question that the prover could not answer. `node` restricts the
    /// answer to the node of this name, or the node that computes the tensor of this name.
    ///
    /// ```
    /// use onnx_slice_fold::{OnnxModel, Options};
    ///
    /// let mut model = OnnxModel::open("models/lstm_last_ts14d.onnx")?;
    /// let (_, explanation) = model.explain_rule(&Options::new(), "slice-slice", None)?;
    /// assert_eq!(explanation.rule, "slice-slice");
    /// # Ok::<(), onnx_slice_fold::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`fold`](Self::fold); and no rule, or no remaining node, has the name.
    pub fn explain_rule(
        &mut self,
        options: &Options,
        rule: &str,
        node: Option<&str>,
    ) -> Result<(Report, RuleExplanation), Error> {
        self.whole()?;
        let (original, bytes) = (self.model.clone(), self.bytes);
        self.scope.note_doubts();
        let mut explanation = None;
        let report = self.fold_noting(options, &mut |_| {}, &mut |model, outcome, work| {
            let folded = Folded { original: &original, model, outcome, options, bytes, work };
            explanation = Some(explain::explain_rule(&folded, rule, node)?);
            Ok(())
        })?;
        Ok((report, explanation.unwrap_or_default()))
    }

    /// Inspects the model: origin, interface, operators, parameters, multiply-accumulates and peak memory of a run. The model does not change.
    /// Of `options`, the assumptions about inputs and the reading of slices count.
    ///
    /// ```
    /// use onnx_slice_fold::{Figure, OnnxModel, Options};
    ///
    /// let model = OnnxModel::open("models/bert_dy18d.onnx")?;
    /// let inspection = model.inspect(&Options::new().dim("s33=1").dim("s50=32"))?;
    /// assert_eq!(inspection.census.nodes(), 104);
    /// assert!(matches!(inspection.macs.total, Figure::Number(_)));
    /// # Ok::<(), onnx_slice_fold::Error>(())
    /// ```
    ///
    /// # Errors
    /// An assumption does not fit the model, or the model is inconsistent.
    pub fn inspect(&self, options: &Options) -> Result<Inspection, Error> {
        Ok(self.inspection(&self.inferred(options)?))
    }

    /// Infers the facts about a copy of the model in which all calls are inlined.
    fn inferred(&self, options: &Options) -> Result<(Model, Outcome), Error> {
        // The largest number of nodes after inlining. Calls beyond it are kept and not counted.
        const MOST_NODES: usize = 1 << 20;
        self.whole()?;
        let mut inlined = self.model.clone();
        passes::inline_all(&mut inlined, MOST_NODES).map_err(RunError::from)?;
        let options = options.clone().fold(false).stop_after(0).stamp(false).shapes(Shapes::All);
        let outcome = passes::run(&mut inlined, Rc::new(Scope::new()), &options, self.bytes, &mut |_| {})?;
        Ok((inlined, outcome))
    }

    fn inspection(&self, (inlined, outcome): &(Model, Outcome)) -> Inspection {
        let missing: Vec<(String, usize)> =
            self.missing_data().into_iter().map(|data| (data.location, data.tensors)).collect();
        inspect(&Inspected {
            model: &self.model,
            inlined,
            facts: &outcome.facts,
            bytes: self.bytes as u64,
            missing: &missing,
            producer: onnx::producer(&self.model),
        })
    }

    /// Computes the outputs from values for the inputs, each by its name, in this program's own evaluator: the one that folds
    /// constants. Inputs that are initializers, too, may be left out. It is there to look at what a model computes, and is no runtime:
    /// kernels are plain, and whatever folding would leave alone is an error.
    ///
    /// ```
    /// use onnx_slice_fold::{Data, OnnxModel, Tensor};
    ///
    /// let model = OnnxModel::open("models/bert_dy18d.onnx")?;
    /// let ids = || Data::Tensor(Tensor::from_vec(&[1, 4], vec![5_i64, 6, 7, 8]).unwrap());
    /// let outputs = model.evaluate([("input_ids", ids()), ("attention_mask", ids())])?;
    /// let tensor = outputs[0].1.tensor().unwrap();
    /// assert_eq!((outputs[0].0.as_str(), tensor.shape()), ("layer_norm_4", &[1, 4, 32][..]));
    /// # Ok::<(), onnx_slice_fold::Error>(())
    /// ```
    ///
    /// # Errors
    /// A value is missing, is not what the model declares ([`Usage`](crate::ErrorKind::Usage)), or a node is not evaluated, on these
    /// values or at all ([`NotEvaluated`](crate::ErrorKind::NotEvaluated)).
    pub fn evaluate<N: Into<String>>(
        &self,
        inputs: impl IntoIterator<Item = (N, Data)>,
    ) -> Result<Vec<(String, Data)>, Error> {
        self.whole()?;
        let inputs: BTreeMap<String, Data> = inputs.into_iter().map(|(name, data)| (name.into(), data)).collect();
        let outputs = evaluation::evaluate(&self.model, SliceRule::Agree, inputs)?;
        // What was read from a file that was cut meanwhile are not its values.
        self.source.as_ref().map_or(Ok(()), Source::verify)?;
        Ok(outputs)
    }

    /// Lists the differences of another model from this one, a line each: `-` marks a part that only this model has, `+` a part that only the
    /// other has, `~` a part that has changed. Nodes are matched by the function they compute, not by name or place; subgraphs and functions are
    /// compared as graphs. Not compared are names of nodes and inner values, the order of nodes, documentation and metadata of nodes, tensors,
    /// subgraphs and functions, denotations, and the files that hold tensors.
    pub fn diff(&self, other: &OnnxModel) -> String {
        diff(&self.model, &other.model)
    }

    /// Folds, then runs original and result on `count` inputs that are made to tell them apart, by this program's evaluator. A difference is
    /// part of the answer, and so is what could not be compared; the model is folded in any case. With
    /// [`verify_each`](Options::verify_each) they are compared after each pass as well.
    ///
    /// # Errors
    /// As [`fold`](Self::fold).
    pub fn fold_checked(
        &mut self,
        options: &Options,
        count: usize,
        watch: &mut dyn FnMut(&'static str),
    ) -> Result<(Report, Checked), Error> {
        self.fold_checked_on(options, count, Vec::new(), watch)
    }

    /// The same on values by name as well, each lot with words that tell where it comes from.
    ///
    /// # Errors
    /// As [`fold`](Self::fold); and [`Usage`](crate::ErrorKind::Usage) if the values are not what the model declares.
    pub fn fold_checked_on(
        &mut self,
        options: &Options,
        count: usize,
        given: Vec<(String, BTreeMap<String, Data>)>,
        watch: &mut dyn FnMut(&'static str),
    ) -> Result<(Report, Checked), Error> {
        self.whole()?;
        let original = self.model.clone();
        let mut trial = Trial::drawn(count);
        for (source, values) in given {
            let bound = evaluation::bind(&original, values.clone());
            let (_, sizes) = bound.map_err(|error| Error::new(Some(source.clone()), error))?;
            trial = trial.also(&source, sizes, values);
        }
        let report = self.fold_watched(options, watch)?;
        watch("comparing with the original");
        let mut checked = check::check(&original, &self.model, options, &trial);
        let mut edits = report.fired.values().sum();
        if checked.difference.is_none() && options.verify_each {
            watch("comparing after each pass");
            let (found, compared) = check::check_each(&original, options, &trial, &report.pass_ends)?;
            checked.passes = Some((compared, report.pass_ends.len()));
            if let Some((difference, until)) = found {
                checked.difference = Some(difference);
                edits = until;
            }
        }
        if checked.difference.is_some() {
            watch("looking for the edit at fault");
            checked.culprit = check::culprit(&original, options, &trial, edits)?;
        }
        Ok((report, checked))
    }

    /// The model in the ONNX text syntax.
    pub fn text(&self) -> String {
        ir::text::print(&self.model)
    }

    /// The model in the ONNX text syntax as the standard's own parser reads it, with the types of results in comments beside the nodes.
    /// Constants of more than a few elements are told of by type and hash; with `full` all data is there, and the types are in a
    /// list as well, so that what is read is the whole model but for what the syntax has no words for: documentation of nodes and
    /// values, sparse constants, training information.
    pub fn parser_text(&self, full: bool) -> String {
        ir::text::print_for_parser(&self.model, &onnx::heading(&self.model), full)
    }

    /// The model as a drawing shows it.
    pub fn drawing(&self) -> Drawing {
        Drawing::of(&self.model)
    }

    /// The bytes of the model as a `ModelProto`, data that lay in files beside it included.
    ///
    /// # Errors
    /// If they are over the 2 GiB of a protobuf message, or a file the model came from changed meanwhile.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        self.whole()?;
        Ok(onnx::to_bytes(&self.model, self.source.as_ref())?)
    }

    /// Writes the model, whole or not at all: to a temporary file beside the target, synced, then renamed. Returns the bytes
    /// of the file. The target may be the file the model was opened from.
    ///
    /// Tensors whose data lay in other files keep it there if `path` is in the same directory; in any other, it is copied to a
    /// file beside `path`. A model over the 2 GiB of a protobuf message gets such a file, too.
    ///
    /// # Errors
    /// If the target cannot be written, or a file the model came from changed meanwhile. The target is untouched then.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<u64, Error> {
        Ok(self.save_with(path, &SaveOptions::new())?.model.bytes)
    }

    /// The same, with a say in which tensors lie in the file and which beside it. Tells each file that was written, for
    /// [`Report::note_saved`] as well.
    ///
    /// # Errors
    /// As [`save`](Self::save); and [`Usage`](crate::ErrorKind::Usage) if data are to be referred to that the output may not look for where
    /// they lie.
    pub fn save_with(&self, path: impl AsRef<Path>, options: &SaveOptions) -> Result<Saved, Error> {
        self.whole()?;
        Ok(onnx::store(&self.model, path.as_ref(), self.source.as_ref(), options)?)
    }

    /// Writes the model to a sink, which gets bytes and ranges of the sources that the model was [made from](Self::from_source). `name` is that of
    /// the model file, after which a data file is named.
    ///
    /// # Errors
    /// The sink fails, or a source cannot be read. The bytes that the sink has received are then useless.
    pub fn save_to(&self, name: &str, options: &SaveOptions, sink: &mut dyn ModelSink) -> Result<Saved, Error> {
        self.whole()?;
        Ok(onnx::store_to(&self.model, Path::new(name), self.source.as_ref(), options, sink)?)
    }

    /// # Errors
    /// An earlier call left the model half folded.
    fn whole(&self) -> Result<(), Error> {
        if self.half_folded { Err(Cause::HalfFolded.into()) } else { Ok(()) }
    }
}

impl Report {
    /// Takes down what was written.
    pub fn note_saved(&mut self, saved: &Saved) {
        self.bytes_after = Some(saved.model.bytes);
        self.external_bytes_after = Some(saved.external_bytes);
        self.files = [Some(&saved.model), saved.data.as_ref()]
            .into_iter()
            .flatten()
            .map(|file| (file.path.clone(), file.bytes))
            .collect();
    }
}

impl fmt::Debug for OnnxModel {
    /// How large it is; [`text`](OnnxModel::text) shows what is in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let census = Census::of(&self.model);
        f.debug_struct("OnnxModel").field("nodes", &census.nodes()).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// Fails to compile if what users hold between calls cannot go to another thread.
const _: () = {
    const fn is_send<T: Send>() {}
    const fn is_send_and_sync<T: Send + Sync>() {}
    is_send::<OnnxModel>();
    is_send_and_sync::<Options>();
    is_send_and_sync::<Report>();
    is_send_and_sync::<Error>();
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

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
    fn bytes_go_in_and_out() {
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
                    assert!(
                        sink.0[1] == std::fs::read(directory.path().join(&data.path)).unwrap(),
                        "{}",
                        path.display()
                    );
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
}
