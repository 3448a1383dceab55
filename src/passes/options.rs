//! What a run may and should do.

use super::assume::Assumption;
use crate::ops::SliceName;
use crate::slicing::Rule;

/// What a run may and should do.
#[derive(Clone, Debug)]
pub struct Options {
    /// How disputed cases of slicing are read.
    pub slice_rule: Rule,
    /// Operators of the model that are strided slices of other dialects, beside those the program knows by name.
    pub slice_names: Vec<SliceName>,
    /// How much larger the constants may make the model, as a share of its size; 0.0 allows no growth.
    pub max_growth: f64,
    /// How many bytes of growth are too few to mind whatever the share.
    pub free_growth: usize,
    /// How often the passes run before a run ends without having settled.
    pub max_rounds: usize,
    /// Whether anything is removed; without, only types are inferred.
    pub fold: bool,
    /// Names of rewrite rules to leave out.
    pub skip: Vec<String>,
    /// Whether only rewrites are used that keep results equal bit for bit.
    pub exact: bool,
    /// After how many rewrites to stop.
    pub fuel: usize,
    /// What the user knows about the inputs.
    pub assumptions: Vec<Assumption>,
    /// Whether declared shapes of results are premises like what is proved. They are often wrong.
    pub trust_declared_shapes: bool,
    /// Whether a model is an error of which no run can succeed, because each needs a node that cannot work. Otherwise such nodes are
    /// left as they are, and told of.
    pub strict: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            slice_rule: Rule::Agree,
            slice_names: Vec::new(),
            max_growth: 0.0,
            free_growth: 256 << 10,
            max_rounds: 32,
            fold: true,
            skip: Vec::new(),
            exact: false,
            fuel: usize::MAX,
            assumptions: Vec::new(),
            trust_declared_shapes: false,
            strict: false,
        }
    }
}
