//! Copies of graphs within a model: a function's body, to be folded for itself or put where it is called (see `inline`).

use rustc_hash::FxHashMap;

use super::{
    Annotation, Attribute, Broken, DeclaredDim, DeclaredType, DimClaim, GraphId, Model, Name, NamedAttribute, NewNode,
    ValueId,
};

/// What an attribute stands for that the nodes of a function's body refer to.
#[derive(Clone, Debug)]
pub enum Binding {
    /// It is given.
    Value(Attribute),
    /// The call leaves it out, and it has no default: attributes that refer to it are absent.
    Absent,
}

/// How a graph is copied.
pub(super) struct Copying<'a> {
    /// By name; references to others stay.
    pub bindings: &'a FxHashMap<String, Binding>,
    /// What values of the original are in the copy; `None` is an operand left out.
    pub values: FxHashMap<ValueId, Option<ValueId>>,
    /// What the names of nodes begin with.
    pub prefix: &'a str,
    /// Whether values get names that no other has.
    pub renames: bool,
}

impl Model {
    /// A copy of a function's body, inputs and outputs included, with these attributes of the call bound. Values keep their names.
    ///
    /// # Errors
    /// [`Broken`] if the body is inconsistent.
    pub fn copy_body(&mut self, body: GraphId, bindings: &FxHashMap<String, Binding>) -> Result<GraphId, Broken> {
        let name = self.graph(body).name.clone();
        let copy = self.add_graph(&name, None);
        let mut copying = Copying { bindings, values: FxHashMap::default(), prefix: "", renames: false };
        for input in self.graph(body).inputs().to_vec() {
            let value = self.copy_value(input, &mut copying);
            self.add_input(copy, value)?;
        }
        self.copy_content(body, copy, (0, 0), &mut copying)?;
        for output in self.copied(self.graph(body).outputs().to_vec(), &copying)? {
            self.add_output(copy, output);
        }
        let extra = self.graph(body).extra.clone();
        self.graph_mut(copy).extra = extra;
        Ok(copy)
    }

    /// What values are in the copy.
    pub(super) fn copied(&self, values: Vec<ValueId>, copying: &Copying<'_>) -> Result<Vec<ValueId>, Broken> {
        let copied = |value: ValueId| match copying.values.get(&value) {
            Some(Some(copy)) => Ok(*copy),
            Some(None) => Err(Broken::Inconsistent(self.value(value).name.to_string())),
            None => Ok(value),
        };
        values.into_iter().map(copied).collect()
    }

    /// Copies initializers and nodes of `from` to `to`, at this place.
    // Graphs nest at most 32 deep, which the verifier has checked, so recursion is bounded.
    pub(super) fn copy_content(
        &mut self,
        from: GraphId,
        to: GraphId,
        order: (u32, u32),
        copying: &mut Copying<'_>,
    ) -> Result<(), Broken> {
        for value in self.graph(from).initializers().to_vec() {
            let Some(constant) = self.value(value).constant.clone() else { continue };
            let copy = match copying.values.get(&value) {
                // The default of an input.
                Some(Some(copy)) => *copy,
                _ => self.copy_value(value, copying),
            };
            self.add_initializer(to, copy, *constant)?;
        }
        let nodes = self.topological(from)?;
        // A graph inside may read what a later node computes, were the order not a topological one; so all names come first.
        for &id in &nodes {
            let outputs: Vec<ValueId> =
                self.node(id).map(|node| node.outputs.iter().flatten().copied().collect()).unwrap_or_default();
            for value in outputs {
                self.copy_value(value, copying);
            }
        }
        for (position, id) in (1u32..).zip(nodes) {
            let Some(node) = self.node(id).cloned() else { continue };
            let name =
                if node.name.is_empty() { Name::default() } else { format!("{}{}", copying.prefix, node.name).into() };
            let read =
                |value: &Option<ValueId>| value.and_then(|value| *copying.values.get(&value).unwrap_or(&Some(value)));
            let mut inputs: Vec<Option<ValueId>> = node.inputs.iter().map(read).collect();
            // A Loop has two operands at least, named or not. An operator nobody knows may have any number.
            let is_free = node.canonical_domain().is_empty() && node.op_type != "Loop";
            while is_free && inputs.last() == Some(&None) && inputs.len() > 1 {
                inputs.pop();
            }
            let outputs = node.outputs.iter().map(read);
            let new = NewNode {
                name,
                domain: node.domain,
                op_type: node.op_type,
                overload: node.overload,
                inputs,
                outputs: outputs.collect(),
                extra: node.extra,
                attributes: self.copy_attributes(node.attributes, copying)?,
            };
            self.insert_node(to, new, (order.0, order.1.saturating_add(position)))?;
        }
        Ok(())
    }

    fn copy_attributes(
        &mut self,
        attributes: Vec<NamedAttribute>,
        copying: &mut Copying<'_>,
    ) -> Result<Vec<NamedAttribute>, Broken> {
        let mut copies = Vec::with_capacity(attributes.len());
        for held in attributes {
            let value = match held.value {
                Attribute::Graph(graph) => Attribute::Graph(self.copy_subgraph(graph, copying)?),
                Attribute::Graphs(graphs) => {
                    let copies = graphs.into_iter().map(|graph| self.copy_subgraph(graph, copying));
                    Attribute::Graphs(copies.collect::<Result<_, _>>()?)
                }
                Attribute::Reference { name, kind } => match copying.bindings.get(&name) {
                    Some(Binding::Value(value)) => value.clone(),
                    Some(Binding::Absent) => continue,
                    None => Attribute::Reference { name, kind },
                },
                value => value,
            };
            copies.push(NamedAttribute { value, ..held });
        }
        Ok(copies)
    }

    fn copy_subgraph(&mut self, graph: GraphId, copying: &mut Copying<'_>) -> Result<GraphId, Broken> {
        let name = self.graph(graph).name.clone();
        let copy = self.add_graph(&name, None);
        for input in self.graph(graph).inputs().to_vec() {
            let value = self.copy_value(input, copying);
            self.add_input(copy, value)?;
        }
        self.copy_content(graph, copy, (0, 0), copying)?;
        for output in self.copied(self.graph(graph).outputs().to_vec(), copying)? {
            self.add_output(copy, output);
        }
        let extra = self.graph(graph).extra.clone();
        self.graph_mut(copy).extra = extra;
        Ok(copy)
    }

    fn copy_value(&mut self, value: ValueId, copying: &mut Copying<'_>) -> ValueId {
        let original = self.value(value);
        let (name, declared) = (original.name.clone(), original.declared.clone());
        let (extra, pinned) = (original.extra.clone(), original.pinned);
        let copy = if copying.renames { self.new_value(&name) } else { self.add_value(name) };
        let place = self.value_mut(copy);
        // The names of sizes inside a function have nothing to do with those around a call.
        place.declared = if copying.renames { declared.map(nameless) } else { declared };
        // Nothing refers to a new name from outside the wiring.
        (place.extra, place.pinned) = (extra, pinned && !copying.renames);
        copying.values.insert(value, Some(copy));
        if !copying.renames {
            let own = self.annotations.iter().filter(|annotation| annotation.tensor.0 == value);
            let copies: Vec<Annotation> =
                own.map(|own| Annotation { tensor: (copy, own.tensor.1.clone()), ..own.clone() }).collect();
            self.annotations.extend(copies);
        }
        copy
    }
}

/// A declared type without the names of sizes.
fn nameless(ty: DeclaredType) -> DeclaredType {
    let dim = |dim: DeclaredDim| match dim.claim {
        DimClaim::Param(_) => DeclaredDim { claim: DimClaim::Unknown, ..dim },
        _ => dim,
    };
    let dims = |shape: Option<Vec<DeclaredDim>>| shape.map(|shape| shape.into_iter().map(dim).collect());
    let inner = |ty: Option<Box<DeclaredType>>| ty.map(|ty| Box::new(nameless(*ty)));
    match ty {
        DeclaredType::Tensor { dtype, shape, extra } => DeclaredType::Tensor { dtype, shape: dims(shape), extra },
        DeclaredType::SparseTensor { dtype, shape, extra } => {
            DeclaredType::SparseTensor { dtype, shape: dims(shape), extra }
        }
        DeclaredType::Sequence { elem, extra } => DeclaredType::Sequence { elem: inner(elem), extra },
        DeclaredType::Optional { elem, extra } => DeclaredType::Optional { elem: inner(elem), extra },
        DeclaredType::Map { key, value, extra } => DeclaredType::Map { key, value: inner(value), extra },
        opaque => opaque,
    }
}
