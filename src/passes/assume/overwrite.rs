//! Changes of the model for an input that gets other sizes than the file declares.

use rustc_hash::FxHashMap;

use crate::ir::{DeclaredType, Definition, DimClaim, Model, ValueId};

/// The effect of an input's new shape on the names in it.
#[derive(Default)]
pub(super) struct Change {
    /// New sizes of names.
    pub sizes: Vec<(String, i64)>,
    /// New names of names.
    pub renamed: Vec<(String, DimClaim)>,
    /// `true` if a number that the file declares is replaced.
    pub overwrites: bool,
}

impl Change {
    /// Records the old claim of a dim (with `true` if it is a number that the file declares) and the new one. Returns `false` if they conflict.
    /// `contradicts` checks a declared name against a size.
    pub fn note(
        &mut self,
        (old, is_declared): (&DimClaim, bool),
        new: &DimClaim,
        contradicts: &dyn Fn(&str, i64) -> bool,
    ) -> bool {
        match (old, old.name(), new) {
            (DimClaim::Value(old), _, DimClaim::Value(new)) if old == new => {}
            (DimClaim::Value(_), _, DimClaim::Value(_) | DimClaim::Param(_)) => {
                self.overwrites |= is_declared;
                return is_declared;
            }
            (_, Some(symbol), DimClaim::Param(_)) => {
                self.renamed.push((symbol.to_string(), new.clone()));
            }
            (_, Some(symbol), DimClaim::Value(new)) => {
                let other = self.sizes.iter().find(|(known, _)| known == symbol).map(|(_, size)| *size);
                self.sizes.push((symbol.to_string(), *new));
                return !contradicts(symbol, *new) && other.is_none_or(|other| other == *new);
            }
            _ => {}
        }
        true
    }

    /// Returns the new claim for a name.
    pub fn of(&self, name: &str) -> Option<DimClaim> {
        let size = self.sizes.iter().find(|(symbol, _)| symbol == name).map(|(_, size)| DimClaim::Value(*size));
        size.or_else(|| self.renamed.iter().find(|(symbol, _)| symbol == name).map(|(_, new)| new.clone()))
    }
}

/// The numbers that the file declares as sizes of inputs, by input and axis.
pub(super) type Numbers = FxHashMap<(ValueId, usize), i64>;

/// Returns the declared numbers of a model.
pub(super) fn numbers(model: &Model) -> Numbers {
    let mut numbers = Numbers::default();
    for &value in model.graph(model.main()).inputs() {
        let shape = model.value(value).declared.as_ref().and_then(DeclaredType::shape);
        for (axis, dim) in shape.into_iter().flatten().enumerate() {
            if let DimClaim::Value(size) = dim.claim {
                numbers.insert((value, axis), size);
            }
        }
    }
    numbers
}

/// Drops every declared shape that may depend on a replaced size. Keeps the shapes of main graph inputs, and of initializers, which have the shape of
/// their data.
pub(super) fn forget_shapes(model: &mut Model) {
    let main = model.main();
    for graph in model.graphs().collect::<Vec<_>>() {
        let held = model.graph(graph);
        let mut values: Vec<ValueId> = held.inputs().iter().chain(held.outputs()).copied().collect();
        for node in held.nodes().filter_map(|id| model.node(id)) {
            values.extend(node.outputs().iter().flatten());
        }
        for value in values {
            let place = model.value_mut(value);
            let is_given = place.definition() == Definition::Input(main) || place.tensor().is_some();
            if let Some(declared) = place.declared.as_mut().filter(|_| !is_given) {
                forget(declared);
            }
        }
    }
}

/// Drops the shapes in a type, without recursion, since types may nest deeply.
fn forget(declared: &mut DeclaredType) {
    let mut open = vec![declared];
    while let Some(declared) = open.pop() {
        match declared {
            DeclaredType::Tensor { shape, .. } | DeclaredType::SparseTensor { shape, .. } => *shape = None,
            DeclaredType::Sequence { elem: inner, .. }
            | DeclaredType::Optional { elem: inner, .. }
            | DeclaredType::Map { value: inner, .. } => open.extend(inner.as_deref_mut()),
            DeclaredType::Opaque(_) => {}
        }
    }
}
