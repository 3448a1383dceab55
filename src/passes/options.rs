//! What a run may and should do.

use std::str::FromStr;

use super::assume::Assumption;
use crate::ops::SliceName;
use crate::slicing::SliceRule;

/// Which shapes of inner values a result states, apart from those of outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shapes {
    /// All that are known, except those that make the deployed model slower: shapes that the file did not have, and that let ONNX Runtime fuse
    /// a sum and a normalization, which takes longer on a CPU. With [`exact`](Options::exact) none that the file did not have: kernels that the
    /// runtime chooses by shapes give other last bits.
    #[default]
    Auto,
    /// All that are known.
    All,
    /// Those of the values that have a shape in the file.
    Keep,
    /// As `Auto`, and no more than the file grows by: those first left out that readers find by themselves.
    Lean,
    /// None.
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

/// Makes the options with their default values and a method to set each: a line of documentation, and one with name, type and
/// default. An option that is `each` takes items, given all at once or one call after the other.
macro_rules! options {
    (
        $($(#[$doc:meta])* $name:ident: $type:ty = $default:expr;)*
        --
        $($(#[$each_doc:meta])* each $each:ident: $item:ty;)*
    ) => {
        /// What a run may and should do.
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
            /// The options that are not what they are by default: `exact=true skip=["identity"]`.
            pub(crate) fn told(&self) -> String {
                let usual = Options::default();
                let options = [
                    $((stringify!($name), format!("{:?}", self.$name), format!("{:?}", usual.$name)),)*
                    $((stringify!($each), format!("{:?}", self.$each), format!("{:?}", usual.$each)),)*
                ];
                // What is told of a run changes nothing of the result.
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
    /// How disputed cases of slicing are read.
    slice_rule: SliceRule = SliceRule::Agree;
    /// How much larger the constants may make the model, as a share of its size; 0.0 allows no growth.
    max_growth: f64 = 0.0;
    /// How many bytes of growth are too few to mind whatever the share.
    free_growth: usize = 256 << 10;
    /// How many bytes a result may have that becomes a constant; what computes larger ones stays.
    max_constant: usize = usize::MAX;
    /// Whether the rewrite rules and the passes that have a record are used. Inference, folding of constants and removal of what nothing
    /// reads go on without them.
    rules: bool = true;
    /// The most rounds of passes. All parts of a model take their rounds at the same time, so the number that a model needs does not grow with
    /// its size; the models of the corpora need 14 at most. A run that needs more has rules that undo each other: it ends, and the report
    /// says so.
    rounds: usize = 256;
    /// Whether anything is removed; without, only types are inferred.
    fold: bool = true;
    /// Whether only rewrites are used that keep results equal bit for bit.
    exact: bool = false;
    /// How many edits may be made, those of every pass counted: the first ones of the same run without a limit. With 0 the nodes,
    /// initializers and names stay as the file has them; shapes are inferred and written all the same.
    stop_after: usize = usize::MAX;
    /// Whether the model is verified after each pass that changed it, so that a defect is told of by the name of the pass.
    verify_each: bool = false;
    /// Whether the report tells by how much each pass raised the most memory that the process held.
    measure_memory: bool = false;
    /// Whether the report tells every edit with its place, every node and type before and after, and what each Slice takes.
    detailed: bool = false;
    /// Whether the report has everything that its page of HTML shows: besides all that `detailed` gives, the properties of the model before and
    /// after, and suggestions, for which the model is folded again up to ten times.
    page: bool = false;
    /// Whether declared shapes of results are premises like what is proved. They are often wrong.
    trust_declared_shapes: bool = false;
    /// Whether labels of inputs' dims are parsed as expressions: `past + seq` is the sum of the dims `past` and `seq`. Otherwise a label is an
    /// opaque name, and only equal labels are equal sizes.
    trust_input_names: bool = false;
    /// How many nodes more a model may have because loops that are known to run a few times are written out. With 0 none is where that takes
    /// more nodes than go.
    unroll: usize = 0;
    /// Whether dequantized constants become floats where they are computed with. Otherwise they stay integers and scales, which is what
    /// runtimes look for, and a fraction of the bytes.
    fold_dequantize: bool = false;
    /// The operator set of the default domain to write the model in, if it is to be another. Each node is written as the versions of its
    /// operator differ; other domains keep theirs. It is an error if some node cannot be.
    opset: Option<i64> = None;
    /// Whether the model's metadata tells this program's version and what it was asked to do.
    stamp: bool = true;
    /// Which shapes of inner values the result states. Where nothing is removed ([`fold`](Self::fold), [`stop_after`](Self::stop_after) 0),
    /// `Auto` and `Lean` state all.
    shapes: Shapes = Shapes::Auto;
    /// Whether a model is an error of which no run can succeed, because each needs a node that cannot work, be it by what the file declares
    /// of its tensors, and one that declares what is proved false, or has a node with an attribute, operand or result that its operator does
    /// not have. Otherwise such nodes are left as they are, and told of.
    strict: bool = false;
    --
    /// Names of rewrite rules and passes to leave out.
    each skip: String;
    /// Names of the only rewrite rules and passes to use; all if none is given. Inference, folding of constants and removal of what
    /// nothing reads go on.
    each only: String;
    /// Operators of the model that are strided slices of other dialects, beside those the program knows by name.
    each slice_names: SliceName;
    /// What the user knows about the inputs.
    each assumptions: Assumption;
}

impl Options {
    /// The defaults.
    pub fn new() -> Self {
        Options::default()
    }

    /// Adds what is known of a symbol in the inputs' shapes: its size (`batch=1`), a range (`seq=1..4096`, `seq=1..`), what it is a
    /// multiple of (`seq=8..4096:8`, `seq=:8`).
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
