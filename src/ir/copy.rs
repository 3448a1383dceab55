//! Copies graphs within a model: a function's body, to be folded separately or inlined (see `inline`).

use rustc_hash::FxHashMap;

use super::{
    Annotation, Attribute, Broken, DeclaredDim, DeclaredType, DimClaim, GraphId, Model, Name, NamedAttribute, NewNode,
    ValueId,
};

/// The attribute that references in a function's body resolve to.
#[derive(Clone, Debug)]
pub enum Binding {
    /// The call or a default gives the value.
    Value(Attribute),
    /// The call omits the attribute and there is no default: attributes that refer to it are absent.
    Absent,
}

/// The parameters of a copy.
pub(super) struct Copying<'a> {
    /// The attributes by name; references to other names are kept.
    pub bindings: &'a FxHashMap<String, Binding>,
    /// The copies of values; `None` is an omitted operand.
    pub values: FxHashMap<ValueId, Option<ValueId>>,
    /// The prefix of the nodes' names.
    pub prefix: &'a str,
    /// `true` if copied values get unused names.
    pub renames: bool,
}

impl Model {
    /// Copies a function's body with inputs and outputs, and binds attributes of the call. Values keep their names.
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

    /// Returns the copies of values.
    pub(super) fn copied(&self, values: Vec<ValueId>, copying: &Copying<'_>) -> Result<Vec<ValueId>, Broken> {
        let copied = |value: ValueId| match copying.values.get(&value) {
            Some(Some(copy)) => Ok(*copy),
            Some(None) => Err(Broken::Inconsistent(self.value(value).name.to_string())),
            None => Ok(value),
        };
        values.into_iter().map(copied).collect()
    }

    /// Copies initializers and nodes of `from` into `to`, at a position in the order.
    // The verifier bounds the nesting of graphs to 32, so the recursion is bounded.
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
        // A subgraph may read a result of a later node if the order is not topological, so all results are defined
        // first.
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
            // A Loop has at least two operands, named or not. An opaque operator may need trailing empty operands.
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
        // Symbolic dims of a function are unrelated to those of the caller.
        place.declared = if copying.renames { declared.map(nameless) } else { declared };
        // Nothing outside the wiring refers to a new name.
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

/// Removes symbolic dims from a declared type.
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
