//! Rewrites: rules that look at a node and what is proved about it, and answer with an [`Edit`] that computes the same with
//! less.
//!
//! A rule is a pure function: it sees the model and changes nothing. The values its edit makes are placeholders until the driver
//! applies the edit; an edit that is not applied leaves nothing behind. The driver counts how often each rule fired. Every rule is a
//! record ([`Rule`]): the law it rests on, and the premises under which it fires, each of which a fixture in `tests/rules` shows to
//! fail. To add one: write the function and its record in the family's file.

mod axes;
mod batches;
pub mod build;
mod containers;
mod counted;
mod dequantized;
mod divisors;
mod einsum;
mod flattened;
mod fuse;
mod groups;
mod identity;
mod index;
mod inserted;
mod introduced;
mod lanes;
mod lift;
mod limits;
mod merge;
mod moves;
mod narrow;
mod neutral;
mod parts;
mod permitted;
mod ranges;
mod record;
mod regroup;
mod shown;
mod sizes;
mod slices;
mod split;
mod stacked;
mod states;
mod strided_slice;
mod strings;
mod turned;
mod weighted;

pub use build::Build;
pub use fuse::embedded::{PositionEnd, counted_positions};
pub use fuse::idiom::Idioms;
pub use fuse::normalized::is_only_normalized;
pub use fuse::residual::constant_addend;
pub use index::{Positions, positions};
pub use permitted::is_read_right;
pub use record::{Premise, Record, meant, nearest};
pub use shown::{is_quantization, is_quantized_turned};
pub use slices::cuts::Taken;

use crate::dim::{Dim, Scope};
use crate::ir::{Edit, Fact, Facts, GraphId, Model, Node, NodeId, ValueId};
use crate::ops::traits::{Movement, NodeFacts, Traits, traits_of};
use crate::ops::{Budget, NodeView, Opset, concat, concat_later, has_kernel_for_narrow};
use crate::tensor::{DType, Tensor};

/// A node a rule looks at, with everything it may know.
pub struct Place<'a> {
    /// The model.
    pub model: &'a Model,
    /// What is proved.
    pub facts: &'a Facts,
    /// The node.
    pub id: NodeId,
    /// The operator set of the default domain in force.
    pub opset: Opset,
    /// What computing new constants may cost.
    pub budget: &'a Budget,
    /// What has been worked out of the slices.
    pub taken: &'a Taken,
}

/// A rewrite rule, and what it says of itself ([`Record`] tells what the fields mean).
#[derive(Clone, Copy)]
pub struct Rule {
    /// Its name, in kebab case, as `--skip` and `--only` take it.
    pub name: &'static str,
    /// What equals what, as a formula.
    pub law: &'static str,
    /// What it does, in one sentence.
    pub sentence: &'static str,
    /// When it does it. Each premise can fail while the others hold.
    pub premises: &'static [Premise],
    /// Whether results stay equal bit for bit. The others stay equal up to rounding and are left out under `--exact`.
    pub exact: bool,
    /// The operators it looks at, those of other domains as [`Node::operator`] names them.
    pub operators: &'static [&'static str],
    /// Looks at a node of one of the operators.
    pub apply: fn(&Place<'_>) -> Option<Edit>,
}

impl Rule {
    /// What it says of itself.
    pub fn record(&self) -> Record {
        let Rule { name, law, sentence, premises, exact, operators, .. } = *self;
        Record { name, law, sentence, premises, exact, operators }
    }
}

/// Every rule, in the order they are tried at a node.
#[rustfmt::skip]
pub const RULES: &[&[Rule]] = &[
    identity::RULES,
    neutral::RULES,
    containers::RULES,
    index::RULES,
    sizes::RULES,
    slices::compose::RULES,
    slices::apart::RULES,
    slices::select::RULES,
    slices::concat::RULES,
    slices::split::RULES,
    slices::gather::RULES,
    slices::pad::RULES,
    slices::expand::RULES,
    slices::transpose::RULES,
    slices::reshape::RULES,
    slices::elementwise::RULES,
    slices::cast::RULES,
    slices::constant::RULES,
    merge::RULES,
    regroup::RULES,
    axes::RULES,
    inserted::RULES,
    flattened::RULES,
    dequantized::RULES,
    states::RULES,
    counted::RULES,
    lift::RULES,
    einsum::RULES,
    batches::RULES,
    strided_slice::RULES,
    fuse::clamp::RULES,
    fuse::activation::RULES,
    fuse::normalization::RULES,
    fuse::divided::RULES,
    fuse::scaled_attention::RULES,
    fuse::rotary::RULES,
    fuse::heads::RULES,
    fuse::chain::RULES,
    fuse::quotient::RULES,
    fuse::operands::RULES,
    fuse::gemm::RULES,
    fuse::pad::RULES,
    fuse::quantized::RULES,
    fuse::table::RULES,
    fuse::weights::RULES,
    fuse::summed::RULES,
    fuse::row_channels::RULES,
];

/// The rules that wait until no other has anything left to do, in the order they are let loose: they take apart, or hide,
/// what those before them look for.
#[rustfmt::skip]
pub const LATE_RULES: &[&[&[Rule]]] = &[
    &[slices::gather::LATE_RULES, fuse::factor::RULES, fuse::token::RULES, index::LATE_RULES],
    &[dequantized::LATE_RULES, split::RULES, stacked::RULES, lanes::RULES, fuse::parallel::RULES, slices::select::LATE_RULES, slices::places::LATE_RULES, index::LAST_RULES, fuse::apart::RULES, fuse::mask::RULES,
      fuse::rows::RULES],
    &[index::FRONT_RULES, moves::RULES, fuse::stream::RULES],
    &[index::STEP_RULES],
];

/// The rules that are used only if the user names them, or an operator set to write the model in: what they write is the standard's, but
/// not every consumer of that operator set has a kernel for it.
pub const ASKED_FOR: &[&str] = &["spelled-attention", "attention-heads", "attention-of-parts", "attention-groups"];

/// Every rule.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    RULES.iter().chain(LATE_RULES.iter().copied().flatten()).flat_map(|family| family.iter())
}

impl<'a> Place<'a> {
    /// The node.
    pub fn node(&self) -> Option<&'a Node> {
        self.model.node(self.id)
    }

    /// The graph the node is in.
    pub fn graph(&self) -> Option<GraphId> {
        self.node().map(Node::graph)
    }

    /// A node of this graph, read as its operator set means it.
    pub fn read(&self, node: &'a Node) -> NodeView<'a> {
        NodeView { node, facts: self.facts, opset: self.opset }
    }

    /// The node looked at, read so.
    pub fn this(&self) -> Option<NodeView<'a>> {
        self.node().map(|node| self.read(node))
    }

    /// Operand `i` of the node.
    pub fn input(&self, i: usize) -> Option<ValueId> {
        self.node()?.input(i)
    }

    /// Result `i` of the node.
    pub fn output(&self, i: usize) -> Option<ValueId> {
        self.node()?.output(i)
    }

    /// The symbols.
    pub fn scope(&self) -> &'a Scope {
        self.facts.scope()
    }

    /// What is proved of a value.
    pub fn fact(&self, value: ValueId) -> Option<&'a Fact> {
        self.facts.get(value)
    }

    /// The shape of a value.
    pub fn shape(&self, value: ValueId) -> Option<&'a [Dim]> {
        self.fact(value).and_then(Fact::shape)
    }

    /// The element type of a value.
    pub fn dtype(&self, value: ValueId) -> Option<DType> {
        self.fact(value).and_then(Fact::dtype)
    }

    /// The content of a value, if all of it is known.
    pub fn constant(&self, value: ValueId) -> Option<&'a Tensor> {
        self.fact(value).and_then(Fact::constant_tensor)
    }

    /// The integers a value is known to hold.
    pub fn const_ints(&self, value: ValueId) -> Option<Vec<i64>> {
        self.fact(value).and_then(Fact::const_ints)
    }

    /// Whether both values are proved to have the same shape, dimension for dimension.
    pub fn same_shape(&self, a: ValueId, b: ValueId) -> bool {
        match (self.shape(a), self.shape(b)) {
            (Some(a), Some(b)) => self.same_dims(a, b),
            _ => false,
        }
    }

    /// Whether elements of a value may be looked up by a new node. ONNX Runtime's Gather takes of each entry the first string alone.
    pub fn may_be_looked_up(&self, value: ValueId) -> bool {
        self.dtype(value).is_some_and(|dtype| dtype != DType::String)
    }

    /// Whether these are as many dims, proved to be equal one by one.
    pub fn same_dims(&self, a: &[Dim], b: &[Dim]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.scope().eq(a, b).is_yes())
    }

    /// A node with what is proved about it.
    pub fn view(&self, id: NodeId) -> Option<NodeFacts<'a>> {
        NodeFacts::of(self.model, self.facts, id, self.opset.version())
    }

    /// The node that computes a value, if its operator is of the default domain and says this of itself and it is in the same graph.
    pub fn producer_with(&self, value: ValueId, has: impl Fn(&Traits) -> bool) -> Option<(NodeId, &'a Node)> {
        let id = self.model.value(value).producer()?;
        let node = self.model.node(id)?;
        let fits = node.graph() == self.node()?.graph() && node.canonical_domain().is_empty();
        (fits && has(traits_of(self.model, node))).then_some((id, node))
    }

    /// Whether products of an operand of these sizes are best computed in rows: runtimes do so where all sizes are numbers. Where the
    /// operator set has an Attention, that takes whole values.
    pub fn runs_in_rows(&self, dims: &[Dim]) -> bool {
        let is_number = |dim: &Dim| dim.as_const().is_some_and(|size| size > 0);
        !self.opset.has("Attention") && dims.iter().all(is_number)
    }

    /// The node that lays the elements of another value out as this one, if it is in the same graph.
    pub fn layout(&self, value: ValueId) -> Option<(NodeId, &'a Node)> {
        self.producer_with(value, |traits| traits.moves == Some(Movement::Layout))
    }

    /// The node that computes a value, if it is of this operator of the default domain and in the same graph.
    pub fn producer(&self, value: ValueId, operator: &str) -> Option<(NodeId, &'a Node)> {
        self.producer_of(value, &[operator])
    }

    /// The node that computes a value, if it is of one of these operators of the default domain and in the same graph.
    pub fn producer_of(&self, value: ValueId, operators: &[&str]) -> Option<(NodeId, &'a Node)> {
        let id = self.model.value(value).producer()?;
        let node = self.model.node(id).filter(|node| Some(node.graph()) == self.graph())?;
        operators.iter().any(|operator| node.is(operator)).then_some((id, node))
    }

    /// Tensors one behind the other along an axis; they are otherwise of one shape.
    fn concatenated(&self, tensors: &[&Tensor], axis: usize) -> Option<Tensor> {
        let dtype = tensors.first()?.dtype();
        let elements = tensors.iter().try_fold(0usize, |sum, tensor| sum.checked_add(tensor.len()))?;
        if Tensor::may_be_deferred(dtype, &[elements]) && tensors.iter().all(|tensor| tensor.dtype() == dtype) {
            return concat_later(tensors, axis).ok();
        }
        let bytes = tensors.iter().try_fold(0usize, |sum, tensor| sum.checked_add(tensor.byte_len()))?;
        self.budget.take_bytes(bytes).ok()?;
        concat(tensors, axis).ok()
    }

    /// Whether the only reader of a value is one operand of one node.
    pub fn has_one_reader(&self, value: ValueId) -> bool {
        self.model.is_read_once(value)
    }

    /// Whether every reader of a value is one node, which may read it more than once.
    pub fn has_one_reader_node(&self, value: ValueId) -> bool {
        let users = self.model.users(value);
        let first = users.first().map(|&(node, _)| node);
        let all = users.iter().all(|&(node, _)| Some(node) == first);
        !self.model.is_named(value) && first.is_some() && all
    }

    /// An edit at this node.
    pub fn edit(&self) -> Option<Edit> {
        Edit::at(self.model, self.id)
    }

    /// An edit that removes this node and makes `value` stand for its first result. The other results must be unread, and no Loop or Scan
    /// may take what then has both one's readers, nor the node keep apart what is quantized on two grids. Where the name of the result must
    /// survive and the producer of `value` cannot take it, as between an input and an output of a graph, an Identity gives it.
    pub fn forward(&self, value: ValueId) -> Option<Edit> {
        let node = self.node()?;
        let output = node.output(0)?;
        if self.is_copy_of_taken(value) || self.is_taken(output) || self.parts_grids(output, value) {
            return None;
        }
        if !self.may_forward(value) && (node.is("Identity") || !self.may_be_copied(value)) {
            return None;
        }
        let mut rest = node.outputs().iter().skip(1).flatten();
        if rest.any(|&other| !self.model.is_unused(other)) {
            return None;
        }
        Some(self.edit()?.replacing(output, value).removing(self.id))
    }

    /// Returns `true` if runtimes have an Identity for the type of a value.
    fn may_be_copied(&self, value: ValueId) -> bool {
        self.dtype(value).is_none_or(|dtype| has_kernel_for_narrow("Identity", dtype, self.opset.version()))
    }

    /// Whether `value` and the readers of `output` are parts of two pairs of QuantizeLinear and DequantizeLinear, one behind the other, on
    /// two grids. Where nothing is in between, ONNX Runtime makes one pair of them, on a third grid, and results change by as much as a step.
    fn parts_grids(&self, output: ValueId, value: ValueId) -> bool {
        if self.producer(value, "DequantizeLinear").is_some() {
            return self.is_quantized_before(value) && self.is_quantized_behind(output, value);
        }
        let Some((_, quantized)) = self.producer(value, "QuantizeLinear") else { return false };
        // The pair that this node is inside of, behind another or before one.
        let is_second = quantized.input(0).is_some_and(|data| {
            let inner = self.producer(data, "DequantizeLinear");
            inner.is_some_and(|(_, inner)| !self.same_grid(quantized, inner)) && self.is_quantized_before(data)
        });
        self.model.users(output).into_iter().filter_map(|(id, _)| self.model.node(id)).any(|node| {
            let result = node.output(0).filter(|_| node.is("DequantizeLinear"));
            result.is_some_and(|result| is_second || self.is_quantized_behind(result, result))
        })
    }

    /// Whether a value is dequantized from what was quantized in the graph.
    fn is_quantized_before(&self, value: ValueId) -> bool {
        let codes = self.producer(value, "DequantizeLinear").and_then(|(_, node)| node.input(0));
        codes.is_some_and(|codes| self.producer(codes, "QuantizeLinear").is_some())
    }

    /// Whether a reader of a value quantizes on another grid than what gives `dequantized`.
    fn is_quantized_behind(&self, value: ValueId, dequantized: ValueId) -> bool {
        let Some((_, inner)) = self.producer(dequantized, "DequantizeLinear") else { return false };
        let is_other = |outer: &Node| outer.is("QuantizeLinear") && !self.same_grid(outer, inner);
        self.model.users(value).into_iter().any(|(id, _)| self.model.node(id).is_some_and(is_other))
    }

    /// Whether a quantization and a dequantization have the same scale, zero point, axis and blocks.
    pub fn same_grid(&self, outer: &Node, inner: &Node) -> bool {
        let same = |slot: usize| match (outer.input(slot), inner.input(slot)) {
            (None, None) => true,
            (Some(a), Some(b)) => a == b || self.constant(a).zip(self.constant(b)).is_some_and(|(a, b)| a.same(b)),
            _ => false,
        };
        let alike = |name: &str, default: i64| {
            outer.int(name, default).is_some_and(|own| inner.int(name, default) == Some(own))
        };
        same(1) && same(2) && alike("axis", 1) && alike("block_size", 0)
    }

    /// Whether a node with a body takes a value, or what the value is a copy of. The order in which ONNX Runtime runs the two hangs on
    /// who reads the copy: with one copy of a copy less it may make the copy of what is gone.
    fn is_copy_of_taken(&self, mut value: ValueId) -> bool {
        while !self.is_taken(value) {
            let Some(source) = self.producer(value, "Identity").and_then(|(_, node)| node.input(0)) else {
                return false;
            };
            value = source;
        }
        true
    }

    /// Whether a node with a body reads a value and may take it, see [`Fact::is_copied`].
    fn is_taken(&self, value: ValueId) -> bool {
        let is_copied = self.fact(value).is_some_and(Fact::is_copied);
        let has_body = |id| self.model.node(id).is_some_and(|node| node.subgraphs().next().is_some());
        !is_copied && self.model.users(value).into_iter().any(|(reader, _)| has_body(reader))
    }

    /// Whether a value can stand for the node's first result without a node that gives it the result's name.
    pub fn may_forward(&self, value: ValueId) -> bool {
        let at = self.output(0).zip(self.graph());
        at.is_some_and(|(output, graph)| self.model.may_replace(output, value, graph))
    }
}
