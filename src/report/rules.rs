//! Prints the rewrite rules and passes as a document.

use std::fmt::Write as _;

use crate::passes::{NoRule, RECORDS, record};
use crate::rewrite::{LATE_RULES, RULES, Record, Rule};

/// The text before the rules.
const HEAD: &str = "\
# Rules

`onnx-slice-fold rules` prints this page, and `onnx-slice-fold rules NAME` one rule. `--skip NAME` disables a rule or pass, and `--only NAME`
disables all others.

Every rule has a law and a list of premises. The code of the rule proves each premise before it edits the graph. An exact rule preserves every
bit of the results; an approximate rule preserves them up to rounding, and `--exact` disables it. `tests/rules` has a model on which
each rule fires alone, and for each premise a model on which it does not fire.
";

/// A stage of the passes: its title, its description, and its records.
type Stage = (String, &'static str, Vec<Record>);

fn stages() -> Vec<Stage> {
    let records = |families: &[&[Rule]]| families.iter().flat_map(|family| family.iter()).map(Rule::record).collect();
    let first = "The program tries these rules at every node, in this order, until no rule applies.";
    let later = "The program tries these rules when no rule of an earlier stage applies. After an edit, it starts again with the first stage.";
    let mut stages: Vec<Stage> = vec![("Rules".to_string(), first, records(RULES))];
    for (stage, families) in (2..).zip(LATE_RULES) {
        stages.push((format!("Rules of stage {stage}"), later, records(families)));
    }
    stages.push(("Passes".to_string(), "Passes edit the model as a whole.", RECORDS.to_vec()));
    stages
}

/// Returns every rewrite rule and pass as Markdown.
pub fn rule_table() -> String {
    let mut text = HEAD.to_string();
    for (title, said, records) in stages() {
        let _ = writeln!(text, "\n## {title}\n\n{said}");
        for record in &records {
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
    Ok(format!("{}\n\n{}", record.name, told(&record)))
}

fn told(record: &Record) -> String {
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
