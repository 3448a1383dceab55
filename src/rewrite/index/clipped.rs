//! Lookups by the same numbers, clipped to one interval and to a wider one.
//!
//! Law: where `c ≤ a ≤ b ≤ d`, `min(max(x, a), b) = g(min(max(x, c), d))` with `g(k) = min(max(k, a), b)`. So what is looked up by the numbers that
//! are clipped more can be looked up by those that are clipped less, in a table whose row `k` is row `g(k)` of the old one. Numbers below 0
//! count from the end of a table, of the new one, too: it has rows for 0 up to `d`, and then for `c` up to −1, whatever of that there is.
//!
//! Models with relative positions have tables of several widths, all looked up by one difference of positions.

use crate::ir::{Data, Edit, NodeId, ValueId};
use crate::ops::{Environment, evaluate_node};
use crate::rewrite::Place;
use crate::rewrite::limits::{ADDED_FOR_LITTLE, READERS};
use crate::slicing::SliceRule;
use crate::tensor::{DType, Tensor};

/// The most rows of the new tables. A table for a longer range has more rows than the old one, and the model grows.
const MAX_ROWS: i64 = 1 << 16;

/// A Clip of integers between two numbers.
struct ClippedIntegers {
    id: NodeId,
    value: ValueId,
    result: ValueId,
    low: i64,
    high: i64,
}

impl ClippedIntegers {
    fn of(place: &Place<'_>, id: NodeId) -> Option<Self> {
        let node = place.model.node(id).filter(|node| node.is("Clip") && Some(node.graph()) == place.graph())?;
        let (value, result) = (node.input(0)?, node.output(0)?);
        if !matches!(place.dtype(value)?, DType::Int32 | DType::Int64) {
            return None;
        }
        let bound = |slot: usize| match place.const_ints(node.input(slot)?)?[..] {
            [number] => Some(number),
            _ => None,
        };
        let (low, high) = (bound(1)?, bound(2)?);
        (low <= high).then_some(ClippedIntegers { id, value, result, low, high })
    }

    /// Whether the interval of another one lies in this one's, and is smaller.
    fn contains(&self, other: &Self) -> bool {
        self.low <= other.low && self.high >= other.high && (self.low, self.high) != (other.low, other.high)
    }

    /// The numbers that the rows of a table are looked up by: from 0 on, then those below 0. Others between these and 0 are among them.
    fn numbers(&self) -> Option<Vec<i64>> {
        let rows = self.high.max(-1).checked_sub(self.low.min(0))?;
        (rows < MAX_ROWS).then(|| (0..=self.high).chain(self.low.min(0)..0).collect())
    }
}

pub(super) fn by_one(place: &Place<'_>) -> Option<Edit> {
    let own = ClippedIntegers::of(place, place.id)?;
    if place.model.is_named(own.result) || place.model.has_more_readers(own.result, READERS) {
        return None;
    }
    let users = place.model.users(own.value);
    let others = users.into_iter().filter_map(|(id, _)| ClippedIntegers::of(place, id));
    let others = others.filter(|other| other.id != own.id && other.value == own.value && other.contains(&own));
    let wide = others.min_by_key(|other| other.high.saturating_sub(other.low))?;
    let numbers = wide.numbers()?;
    let environment = Environment::of(place.model);
    let (mut edit, mut added) = (place.edit()?.removing(own.id), 0usize);
    for (id, slot) in place.model.users(own.result) {
        let node = place.model.node(id).filter(|node| node.is("Gather") && Some(node.graph()) == place.graph())?;
        let data = node.input(0).filter(|&data| slot == 1 && place.may_be_looked_up(data))?;
        let table = place.constant(data)?;
        let count = i64::try_from(*table.shape().get(place.read(node).axis(table.rank())?)?).ok()?;
        if own.low < count.checked_neg()? || own.high >= count {
            return None;
        }
        // What the numbers look up, counted from the front.
        let row = |&number: &i64| {
            let number = number.max(own.low).min(own.high);
            if number < 0 { number.checked_add(count) } else { Some(number) }
        };
        let rows: Vec<i64> = numbers.iter().map(row).collect::<Option<_>>()?;
        let bytes = table.byte_len().checked_div(usize::try_from(count).ok()?)?.checked_mul(rows.len())?;
        let is_stored_once = place.model.is_read_only_by(data, &[id]);
        added = added.checked_add(bytes.saturating_sub(if is_stored_once { table.byte_len() } else { 0 }))?;
        if added > ADDED_FOR_LITTLE {
            return None;
        }
        let operands = vec![Some(Data::Tensor(table.clone())), Some(Data::Tensor(Tensor::vector(rows)))];
        let results = evaluate_node(&environment, id, node, operands, place.budget, SliceRule::Agree, 0).ok()?;
        let rows = results.first().and_then(Data::tensor)?.clone();
        let rows = edit.constant(data, "rows", rows);
        edit.rewire.push((id, 0, Some(rows)));
        edit.rewire.push((id, 1, Some(wide.result)));
    }
    (!edit.rewire.is_empty()).then_some(edit)
}
