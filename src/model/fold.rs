//! Folding a model, explanations, inspections, checks, and evaluation.

use super::OnnxModel;
use crate::check::{self, Checked, Trial};
use crate::clock::Instant;
use crate::consumers::Construct;
use crate::dim::Scope;
use crate::error::{Cause, Error};
use crate::evaluation;
use crate::explain::{self, Explanation, Folded, RuleExplanation, merged_maps, movement_maps};
use crate::ir::{Data, Model, NodeId};
use crate::onnx::{self, Source};
use crate::passes::{self, Options, Outcome, RunError, Shapes};
use crate::report::{
    Avoided, Census, Detail, Drawing, Inspected, Inspection, Interface, LeftOut, Note, Report, author_names,
    input_names, inspect,
};
use crate::rewrite;
use crate::slicing::SliceRule;
use crate::stated::Said;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The number of times that a model is folded again for the suggestions on the page of a report.
const PAGE_TRIALS: usize = 10;

impl OnnxModel {
    /// Infers all shapes, folds constant subgraphs and removes dead nodes.
    ///
    /// # Errors
    /// An option is wrong, an assumption does not fit the model, or the model is inconsistent. After an error the model is unusable: every
    /// later call fails.
    pub fn fold(&mut self, options: &Options) -> Result<Report, Error> {
        self.fold_watched(options, &mut |_| {})
    }

    /// Folds with progress: calls `watch` with a short description whenever the step changes.
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
        (detail.inferred, detail.maps_before) = (Drawing::of(&inferred), movement_maps(&inferred, &outcome.facts));
        if options.page {
            self.scope.note_doubts();
        }
        let recording = options.clone().detailed(true);
        let mut report = self.fold_noting(&recording, watch, &mut |model, outcome, work| {
            detail.maps_after = movement_maps(model, &outcome.facts);
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
        let merged =
            report.edits.iter().filter(|edit| edit.name == "movement").filter_map(|edit| edit.place.as_deref());
        detail.maps_merged = merged_maps(&inferred, &outcome.facts, &merged.collect::<Vec<_>>());
        if let Some(before) = before {
            // The inputs contain numbers now, so an assumption about a former symbol names nothing.
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

    /// Returns the remaining nodes with constructs that the consumer lacks, with the reasons why they are kept.
    fn avoided(&self, outcome: &Outcome, options: &Options) -> Vec<Avoided> {
        let remaining = rewrite::remaining(&self.model, &outcome.facts, &options.avoid);
        if remaining.is_empty() {
            return Vec::new();
        }
        let folded = Folded { original: &self.model, model: &self.model, outcome, options, bytes: self.bytes, work: 0 };
        let causes = explain::causes(&folded);
        let entry = |(id, construct): (NodeId, &Construct)| {
            let node = self.model.describe(id);
            let reason =
                causes.iter().find(|cause| cause.node == node).map_or_else(String::new, |cause| cause.reason.clone());
            Avoided::new(construct.clone(), node, reason)
        };
        remaining.into_iter().map(entry).collect()
    }

    /// Folds and calls `note` with the folded model, its facts and the work of folding, before the facts are dropped.
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
        // Reset when the passes have completed. After a panic it is still set.
        self.half_folded = true;
        let scope = Rc::new(std::mem::take(&mut self.scope));
        let begun = scope.meter().done();
        let outcome = passes::run(&mut self.model, Rc::clone(&scope), options, self.bytes, watch)?;
        let seconds = begin.elapsed().as_secs_f64();
        let noted = note(&self.model, &outcome, scope.meter().done().saturating_sub(begun));
        let avoided = self.avoided(&outcome, options);
        let size_nodes = explain::size_nodes(&self.model, &outcome.facts);
        let label_relations = passes::relations_in_labels(&self.model, outcome.facts.scope());
        if options.stamp {
            self.model.stamp(format!("{} {}", env!("CARGO_PKG_VERSION"), options.told()).trim_end());
            self.model.remember(&outcome.remembers);
        }
        let limit = (self.bytes > 0 && self.external_bytes == 0).then_some(self.bytes);
        let left_out = said.and_then(|said| said.leave_out(&mut self.model, &outcome.facts, options, limit));
        drop(outcome.facts);
        // The facts held the last other reference.
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
            avoided,
            size_nodes,
            left_out: left_out.map(|(shapes, reason)| LeftOut { shapes, reason }),
            label_relations,
            detail: None,
            passes: outcome.passes,
            pass_ends: outcome.ends,
            seconds,
        })
    }

    /// Folds, and returns the reasons for which nodes remain, the sizes that the dims of the inputs do not determine, and suggestions: assumptions
    /// about the inputs under which more folds. Suggestions are found by folding copies again, at most `trials` times and with about seven times
    /// the work of folding. `names` are names of nodes, tensors or sizes, for which the explanation has more detail.
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

    /// Folds, and returns the answer of one rule at every remaining node that matches the pattern of the rule. The answer is the first
    /// premise that fails, the operand or dim that it is about, and the question that the prover could not answer. `node` restricts the
    /// answer to the node of this name, or the node that computes the tensor of this name.
    ///
    /// ```
    /// use onnx_slice_fold::{OnnxModel, Options};
    ///
    /// let mut model = OnnxModel::open("models/lstm_last_ts14d.onnx")?;
    /// let (_, explanation) = model.explain_rule(&Options::new(), "movement", None)?;
    /// assert_eq!(explanation.rule, "movement");
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

    /// Computes the outputs from values for the inputs, each by its name, in the evaluator that folds constants. Inputs with an initializer may be
    /// omitted. The evaluator serves inspection and is no runtime: its kernels are plain, and a node that folding declines is an error.
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
        // Payloads of a file that was cut meanwhile are not its values.
        self.source.as_ref().map_or(Ok(()), Source::verify)?;
        Ok(outputs)
    }

    /// Folds, then runs original and result in this program's evaluator on `count` inputs that are drawn so that differences show. The answer holds
    /// the first difference and the inputs that could not be compared; the model is folded in any case. With
    /// [`verify_each`](Options::verify_each) both are compared after each pass as well.
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

    /// Checks on given values by name as well. Each set of values has a text that names its source.
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
}
