//! The rewrite rules and passes on small models, each alone: the models that each changes, and those that it must keep.
//!
//! A model is a file of `tests/rules`, in a folder for each file or folder of `src/rewrite`, and for the passes:
//!
//! * `RULE__CASE.onnxtxt`: the rule fires, with all other rules and passes disabled
//! * `RULE__not_PREMISE.onnxtxt`, `RULE__not_PREMISE_CASE.onnxtxt`: it does not fire, because this premise of its record fails. A line
//!   ``# It fires with `a` in place of `b`.`` repairs the premise; with this replacement the rule must fire
//! * `RULE__stays_CASE.onnxtxt`: it does not fire, neither alone nor with all others
//! * `together/…`: all rules and passes are enabled. `# Fires: RULE.` names those that must fire, `# Left: Slice, Relu.` the remaining
//!   operators in topological order, `# Counts: Shape 1.` the numbers of some
//!
//! The first line describes the case. Further lines that begin with `#` hold `Options: exact, trust-input-names, skip RULE, dim s=..6.`,
//! `Not run: REASON.` if the interpreter cannot run the model, or `With all rules as well.` if the rule must also fire, and have a
//! snapshot, with all others. Each model is run before and after at sizes 4, 1 and 0. The snapshot next to it shows the changed lines: `-`
//! is a line of the original, `+` a line of the result, with the types of a node's results.
//!
//! `RULE=movement cargo test rules` runs the models of one rule.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use onnx_slice_fold::ir::{Model, text};
use onnx_slice_fold::passes::records;
use onnx_slice_fold::{OnnxModel, Options, Shapes};

use crate::support::changes::changes;
use crate::support::{compare, operators};

/// Test files must be readable without horizontal scrolling.
const WIDEST: usize = 120;

/// The folder in which all rules are enabled.
const TOGETHER: &str = "together";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules")
}

/// Returns the entries of a folder in the order of their names.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

/// A model and its expected result.
pub(crate) struct Fixture {
    pub(crate) path: PathBuf,
    /// The file name without the extension.
    pub(crate) name: String,
    comments: Vec<String>,
    pub(crate) source: String,
}

/// The expectation in a fixture's name.
pub(crate) enum Kind {
    Fires(String),
    Not(String, String),
    Stays(String),
    Together,
}

impl Fixture {
    fn read(path: PathBuf) -> Fixture {
        let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
        let whole = std::fs::read_to_string(&path).expect("the fixture is read").replace("\r\n", "\n");
        let (comments, source): (Vec<&str>, Vec<&str>) = whole.lines().partition(|line| line.starts_with('#'));
        let comments = comments.into_iter().map(|line| line.trim_start_matches('#').trim().to_string()).collect();
        Fixture { path, name, comments, source: source.join("\n") }
    }

    /// Returns the fixtures of a folder.
    pub(crate) fn of(folder: &str) -> Vec<Fixture> {
        let is_model = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "onnxtxt");
        entries(&root().join(folder)).into_iter().filter(is_model).map(Fixture::read).collect()
    }

    fn is_together(&self) -> bool {
        self.path.parent().and_then(Path::file_name).is_some_and(|folder| folder == TOGETHER)
    }

    pub(crate) fn kind(&self) -> Kind {
        if self.is_together() {
            return Kind::Together;
        }
        let (rule, case) = self.name.split_once("__").unwrap_or_else(|| panic!("'{}' names no rule", self.name));
        let rule = rule.to_string();
        match (case.strip_prefix("not_"), case.strip_prefix("stays_")) {
            (Some(rest), _) => Kind::Not(rule, rest.split('_').next().unwrap_or_default().to_string()),
            (_, Some(_)) => Kind::Stays(rule),
            _ => Kind::Fires(rule),
        }
    }

    /// Returns the text after a word in one of the comments.
    pub(crate) fn said(&self, word: &str) -> Option<&str> {
        self.comments.iter().find_map(|line| Some(line.strip_prefix(word)?.trim().trim_end_matches('.')))
    }

    /// Returns the text after a word, split at commas.
    fn list(&self, word: &str) -> impl Iterator<Item = &str> {
        self.said(word).unwrap_or_default().split(',').map(str::trim).filter(|part| !part.is_empty())
    }

    /// Returns the replacements that repair the premise.
    fn repairs(&self) -> Vec<(&str, &str)> {
        let repair = |line: &'_ str| line.starts_with("It fires with `");
        let parts = |line: &'_ str| -> Vec<usize> { line.match_indices('`').map(|(at, _)| at).collect() };
        let lines = self.comments.iter().filter(|line| repair(line));
        lines
            .map(|line| match parts(line)[..] {
                [a, b, c, d] => (&line[c + 1..d], &line[a + 1..b]),
                _ => panic!("{}: four quotes are wanted: {line}", self.name),
            })
            .collect()
    }

    /// Returns the model with a repaired premise.
    pub(crate) fn repaired(&self) -> Option<String> {
        let repairs = self.repairs();
        let mut source = self.source.clone();
        for &(wrong, right) in &repairs {
            assert_eq!(source.matches(wrong).count(), 1, "{}: `{wrong}` must be there once", self.name);
            source = source.replace(wrong, right);
        }
        (!repairs.is_empty()).then_some(source)
    }

    pub(crate) fn options(&self, only: Option<&str>) -> Options {
        let mut options = Options::new().only(only).shapes(Shapes::All);
        for word in self.list("Options:") {
            match word.split_once(' ') {
                None if word == "exact" => options.exact = true,
                None if word == "trust-input-names" => options.trust_input_names = true,
                Some(("skip", rule)) => options.skip.push(rule.to_string()),
                Some(("dim", known)) => options = options.dim(known),
                _ => panic!("{}: there is no option '{word}'", self.name),
            }
        }
        options
    }

    /// Folds a model and runs it before and after. Returns the folded model, and the number of times that each rule fired.
    fn fold(&self, source: &str, only: Option<&str>) -> (Model, BTreeMap<&'static str, usize>) {
        let original = text::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"));
        let mut document = OnnxModel::of(original.clone());
        let report = document.fold(&self.options(only)).expect("the model folds");
        let result = document.model().clone();
        if self.said("Not run:").is_none() {
            compare(&original, &result);
        }
        (result, report.fired)
    }

    fn check(&self) {
        let count = |fired: &BTreeMap<&str, usize>, rule: &str| fired.get(rule).copied().unwrap_or(0);
        let original = text::parse(&self.source).expect("the model parses");
        let mut shown = String::new();
        let mut show = |title: &str, model: &Model| {
            let title = if title.is_empty() { String::new() } else { format!("\n# {title}\n") };
            shown.push_str(&format!("{title}{}", changes(&original, model)));
        };
        match self.kind() {
            Kind::Fires(rule) => {
                let (model, fired) = self.fold(&self.source, Some(&rule));
                show("", &model);
                assert!(count(&fired, &rule) > 0, "{rule} does not fire:\n{}", text::print(&model));
                if self.comments.iter().any(|line| line == "With all rules as well.") {
                    let (model, fired) = self.fold(&self.source, None);
                    show("With all rules", &model);
                    assert!(count(&fired, &rule) > 0, "{rule} does not fire among all:\n{}", text::print(&model));
                }
            }
            Kind::Not(rule, premise) => {
                let (model, fired) = self.fold(&self.source, Some(&rule));
                show("", &model);
                assert_eq!(count(&fired, &rule), 0, "{rule} fires without '{premise}':\n{}", text::print(&model));
                if let Some(repaired) = self.repaired() {
                    let (model, fired) = self.fold(&repaired, Some(&rule));
                    assert!(count(&fired, &rule) > 0, "{rule} does not fire when mended:\n{}", text::print(&model));
                }
            }
            Kind::Stays(rule) => {
                let (model, fired) = self.fold(&self.source, Some(&rule));
                assert_eq!(count(&fired, &rule), 0, "{rule} fires alone:\n{}", text::print(&model));
                let (model, fired) = self.fold(&self.source, None);
                show("", &model);
                assert_eq!(count(&fired, &rule), 0, "{rule} fires among all:\n{}", text::print(&model));
            }
            Kind::Together => {
                let (model, fired) = self.fold(&self.source, None);
                show("", &model);
                for rule in self.list("Fires:") {
                    assert!(count(&fired, rule) > 0, "{rule} does not fire:\n{}", text::print(&model));
                }
                if self.said("Left:").is_some() {
                    assert_eq!(operators(&model), self.list("Left:").collect::<Vec<_>>());
                }
                for counted in self.list("Counts:") {
                    let (operator, number) = counted.split_once(' ').expect("an operator and how many there are");
                    let found = operators(&model).iter().filter(|name| *name == operator).count();
                    assert_eq!(found.to_string(), number, "{operator}:\n{}", text::print(&model));
                }
            }
        }
        insta::with_settings!({
            omit_expression => true,
            prepend_module_to_snapshot => false,
            snapshot_path => self.path.parent().expect("a file is in a folder"),
        }, {
            insta::assert_snapshot!(self.name.as_str(), shown);
        });
    }
}

/// Checks the fixtures of a folder; only those whose name begins with `RULE`, if that is set.
fn check(folder: &str) {
    let wanted = std::env::var("RULE").map(|rule| format!("{rule}__")).unwrap_or_default();
    let chosen = Fixture::of(folder).into_iter().filter(|fixture| fixture.name.starts_with(&wanted));
    let failed: Vec<String> = chosen
        .filter(|fixture| catch_unwind(AssertUnwindSafe(|| fixture.check())).is_err())
        .map(|fixture| fixture.name)
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

macro_rules! folders {
    ($($name:ident),* $(,)?) => {
        /// The folders, each of which is a test.
        pub(crate) const FOLDERS: &[&str] = &[$(stringify!($name)),*];

        $(#[test]
        fn $name() {
            check(stringify!($name));
        })*
    };
}

folders! {
    axes, batches, containers, dequantized, fuse, identity, index, inserted, lanes, lift, movement, neutral, passes, sizes, slices, split, stacked, strided_slice, together,
}

#[test]
fn every_folder_is_a_test() {
    let names: Vec<String> = entries(&root())
        .into_iter()
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().expect("a folder has a name").to_string_lossy().into_owned())
        .collect();
    assert_eq!(names, FOLDERS);
}

/// Every rule and pass has a model on which it fires alone, and every premise has one on which only this premise fails. The latter differs
/// from a model on which the rule fires by the replacement that the file names.
#[test]
fn every_rule_and_every_premise_has_a_fixture() {
    let (mut fires, mut fails) = (BTreeSet::new(), BTreeSet::new());
    let mut wrong = Vec::new();
    let known: BTreeMap<&str, Vec<&str>> =
        records().map(|record| (record.name, record.premises.iter().map(|(name, _)| *name).collect())).collect();
    for fixture in FOLDERS.iter().flat_map(|folder| Fixture::of(folder)) {
        match fixture.kind() {
            Kind::Fires(rule) | Kind::Stays(rule) if !known.contains_key(rule.as_str()) => {
                wrong.push(format!("{}: there is no such rule", fixture.name));
            }
            Kind::Fires(rule) => {
                fires.insert(rule);
            }
            Kind::Not(rule, premise) => {
                if !known.get(rule.as_str()).is_some_and(|premises| premises.contains(&premise.as_str())) {
                    wrong.push(format!("{}: there is no such premise", fixture.name));
                }
                if fixture.repairs().is_empty() {
                    wrong.push(format!("{}: it does not say what would make it fire", fixture.name));
                }
                fails.insert((rule, premise));
            }
            Kind::Stays(_) | Kind::Together => {}
        }
    }
    for (&rule, premises) in &known {
        if !fires.contains(rule) {
            wrong.push(format!("{rule}: no fixture in which it fires"));
        }
        if premises.is_empty() {
            wrong.push(format!("{rule}: it rests on nothing"));
        }
        for premise in premises {
            if !fails.contains(&(rule.to_string(), premise.to_string())) {
                wrong.push(format!("{rule}: no fixture in which '{premise}' fails"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn fixtures_can_be_read() {
    let mut wrong = Vec::new();
    for fixture in FOLDERS.iter().flat_map(|folder| Fixture::of(folder)) {
        let whole = std::fs::read_to_string(&fixture.path).expect("the fixture is read");
        if !whole.starts_with("# ") {
            wrong.push(format!("{}: the first line says what it shows", fixture.name));
        }
        let widest = whole.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        if widest > WIDEST {
            wrong.push(format!("{}: a line has {widest} columns", fixture.name));
        }
        let snapshot = fixture.path.with_extension("snap");
        if !snapshot.exists() {
            wrong.push(format!("{}: no snapshot", fixture.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A snapshot without a model has no meaning.
#[test]
fn every_snapshot_has_a_fixture() {
    let snapshots = FOLDERS.iter().flat_map(|folder| entries(&root().join(folder)));
    let stale: Vec<PathBuf> = snapshots
        .filter(|path| path.extension().is_some_and(|extension| extension == "snap"))
        .filter(|path| !path.with_extension("onnxtxt").exists())
        .collect();
    assert!(stale.is_empty(), "{stale:#?}");
}
