//! The options of a run.

use std::str::FromStr;

use super::assume::Assumption;
use crate::consumers::Construct;
use crate::ops::SliceName;
use crate::slicing::SliceRule;

/// The shapes of inner values that a result declares; those of outputs are always declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shapes {
    /// All known shapes, except those that make the deployed model slower: shapes absent from the file that let ONNX Runtime fuse a sum and a
    /// normalization, which takes longer on a CPU. With [`exact`](Options::exact), no shapes absent from the file: kernels that the runtime selects
    /// by shapes give other last bits.
    #[default]
    Auto,
    /// All known shapes.
    All,
    /// The shapes of values that have one in the file.
    Keep,
    /// As `Auto`, but omits shapes while they enlarge the file, those first that other tools infer themselves.
    Lean,
    /// No shapes.
    None,
}

impl FromStr for Shapes {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Ok(match name {
            "auto" => Shapes::Auto,
            "all" => Shapes::All,
            "keep" => Shapes::Keep,
            "lean" => Shapes::Lean,
            "none" => Shapes::None,
            _ => return Err(format!("shapes is '{name}'; it must be 'auto', 'all', 'keep', 'lean' or 'none'")),
        })
    }
}

/// Defines the options with their defaults and a setter for each: one line of documentation, and one with name, type and default. An `each` option
/// collects items from one or several calls.
macro_rules! options {
    (
        $($(#[$doc:meta])* $name:ident: $type:ty = $default:expr;)*
        --
        $($(#[$each_doc:meta])* each $each:ident: $item:ty;)*
    ) => {
        /// The options of a run.
        ///
        /// ```
        /// use onnx_slice_fold::Options;
        ///
        /// let options = Options::new().exact(true).skip(["identity"]).dim("batch=1").assume("past + seq <= 2048");
        /// assert!(options.exact && options.fold);
        /// ```
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub struct Options {
            $($(#[$doc])* pub $name: $type,)*
            $($(#[$each_doc])* pub $each: Vec<$item>,)*
        }

        impl Options {
            /// Formats the options that differ from the defaults: `exact=true skip=["identity"]`.
            pub(crate) fn told(&self) -> String {
                let usual = Options::default();
                let options = [
                    $((stringify!($name), format!("{:?}", self.$name), format!("{:?}", usual.$name)),)*
                    $((stringify!($each), format!("{:?}", self.$each), format!("{:?}", usual.$each)),)*
                ];
                // Options of reports do not affect the result.
                let of_reports = ["measure_memory", "detailed", "page", "verify_each"];
                let other = options.iter().filter(|(name, own, usual)| own != usual && !of_reports.contains(name));
                other.map(|(name, own, _)| format!("{name}={own}")).collect::<Vec<_>>().join(" ")
            }
        }

        impl Default for Options {
            fn default() -> Self {
                Options { $($name: $default,)* $($each: Vec::new(),)* }
            }
        }

        impl Options {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(mut self, $name: $type) -> Self {
                    self.$name = $name;
                    self
                }
            )*
            $(
                $(#[$each_doc])*
                #[must_use]
                pub fn $each<I: Into<$item>>(mut self, $each: impl IntoIterator<Item = I>) -> Self {
                    self.$each.extend($each.into_iter().map(Into::into));
                    self
                }
            )*
        }
    };
}

options! {
    /// Selects the reading of disputed slices.
    slice_rule: SliceRule = SliceRule::Agree;
    /// Limits the growth of the model by constants, as a share of its size; 0.0 allows no growth.
    max_growth: f64 = 0.0;
    /// Sets the number of bytes of growth that is always allowed.
    free_growth: usize = 256 << 10;
    /// Limits the bytes of a result that becomes a constant; nodes with larger results are kept.
    max_constant: usize = usize::MAX;
    /// Enables the rewrite rules and the passes with a record. Inference, constant folding and dead code elimination run without them.
    rules: bool = true;
    /// Limits the rounds of passes. All parts of a model take their rounds at the same time, so the number of rounds does not grow with the model;
    /// the models of the corpora need 14 at most. A run that needs more has rules that undo each other: it ends, and the report has a note.
    rounds: usize = 256;
    /// Enables all edits. Without it, types are only inferred.
    fold: bool = true;
    /// Restricts rewrites to those that keep results equal bit for bit.
    exact: bool = false;
    /// Limits the edits of all passes to the first ones of the same run without a limit. With 0, nodes, initializers and names are kept as in the
    /// file; shapes are still inferred and written.
    stop_after: usize = usize::MAX;
    /// Verifies the model after each pass that changed it, so that an error names the faulty pass.
    verify_each: bool = false;
    /// Reports by how much each pass raised the peak memory of the process.
    measure_memory: bool = false;
    /// Reports every edit with its place, every node and type before and after, and the elements that each Slice selects.
    detailed: bool = false;
    /// Collects everything for the HTML page of the report: the data of `detailed`, the properties of the model before and after, and suggestions.
    /// For these the model is folded again up to ten times.
    page: bool = false;
    /// Trusts declared shapes of results as premises, although they are often wrong.
    trust_declared_shapes: bool = false;
    /// Parses labels of input dims as expressions: `past + seq` is the sum of the dims `past` and `seq`. Otherwise a label is an opaque name, and
    /// only equal labels are equal sizes.
    trust_input_names: bool = false;
    /// Limits the nodes that unrolling of loops with a known, small number of iterations may add. With 0, a loop is unrolled only if that adds no
    /// nodes.
    unroll: usize = 0;
    /// Folds dequantized constants to floats where they are used. Otherwise they are kept as integers and scales, which runtimes match, with a
    /// fraction of the bytes.
    fold_dequantize: bool = false;
    /// Converts the model to this operator set of the default domain. Each node is rewritten as the versions of its operator differ; other domains
    /// keep their versions. A node that cannot be converted is an error.
    opset: Option<i64> = None;
    /// Writes this program's version and the options into the model's metadata.
    stamp: bool = true;
    /// Selects the shapes of inner values in the result. If nothing is removed ([`fold`](Self::fold), [`stop_after`](Self::stop_after) 0), `Auto` and
    /// `Lean` write all.
    shapes: Shapes = Shapes::Auto;
    /// Rejects three kinds of models; otherwise such nodes are kept and reported. In the first kind no run can succeed, because each needs an invalid
    /// node, given the declared types. The second declares a type that is proved false. The third has a node with an attribute, operand or result
    /// that its operator lacks.
    strict: bool = false;
    --
    /// Disables rewrite rules and passes by name.
    each skip: String;
    /// Disables all other rewrite rules and passes than these; an empty list disables none. Inference, constant folding and dead code elimination
    /// always run.
    each only: String;
    /// Names constructs that a consumer of the result lacks. No rule introduces an operator or a negative step that is named, and rules
    /// replace nodes that have one, or too high a rank, even by more nodes. The report lists all that remain.
    each avoid: Construct;
    /// Declares operators of the model as strided slices of other dialects, in addition to those that the program knows by name.
    each slice_names: SliceName;
    /// Adds the user's knowledge about the inputs.
    each assumptions: Assumption;
}

impl Options {
    /// Returns the defaults.
    pub fn new() -> Self {
        Options::default()
    }

    /// Adds knowledge about a symbol in the inputs' shapes: its size (`batch=1`), range (`seq=1..4096`, `seq=1..`), or multiple (`seq=8..4096:8`,
    /// `seq=:8`).
    #[must_use]
    pub fn dim(self, text: impl Into<String>) -> Self {
        self.assumptions([Assumption::Dim(text.into())])
    }

    /// Adds a relation between sizes that always holds: `past + seq <= 2048`, `total = past + seq`.
    #[must_use]
    pub fn assume(self, text: impl Into<String>) -> Self {
        self.assumptions([Assumption::Relation(text.into())])
    }

    /// Adds the shape of an input: `x:1,3,224,224`; names and -1 leave a dimension open.
    #[must_use]
    pub fn input_shape(self, text: impl Into<String>) -> Self {
        self.assumptions([Assumption::InputShape(text.into())])
    }
}
