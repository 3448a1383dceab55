//! The selections of Slices.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::dim::Dim;
use crate::ir::{Fact, GraphId, NodeId, ValueId};
use crate::ops::slice_cuts;
pub(in crate::rewrite) use crate::ops::{SliceCut as Cut, SliceCuts as Cuts};
use crate::rewrite::cache::{CachedSlice, Taken};
use crate::rewrite::place::Place;
use crate::tensor::DType;

impl Taken {
    /// The first value of the place's graph that holds `number` as a scalar of 64 bits, if it is still there. Values made since are not
    /// found.
    pub(in crate::rewrite) fn scalar(&self, place: &Place<'_>, number: &Dim) -> Option<ValueId> {
        let graph = place.graph()?;
        place.model.note_all_read();
        let mut scalars = self.scalars.borrow_mut();
        let known = scalars.entry(graph).or_insert_with(|| scalars_of(place, graph));
        known.get(number).copied().filter(|&value| place.model.graph_of(value) == Some(graph))
    }
}

/// The first value that holds each expression as a 64-bit scalar, in an order to compute in.
fn scalars_of(place: &Place<'_>, graph: GraphId) -> FxHashMap<Dim, ValueId> {
    let mut found = FxHashMap::default();
    let nodes = place.model.topological(graph).unwrap_or_default();
    let results = nodes.iter().filter_map(|&id| place.model.node(id)).flat_map(|node| node.outputs().iter().flatten());
    for &value in place.model.graph(graph).inputs().iter().chain(results) {
        let is_scalar = |fact: &&Fact| fact.dtype() == Some(DType::Int64) && fact.rank() == Some(0);
        let number = place.fact(value).filter(is_scalar).filter(|fact| fact.data().is_none()).and_then(Fact::ints);
        if let Some([number]) = number.as_deref() {
            found.entry(number.clone()).or_insert(value);
        }
    }
    found
}

/// What the Slice `id` takes. Where readings of the operator are in dispute its ranges are not resolved by what is built on this.
pub(in crate::rewrite) fn cuts_of(place: &Place<'_>, id: NodeId) -> Option<Rc<Cuts>> {
    let inputs = place.model.node(id)?.inputs();
    if let Some(entry) = place.taken.slices.borrow().get(&id).filter(|entry| entry.inputs == inputs) {
        // Whoever asks depends on what was read when this was worked out.
        inputs.iter().flatten().for_each(|&value| {
            let _ = place.fact(value);
        });
        return entry.cuts.clone();
    }
    let cuts = slice_cuts(place.model, place.facts, id).map(Rc::new);
    let entry = CachedSlice { inputs: inputs.to_vec(), cuts: cuts.clone() };
    place.taken.slices.borrow_mut().insert(id, entry);
    cuts
}

/// The elements `start + k·step`, for `k` below `len`, of an axis.
pub(in crate::rewrite) struct Progression {
    pub axis: usize,
    pub start: usize,
    pub step: i64,
    pub len: usize,
}

/// What the Slice at a place takes of each axis that it cuts, if all of that is numbers, and takes something.
pub(in crate::rewrite) fn cut_elements(place: &Place<'_>) -> Option<Vec<Progression>> {
    let cuts = cuts_of(place, place.id)?;
    let elements = |(axis, cut): (usize, &Cut)| {
        let (start, len) = cut.exact.as_ref()?;
        let number = |dim: &Dim| dim.as_const().and_then(|dim| usize::try_from(dim).ok());
        Some(Progression {
            axis,
            start: number(start)?,
            step: cut.range.step?,
            len: number(len).filter(|len| *len > 0)?,
        })
    };
    let found: Vec<Progression> = cuts.cut().map(elements).collect::<Option<_>>()?;
    (!found.is_empty() && found.len() == cuts.named).then_some(found)
}
