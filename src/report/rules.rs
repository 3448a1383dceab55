//! Prints the rewrite rules and passes as a document.

use std::fmt::Write as _;

use crate::passes::{NoRule, RECORDS, record};
use crate::rewrite::{GUARDS, LATE_RULES, RULES, Rule, SHARED};

/// The text before the rules.
const HEAD: &str = "\
# Rules

`onnx-slice-fold rules` prints this page, and `onnx-slice-fold rules NAME` one rule. `--skip NAME` disables a rule or pass, and `--only NAME`
disables all others.

Every rule has a law and a list of premises. The code of the rule proves each premise before the edit. An exact rule preserves every
bit of the results; an approximate rule preserves the results up to rounding, and `--exact` disables such rules. `tests/rules` has a model on which
each rule fires alone, and for each premise a model on which the rule does not fire. `onnx-slice-fold explain MODEL --rule NAME` prints the first
premise that fails at each node.
";

const SHARED_TITLE: &str = "Premises of every rule, in addition to the premises of the rule's record:";

const GUARDS_TITLE: &str =
    "Conditions on every edit of every rule. Runtimes and other consumers of the model need these conditions:";

/// A stage of the passes: its title, its description, and its records.
type Stage = (String, &'static str, Vec<&'static Rule>);

fn stages() -> Vec<Stage> {
    let records = |families: &[&'static [Rule]]| families.iter().flat_map(|family| family.iter()).collect();
    let first = "The program tries these rules at every node, in this order, until no rule applies.";
    let later = "The program tries these rules when no rule of an earlier stage applies. After an edit, the program starts again with the first stage.";
    let mut stages: Vec<Stage> = vec![("Rules".to_string(), first, records(RULES))];
    for (stage, families) in (2..).zip(LATE_RULES) {
        stages.push((format!("Rules of stage {stage}"), later, records(families)));
    }
    stages.push(("Passes".to_string(), "Passes edit the model as a whole.", RECORDS.iter().collect()));
    stages
}

/// Returns all rewrite rules and passes as Markdown.
pub fn rule_table() -> String {
    let mut text = HEAD.to_string();
    let guards = GUARDS.iter().map(|(premise, _)| premise);
    for (title, premises) in [(SHARED_TITLE, SHARED.iter().collect()), (GUARDS_TITLE, guards.collect::<Vec<_>>())] {
        let _ = writeln!(text, "\n{title}\n");
        for (name, statement) in premises {
            let _ = writeln!(text, "* `{name}`: {statement}");
        }
    }
    for (title, said, records) in stages() {
        let _ = writeln!(text, "\n## {title}\n\n{said}");
        for record in records {
            let _ = write!(text, "\n### {}\n\n{}", record.name, told(record));
        }
    }
    text
}

/// Returns the description of one rule or pass as Markdown.
///
/// # Errors
/// No rule or pass has this name.
pub fn rule_text(name: &str) -> Result<String, NoRule> {
    let record = record(name)?;
    Ok(format!("{}\n\n{}", record.name, told(record)))
}

fn told(record: &Rule) -> String {
    let operators = match record.operators {
        [] => "every operator".to_string(),
        operators => operators.join(", "),
    };
    let exact = if record.exact { "Exact" } else { "Approximate" };
    let mut text = format!("{}\n\n    {}\n\n", record.sentence, record.law);
    let _ = writeln!(text, "{exact}. Operators: {operators}.\n");
    for (name, statement) in record.premises {
        let _ = writeln!(text, "* `{name}`: {statement}");
    }
    text
}
