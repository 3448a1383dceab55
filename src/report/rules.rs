//! Which rewrite rules and passes there are, as a document.

use std::fmt::Write as _;

use crate::passes::{NoRule, RECORDS, record};
use crate::rewrite::{LATE_RULES, RULES, Record, Rule};

/// What is before the rules.
const HEAD: &str = "\
# Rules

Printed by `onnx-slice-fold rules`; `onnx-slice-fold rules NAME` prints one. `--skip NAME` leaves a rule or pass out, and
`--only NAME` uses no other.

Every rule states a law, and the premises under which it is applied; each premise is checked in the rule's code, on what is proved.
Where results stay equal only up to rounding it says so, and `--exact` leaves the rule out. `tests/rules` has a model for each rule
on which it fires alone, and for each premise one on which it fails.
";

/// A stage of the passes: its title, what is said of it, and what belongs to it.
type Stage = (String, &'static str, Vec<Record>);

fn stages() -> Vec<Stage> {
    let records = |families: &[&[Rule]]| families.iter().flat_map(|family| family.iter()).map(Rule::record).collect();
    let first = "At every node, in this order, until nothing changes.";
    let later = "When the rules before have nothing left to do. A change begins again with the first.";
    let mut stages: Vec<Stage> = vec![("Rules".to_string(), first, records(RULES))];
    for (stage, families) in (2..).zip(LATE_RULES) {
        stages.push((format!("Rules of stage {stage}"), later, records(families)));
    }
    stages.push(("Passes".to_string(), "They look at the whole model at once.", RECORDS.to_vec()));
    stages
}

/// Every rewrite rule and pass, as Markdown.
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

/// What one rule or pass says of itself, as Markdown.
///
/// # Errors
/// There is none of that name.
pub fn rule_text(name: &str) -> Result<String, NoRule> {
    let record = record(name)?;
    Ok(format!("{}\n\n{}", record.name, told(&record)))
}

fn told(record: &Record) -> String {
    let operators = match record.operators {
        [] => "every operator".to_string(),
        operators => operators.join(", "),
    };
    let equal = if record.exact { "bit for bit" } else { "up to rounding" };
    let mut text = format!("{}\n\n    {}\n\n", record.sentence, record.law);
    let _ = writeln!(text, "Looks at: {operators}. Results stay equal {equal}.\n");
    for (name, statement) in record.premises {
        let _ = writeln!(text, "* `{name}`: {statement}");
    }
    text
}
