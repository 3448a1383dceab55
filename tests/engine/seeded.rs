//! Injected faults in rules and passes, one at a time: `--check` must find them, and name the rule or pass.
//!
//! Every fixture on which a rule fires is folded with each kind of fault at each of the first places of its edits. The table shows the
//! outcomes by family. `RULE=movement` tries the faults of one rule, `MISSED=1` lists the missed ones.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use onnx_slice_fold::faults::{Fault, FaultKind, with_fault};
use onnx_slice_fold::ir::text;
use onnx_slice_fold::{Checked, OnnxModel, Options};

use crate::rules::{FOLDERS, Fixture, Kind};

/// The number of inputs that are tried.
const INPUTS: usize = 8;
/// The number of places of an edit at which a fault is injected.
const SITES: usize = 4;
/// The percentage of faults that must be found, in total and in each family. Missed faults give the same function in a way that no rule
/// proves, such as an entry that a mask covers.
const WANTED: usize = 95;

/// The reason why an operand that ONNX Runtime misreads is not found.
const MISREAD: &str = "this program's own evaluator, which --check asks, gives the shape that the standard says";

/// Faults that change no compared result, with the reason. They are not counted, and must not be found. Each has the fixture's name, or its
/// prefix if that ends in `_`, then kind and place.
const SAME: &[(&str, FaultKind, usize, &str)] = &[
    ("columns-by-choice__of_one_row", FaultKind::Dropped, 1, "a scalar broadcasts as what has one element does"),
    ("columns-by-choice__one_column_that_is_spread_along_all", FaultKind::Raised, 0, "a mask covers the entry"),
    ("columns-by-choice__places_to_write_to", FaultKind::Lowered, 0, "a mask covers the entry"),
    ("columns-by-choice__places_to_write_to", FaultKind::Lowered, 2, "a later choice covers the entry"),
    ("concat-of-nothing__all_hold_nothing", FaultKind::Distorted, 0, "there are no elements"),
    ("concat-of-nothing__not_agrees", FaultKind::Credulous, 0, "the columns are as many wherever the original runs"),
    ("concat-of-nothing__what_a_rotation_leaves", FaultKind::Dropped, 0, "a Concat of one operand is the operand"),
    ("filled-by-size__a_mask_that_is_stretched_and_true", FaultKind::Distorted, 0, "e is as true as 1"),
    ("mask-as-product__by_integers", FaultKind::Lowered, 2, "a row of scores plus a number in all places"),
    ("mask-as-product__by_integers", FaultKind::Lowered, 3, "e to the −1001 is 0 as well"),
    ("mask-as-product__by_integers", FaultKind::Raised, 3, "e to the −999 is 0 as well"),
    ("mask-as-product__of_", FaultKind::Lowered, 1, "an axis of size 1 on the other side of one"),
    ("mask-as-product__of_", FaultKind::Lowered, 2, "a row of scores plus a number in all places"),
    ("mask-as-product__of_", FaultKind::Lowered, 3, "e to the −1001 is 0 as well"),
    ("mask-as-product__of_", FaultKind::Raised, 2, "a row of scores less a number in all places"),
    ("mask-as-product__of_", FaultKind::Raised, 3, "e to the −999 is 0 as well"),
    ("movement__chain_added_in_tokens", FaultKind::Dropped, 0, "rows are looked up with an axis of size 1 or without"),
    ("part-of-split__each_place", FaultKind::Raised, 1, "a Slice ends where the axis does"),
    ("part-of-split__from_the_end", FaultKind::Raised, 1, "a Slice ends where the axis does"),
    ("part-of-split__not_is-there", FaultKind::Credulous, 0, "the part is there wherever the original runs"),
    ("part-of-split__of_equal_parts", FaultKind::Lowered, 1, "a Slice ends where the axis does"),
    ("part-of-split__of_equal_parts", FaultKind::Raised, 1, "a Slice ends where the axis does"),
    ("product-in-rows__activation_between", FaultKind::Dropped, 0, "a product of the whole, whose rows come later"),
    ("product-in-rows__before_a_result_of_no_columns", FaultKind::Distorted, 0, "there are no elements"),
    ("product-in-rows__before_a_result_of_no_columns", FaultKind::Dropped, 0, "there are no elements"),
    ("product-in-rows__before_a_result_of_no_columns", FaultKind::Dropped, 2, "there are no elements"),
    ("product-in-rows__before_a_result_of_no_columns", FaultKind::Dropped, 3, "there are no elements"),
    ("product-in-rows__behind_a_normalization", FaultKind::Dropped, 0, "a product of the whole, whose rows come later"),
    ("product-in-rows__of_a_whole", FaultKind::Dropped, 0, "a product of the whole, whose rows come later"),
    ("product-in-rows__of_a_whole", FaultKind::Dropped, 3, "what reads it flattens it"),
    ("product-in-rows__of_clip", FaultKind::Dropped, 0, "a product of the whole, whose rows come later"),
    ("same-shape__not_read-right", FaultKind::Credulous, 0, MISREAD),
    ("size-chain__a_sum_of_what_is_there", FaultKind::Lowered, 0, "no axis is so long"),
    ("size-chain__alike", FaultKind::Attribute, 1, "a Shape ends where the axes do"),
    ("size-chain__bounds_in_32_bits", FaultKind::Dropped, 1, "the results differ in names only"),
    (
        "size-chain__floats_of_which_nothing_is_known",
        FaultKind::Attribute,
        1,
        "a scalar broadcasts as what has one element does",
    ),
    ("size-chain__numbers_side_by_side", FaultKind::Attribute, 1, "a Shape ends where the axes do"),
    ("size-chain__the_first_size_is_left_as_it_is", FaultKind::Attribute, 3, "a Shape ends where the axes do"),
    ("size-chain__two_sizes_are_treated_alike", FaultKind::Attribute, 1, "a Shape ends where the axes do"),
    ("spelled-attention__mask_of_one_row", FaultKind::Attribute, 0, "a mask of one row broadcasts"),
    ("spelled-attention__mask_of_one_row", FaultKind::Dropped, 2, "a mask of one row broadcasts"),
    ("spread-before-broadcast__sums_of_rows_that_are_alike", FaultKind::Dropped, 0, "what reads it broadcasts"),
    ("spread-before-broadcast__sums_of_rows_that_are_alike", FaultKind::Lowered, 1, "0 copies the operand's 1"),
    ("spread-before-product__means_of_rows", FaultKind::Swapped, 0, "the sign of a zero that is added"),
    ("spread-before-product__spread_again", FaultKind::Dropped, 1, "a Relu of what is positive"),
    ("table-of-positions__counted_down", FaultKind::Dropped, 0, "Sub of a scalar gives one element as well"),
    ("table-of-positions__counted_down_below_zero", FaultKind::Dropped, 0, "Add of a scalar gives one element as well"),
];

/// The outcomes of faults.
#[derive(Clone, Copy, Default)]
struct Tally {
    /// Faults that were injected and could be compared.
    seeded: usize,
    /// Folding refused the model, or the folded model does not run.
    refused: usize,
    /// Results differ, or a declared shape is false.
    differs: usize,
    /// The part of `differs` in which the rule at fault was named.
    named: usize,
    missed: usize,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.seeded += other.seeded;
        self.refused += other.refused;
        self.differs += other.differs;
        self.named += other.named;
        self.missed += other.missed;
    }

    /// Returns the percentage of found faults among those that were not refused.
    fn share(&self) -> usize {
        if self.differs + self.missed == 0 { 100 } else { 100 * self.differs / (self.differs + self.missed) }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { seeded, refused, differs, named, missed } = self;
        write!(f, "{seeded:>7} {refused:>8} {differs:>8} {missed:>7} {:>5} % {named:>7}", self.share())
    }
}

/// Returns the outcome of one fault; `None` if there is no such place, or the model cannot be compared.
fn outcome(source: &str, options: &Options, fault: &Fault) -> Option<(Tally, Option<Checked>)> {
    let mut model = OnnxModel::of(text::parse(source).expect("the fixture parses"));
    let fold = || catch_unwind(AssertUnwindSafe(|| model.fold_checked(options, INPUTS, &mut |_| {})));
    let (result, planted) = with_fault(fault.clone(), fold);
    if planted == 0 {
        return None;
    }
    let mut tally = Tally { seeded: 1, ..Tally::default() };
    let Ok(Ok((_, checked))) = result else {
        tally.refused = 1;
        return Some((tally, None));
    };
    match &checked.difference {
        Some(difference) if difference.what.contains("does not run") => tally.refused = 1,
        Some(_) => {
            tally.differs = 1;
            let named = checked.culprit.as_ref().and_then(|culprit| culprit.edit.as_ref());
            tally.named = usize::from(named.is_some_and(|edit| edit.name == fault.name));
        }
        None if checked.agreed == 0 => return None,
        // The fault was removed again, or the rules prove that it has no effect, such as a removed Transpose that permuted nothing.
        None if model.text() == right(source, options) => return None,
        None if is_same_by_rules(&model, source, options) => return None,
        None => tally.missed = 1,
    }
    if tally.missed > 0 && std::env::var_os("MISSED").is_some() {
        println!("{fault:?}\n{}\n{}", right(source, options), model.text());
    }
    Some((tally, Some(checked)))
}

/// Returns `true` if a model with a fault and the correct one fold to the same with all rules, without faults.
fn is_same_by_rules(wrong: &OnnxModel, source: &str, options: &Options) -> bool {
    let settled = |text: &str| {
        let mut model = OnnxModel::of(text::parse(text).ok()?);
        model.fold(&Options::default()).ok()?;
        let body = crate::support::written(model.model());
        Some(body)
    };
    let right = settled(&right(source, options));
    right.is_some() && settled(&wrong.text()) == right
}

/// Returns the model folded without a fault.
fn right(source: &str, options: &Options) -> String {
    let mut model = OnnxModel::of(text::parse(source).expect("the fixture parses"));
    model.fold(options).expect("the fixture folds");
    model.text()
}

/// Tries every fault on a fixture. Entries of [`SAME`] whose faults change a result are added to `stale`.
fn of_fixture(
    fixture: &Fixture,
    by_kind: &mut BTreeMap<FaultKind, Tally>,
    told: &mut Vec<String>,
    stale: &mut Vec<String>,
) -> Tally {
    let mut tally = Tally::default();
    let (rule, is_not) = match fixture.kind() {
        Kind::Fires(rule) => (rule, false),
        Kind::Not(rule, _) => (rule, true),
        Kind::Stays(_) | Kind::Together => return tally,
    };
    // Changes that a pass makes without edits are made wrong after it.
    let is_pass = fixture.path.parent().is_some_and(|folder| folder.ends_with("passes"));
    let fits = |kind: &FaultKind| match kind {
        FaultKind::Credulous => is_not,
        FaultKind::Altered => is_pass && !is_not,
        _ => !is_not,
    };
    for kind in FaultKind::ALL.into_iter().filter(fits) {
        for site in 0..SITES {
            let fault = Fault { name: rule.clone(), kind, site };
            let Some((mut one, checked)) = outcome(&fixture.source, &fixture.options(Some(&rule)), &fault) else {
                break;
            };
            let is_same = |same: &&(&str, FaultKind, usize, &str)| {
                let is_meant = fixture.name == same.0 || same.0.ends_with('_') && fixture.name.starts_with(same.0);
                is_meant && (same.1, same.2) == (kind, site)
            };
            if let Some(same) = SAME.iter().find(is_same) {
                if one.differs > 0 {
                    stale.push(format!("{} {kind:?} {site}: {}", fixture.name, same.3));
                }
                one = Tally::default();
            }
            if one.missed + one.differs - one.named > 0 {
                let what = checked.map_or_else(String::new, |checked| checked.to_string().replace('\n', "; "));
                told.push(format!("{} {kind:?} {site}: {}", fixture.name, what));
            }
            tally.add(&one);
            by_kind.entry(kind).or_default().add(&one);
            if kind == FaultKind::Credulous {
                break;
            }
        }
    }
    tally
}

#[test]
fn faults_are_found_and_named() {
    let wanted = std::env::var("RULE").map(|rule| format!("{rule}__")).unwrap_or_default();
    let (mut all, mut by_kind, mut told) = (Tally::default(), BTreeMap::new(), Vec::new());
    let mut stale = Vec::new();
    let mut table = format!(
        "{:<14} {:>7} {:>8} {:>8} {:>7} {:>7} {:>7}\n",
        "family", "seeded", "refused", "differ", "missed", "found", "named"
    );
    let mut poor = Vec::new();
    for folder in FOLDERS {
        let mut tally = Tally::default();
        for fixture in Fixture::of(folder).iter().filter(|fixture| fixture.name.starts_with(&wanted)) {
            tally.add(&of_fixture(fixture, &mut by_kind, &mut told, &mut stale));
        }
        if tally.seeded > 0 {
            table.push_str(&format!("{folder:<14} {tally}\n"));
        }
        if tally.share() < WANTED {
            poor.push(*folder);
        }
        all.add(&tally);
    }
    for (kind, tally) in &by_kind {
        table.push_str(&format!("{:<14} {tally}\n", format!("{kind:?}")));
    }
    table.push_str(&format!("{:<14} {all}\n", "all"));
    println!("{table}");
    if std::env::var_os("MISSED").is_some() {
        println!("{}", told.join("\n"));
    }
    assert!(stale.is_empty(), "faults listed in SAME change a result:\n{}", stale.join("\n"));
    assert_eq!(all.named, all.differs, "another rule is named:\n{table}");
    assert!(all.share() >= WANTED && poor.is_empty(), "too few faults are found: {poor:?}\n{table}");
}
