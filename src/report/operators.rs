//! The supported operators, as a document.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::ops::{Operator, newest_opset, operators};
use crate::sort;

/// The text before the tables.
const HEAD: &str = "\
# Supported operators

`onnx-slice-fold ops` prints this page. An operator that is not listed is opaque: the program keeps the nodes of this operator, infers nothing
about the results, and still infers and folds all other nodes.

* **since_version**: every supported version of the operator. The operator set that a model imports selects the version.
* **infer**: the program infers types, shapes and known elements of the results.
* **eval**: the program computes the operator if the operands are constant. The program never folds `random` results.
";

/// Returns the operators of each domain, sorted by name.
fn by_domain() -> BTreeMap<&'static str, Vec<&'static Operator>> {
    let mut domains: BTreeMap<&str, Vec<&Operator>> = BTreeMap::new();
    for operator in operators() {
        domains.entry(operator.domain).or_default().push(operator);
    }
    for operators in domains.values_mut() {
        sort::by_key(operators, |operator| operator.name);
    }
    domains
}

/// Returns all operators with inference or evaluation, by domain, as Markdown.
pub fn operator_table() -> String {
    let mut text = HEAD.to_string();
    for (domain, operators) in by_domain() {
        let title = if domain.is_empty() { "ai.onnx" } else { domain };
        let evaluated = operators.iter().filter(|operator| operator.eval.is_some()).count();
        let newest = newest_opset(domain).map_or(String::new(), |opset| format!(", operator sets 1 to {opset}"));
        let _ = write!(text, "\n## {title}\n\n{} operators", operators.len());
        let _ = writeln!(text, ", {evaluated} of them evaluated{newest}.\n");
        text.push_str("| operator | since_version | infer | eval |\n| --- | --- | --- | --- |\n");
        for operator in operators {
            let versions: Vec<String> = operator.versions.iter().map(i64::to_string).collect();
            let eval = match operator.eval {
                _ if !operator.deterministic => "random",
                Some(_) => "yes",
                None => "no",
            };
            let _ = writeln!(text, "| {} | {} | yes | {eval} |", operator.name, versions.join(", "));
        }
    }
    text
}
