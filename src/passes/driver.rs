//! Runs passes over one root graph until no pass changes it.
//!
//! The caller gives the passes and their order. The main graph of a model and the body of each function are root graphs, so the driver runs once for
//! each.

use super::outcome::RunError;
use super::pass::{NodeEvent, Pass, Work};
use crate::clock::Instant;
use crate::ops::EventKind;

/// Runs the passes, round after round, until a round changes nothing. Each round begins with `infer`. Returns the number of rounds. Calls `tell` with
/// each note, and with one more if the passes reach the limit of rounds.
///
/// # Errors
/// A pass made the model inconsistent, or the graph cannot be walked.
pub(super) fn settle(
    work: &mut Work<'_>,
    infer: &Pass,
    passes: &[Pass],
    tell: &mut dyn FnMut(Told),
) -> Result<usize, RunError> {
    work.agenda.begin(work.model, &mut work.walk.facts);
    let rounds = rounds(work, infer, passes, tell);
    work.agenda.end(work.model, &mut work.walk.facts);
    rounds
}

/// Runs each of the closing passes once, over a graph that no other pass changes any more. Infers again after each that changes something. Other
/// passes would undo the edits of closing passes.
///
/// # Errors
/// A pass made the model inconsistent, or the graph cannot be walked.
pub(super) fn close(
    work: &mut Work<'_>,
    infer: &Pass,
    closing: &[Pass],
    tell: &mut dyn FnMut(Told),
) -> Result<(), RunError> {
    for pass in closing {
        let before = work.run.edits.made();
        run(work, pass)?;
        if work.run.edits.made() > before {
            run(work, infer)?;
        }
    }
    work.notes.drain(..).for_each(|note| tell(Told::Note(note)));
    Ok(())
}

fn rounds(work: &mut Work<'_>, infer: &Pass, passes: &[Pass], tell: &mut dyn FnMut(Told)) -> Result<usize, RunError> {
    let mut rounds = 0;
    loop {
        rounds += 1;
        run(work, infer)?;
        work.notes.drain(..).for_each(|note| tell(Told::Note(note)));
        if passes.is_empty() {
            break;
        }
        if rounds > work.run.options.rounds {
            tell(Told::Note(stopped(work, rounds)));
            break;
        }
        tell(Told::Doing("folding"));
        let changed = round(work, passes)?;
        work.notes.drain(..).for_each(|note| tell(Told::Note(note)));
        if !changed {
            break;
        }
    }
    Ok(rounds)
}

/// Returns the note that the passes were stopped.
fn stopped(work: &Work<'_>, rounds: usize) -> NodeEvent {
    let last = work.run.edits.last().map_or_else(String::new, |edit| format!(", the last edit by {}", edit.name));
    let reason = format!(
        "the limit rounds ended the passes, which still change something in round {rounds}{last}; the model is correct, and may be longer than \
         need be"
    );
    ("the model".to_string(), EventKind::Stopped, reason)
}

/// The progress of the passes.
pub(super) enum Told {
    /// The current activity.
    Doing(&'static str),
    /// A note about a node.
    Note(NodeEvent),
}

/// Runs the passes stage by stage, up to the first stage that changes something. Returns `true` if one did.
fn round(work: &mut Work<'_>, passes: &[Pass]) -> Result<bool, RunError> {
    let before = work.run.edits.made();
    let mut stage = 0;
    for pass in passes {
        if pass.stage > stage && work.run.edits.made() > before {
            break;
        }
        stage = pass.stage;
        run(work, pass)?;
    }
    Ok(work.run.edits.made() > before)
}

/// Runs each of these passes once, without inference in between.
///
/// # Errors
/// A pass made the model inconsistent, or the graph cannot be walked.
pub(super) fn once(work: &mut Work<'_>, passes: &[Pass]) -> Result<(), RunError> {
    passes.iter().try_for_each(|pass| run(work, pass))
}

/// Runs a pass once, and records its time and edits without those of nested passes. Verifies the model if the options say so.
fn run(work: &mut Work<'_>, pass: &Pass) -> Result<(), RunError> {
    let (begin, before, inside) = (Instant::now(), work.run.edits.made(), work.run.profile.seconds());
    let mut result = (pass.run)(work);
    let Work { model, run, .. } = work;
    let (name, made) = (pass.name, run.edits.made());
    let others = run.ends.iter().rev().take_while(|(_, end)| *end > before).count();
    let changes = if others == 0 { made - before } else { run.edits.made_by(name) };
    run.profile.note_around(name, begin, inside, changes);
    if changes > 0 {
        run.ends.push((name, made));
    }
    #[cfg(feature = "seeded-faults")]
    if changes > 0 {
        crate::ir::faults::after_pass(model);
    }
    if result.is_ok() && changes > 0 && run.options.verify_each {
        result = model.verify().map_err(RunError::Broken);
    }
    match result {
        Err(RunError::Broken(broken)) if changes > 0 => {
            Err(RunError::Defect { pass: name, last_edit: run.edits.last().cloned(), broken })
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::dim::Scope;
    use crate::ir::{Model, text};
    use crate::ops::{Budget, Walk};
    use crate::passes::edits::EditCounter;
    use crate::passes::options::Options;
    use crate::passes::pass::Run;

    const INFER: Pass = Pass { name: "infer", does: "", stage: 0, run: |_| Ok(()) };

    /// Removes the first node although its result is read.
    fn cut_off(work: &mut Work<'_>) -> Result<(), RunError> {
        let first = work.model.graph(work.model.main()).nodes().next();
        if let Some(id) = first.filter(|_| work.run.edits.take("cut-off", || "the first node".to_string())) {
            work.model.remove_node(id);
        }
        Ok(())
    }

    /// Renames a node, at most three times.
    fn rename(work: &mut Work<'_>) -> Result<(), RunError> {
        let id = work.model.graph(work.model.main()).nodes().next_back();
        if let Some(node) = id.and_then(|id| work.model.node_mut(id)).filter(|node| node.name.len() < 3)
            && work.run.edits.take("rename", || "the last node".to_string())
        {
            node.name = format!("{}x", node.name).into();
        }
        Ok(())
    }

    /// Renames a node back and forth.
    fn swing(work: &mut Work<'_>) -> Result<(), RunError> {
        let id = work.model.graph(work.model.main()).nodes().next_back();
        if let Some(node) = id.and_then(|id| work.model.node_mut(id))
            && work.run.edits.take("swing", || "the last node".to_string())
        {
            node.name = if node.name.is_empty() { "x" } else { "" }.into();
        }
        Ok(())
    }

    fn settled(passes: &[Pass], options: &Options) -> (Result<usize, RunError>, Vec<(&'static str, usize, usize)>) {
        let (rounds, profile, _) = told(passes, &[], options);
        (rounds, profile)
    }

    type Profile = Vec<(&'static str, usize, usize)>;

    fn told(
        passes: &[Pass],
        closing: &[Pass],
        options: &Options,
    ) -> (Result<usize, RunError>, Profile, Vec<NodeEvent>) {
        let source = "<ir_version: 8, opset_import: [\"\" : 17]> g (float[n] x) => (y) { a = Abs (x) y = Neg (a) }";
        let mut model: Model = text::parse(source).expect("it parses");
        let mut walk = Walk::new(Rc::new(Scope::new()), options.slice_rule, Budget::default());
        let mut run = Run::new(options, EditCounter::new(options.stop_after, true), 0);
        let mut work = Work::new(&mut model, &mut walk, &mut run, 0);
        let mut notes = Vec::new();
        let mut tell = |told| {
            if let Told::Note(note) = told {
                notes.push(note);
            }
        };
        let rounds = settle(&mut work, &INFER, passes, &mut tell);
        let rounds = rounds.and_then(|rounds| close(&mut work, &INFER, closing, &mut tell).map(|()| rounds));
        let profile = std::mem::take(&mut run.profile).into_passes();
        (rounds, profile.into_iter().map(|pass| (pass.name, pass.runs, pass.changes)).collect(), notes)
    }

    #[test]
    fn a_later_stage_runs_when_those_before_change_nothing() {
        let late = Pass { name: "late", does: "", stage: 1, run: |_| Ok(()) };
        let early = Pass { name: "early", does: "", stage: 0, run: rename };
        let (rounds, passes) = settled(&[early, late], &Options::default());
        assert_eq!(rounds.ok(), Some(4));
        assert_eq!(passes, [("infer", 4, 0), ("early", 4, 3), ("late", 1, 0)]);
    }

    #[test]
    fn closing_passes_run_once_and_their_changes_are_inferred() {
        let early = Pass { name: "early", does: "", stage: 0, run: rename };
        let closing = [
            Pass { name: "closing", does: "", stage: 0, run: swing },
            Pass { name: "idle", does: "", stage: 0, run: |_| Ok(()) },
        ];
        let (rounds, passes, _) = told(&[early], &closing, &Options::default());
        assert_eq!(rounds.ok(), Some(4));
        assert_eq!(passes, [("infer", 5, 0), ("early", 4, 3), ("closing", 1, 1), ("idle", 1, 0)]);
        let (_, passes, _) = told(&[early], &closing, &Options::new().stop_after(3));
        assert_eq!(passes, [("infer", 4, 0), ("early", 4, 3), ("closing", 1, 0), ("idle", 1, 0)]);
    }

    #[test]
    fn passes_without_a_fixed_point_are_stopped_and_reported() {
        let swing = Pass { name: "swing", does: "", stage: 0, run: swing };
        let (rounds, passes, notes) = told(&[swing], &[], &Options::default());
        let expected = Options::default().rounds;
        assert_eq!(rounds.ok(), Some(expected + 1));
        assert_eq!(passes, [("infer", expected + 1, 0), ("swing", expected, expected)]);
        assert!(matches!(&notes[..], [(_, EventKind::Stopped, reason)] if reason.contains("the last edit by swing")));
        assert!(told(&[], &[], &Options::default()).2.is_empty());
    }

    #[test]
    fn a_pass_that_breaks_the_model_is_named() {
        let passes = [
            Pass { name: "good", does: "", stage: 0, run: rename },
            Pass { name: "bad", does: "", stage: 0, run: cut_off },
            Pass { name: "next", does: "", stage: 0, run: rename },
        ];
        let options = Options::new().verify_each(true);
        let (result, _) = settled(&passes, &options);
        let said = result.map_err(|error| error.to_string());
        let expected = "pass 'bad' made the model invalid, the last edit was cut-off at the first node: Neg node 'x' reads 'a', which has no definition";
        assert_eq!(said, Err(expected.to_string()));
        // Without the check the fault is not found here, and with fewer edits there is no fault.
        assert!(settled(&passes, &Options::default()).0.is_ok());
        assert!(settled(&passes, &options.stop_after(1)).0.is_ok());
    }
}
