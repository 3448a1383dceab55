//! Inlining: moves the content of a subgraph into the enclosing graph, and replaces a call by a copy of the
//! function's body. Passes decide when to inline.

use rustc_hash::FxHashMap;

use super::copy::Copying;
use super::{Binding, Broken, Definition, Edit, FunctionId, GraphId, Model, NodeId, ValueId};

impl Model {
    /// Replaces `owner`, which contains `branch`, by the content of `branch`. Argument `i` replaces input `i` of the
    /// branch. `outputs[i]`, a value of the branch or visible in it, replaces result `i` of the owner. Values whose
    /// name is or was in use get new names.
    ///
    /// # Errors
    /// [`Broken`] if the branch has another number of inputs, the owner has more results than `outputs`, or a value
    /// would be defined twice.
    pub fn inline_subgraph(
        &mut self,
        owner: NodeId,
        branch: GraphId,
        arguments: &[ValueId],
        outputs: &[ValueId],
    ) -> Result<(), Broken> {
        let inconsistent = || Broken::Inconsistent(self.describe(owner));
        let node = self.node(owner).ok_or_else(inconsistent)?;
        let (home, results) = (node.graph(), node.outputs().to_vec());
        let inputs = self.graph(branch).inputs().to_vec();
        if inputs.len() != arguments.len()
            || outputs.len() < results.len()
            || self.graph(branch).parent() != Some(owner)
        {
            return Err(inconsistent());
        }
        for (&input, &argument) in inputs.iter().zip(arguments) {
            self.replace_uses(input, argument);
        }
        let read_as = |value: ValueId| {
            inputs.iter().position(|&input| input == value).and_then(|i| arguments.get(i)).copied().unwrap_or(value)
        };
        let replace = results.iter().zip(outputs).filter_map(|(result, &output)| Some(((*result)?, read_as(output))));
        let replace: Vec<(ValueId, ValueId)> = replace.collect();
        for value in self.graph(branch).initializers().to_vec() {
            if self.value(value).definition() == Definition::Initializer(branch) {
                self.name_apart(value);
                self.move_initializer(value, branch, home);
            }
        }
        let order = self.order_of(owner).unwrap_or((u32::MAX, 0));
        for (position, id) in (1u32..).zip(self.topological(branch)?) {
            let values: Vec<ValueId> =
                self.node(id).map(|node| node.outputs().iter().flatten().copied().collect()).unwrap_or_default();
            for value in values {
                self.name_apart(value);
            }
            self.move_node(id, home, (order.0, order.1.saturating_add(position)));
        }
        let Some(mut edit) = Edit::at(self, owner) else { return Err(Broken::Inconsistent(String::new())) };
        edit.remove.push(owner);
        edit.replace = replace;
        self.apply(edit)?;
        Ok(())
    }

    /// Replaces a call by a copy of the function's body, with these attributes bound. Inputs that the call omits
    /// become omitted operands in the body.
    ///
    /// # Errors
    /// [`Broken`] if an output of the body is an omitted input, or the body is inconsistent.
    pub fn inline_call(
        &mut self,
        call: NodeId,
        function: FunctionId,
        bindings: &FxHashMap<String, Binding>,
    ) -> Result<(), Broken> {
        let inconsistent = || Broken::Inconsistent(self.describe(call));
        let body = self.functions().find(|(id, _)| *id == function).ok_or_else(inconsistent)?.1.body;
        let node = self.node(call).ok_or_else(inconsistent)?;
        let (home, results, order) = (node.graph, node.outputs.clone(), node.order);
        let prefix = if node.name.is_empty() { String::new() } else { format!("{}/", node.name) };
        let inputs = self.graph(body).inputs().iter().enumerate().map(|(i, &input)| (input, node.input(i))).collect();
        let mut copying = Copying { bindings, values: inputs, prefix: &prefix, renames: true };
        self.copy_content(body, home, order, &mut copying)?;
        let outputs = self.graph(body).outputs().iter().take(results.len()).copied().collect();
        let outputs = self.copied(outputs, &copying)?;
        let Some(mut edit) = Edit::at(self, call) else { return Ok(()) };
        edit.remove.push(call);
        edit.replace = results.iter().zip(outputs).filter_map(|(result, output)| Some(((*result)?, output))).collect();
        self.apply(edit)?;
        Ok(())
    }

    /// Inserts a copy of a subgraph's content before its owner; argument `i` replaces input `i`. Copies are ordered
    /// by `number`. Returns the copies of the subgraph's outputs.
    ///
    /// # Errors
    /// [`Broken`] if the subgraph has another number of inputs or is inconsistent.
    pub fn copy_iteration(
        &mut self,
        owner: NodeId,
        body: GraphId,
        arguments: &[ValueId],
        number: usize,
    ) -> Result<Vec<ValueId>, Broken> {
        let inconsistent = || Broken::Inconsistent(self.describe(owner));
        let node = self.node(owner).ok_or_else(inconsistent)?;
        let (home, order) = (node.graph, node.order);
        let prefix = if node.name.is_empty() { String::new() } else { format!("{}/{number}/", node.name) };
        let inputs = self.graph(body).inputs();
        if inputs.len() != arguments.len() {
            return Err(inconsistent());
        }
        let values = inputs.iter().zip(arguments).map(|(&input, &argument)| (input, Some(argument))).collect();
        let before = number.saturating_mul(self.graph(body).node_count().saturating_add(1));
        let order = (order.0, order.1.saturating_add(u32::try_from(before).unwrap_or(u32::MAX)));
        let mut copying = Copying { bindings: &FxHashMap::default(), values, prefix: &prefix, renames: true };
        self.copy_content(body, home, order, &mut copying)?;
        self.copied(self.graph(body).outputs().to_vec(), &copying)
    }

    /// Moves an initializer of a subgraph to the enclosing graph, which contains `owner`. Ignores other values.
    pub fn lift_initializer(&mut self, value: ValueId, body: GraphId, owner: NodeId) {
        let Some(home) = self.node(owner).map(|node| node.graph()) else { return };
        if self.value(value).definition() == Definition::Initializer(body) {
            self.name_apart(value);
            self.move_initializer(value, body, home);
        }
    }

    /// Moves an initializer of a subgraph to the root graph, where all nested graphs see it.
    pub fn raise_initializer(&mut self, value: ValueId) {
        let Definition::Initializer(home) = self.value(value).definition() else { return };
        let root = self.root(home);
        if root != home {
            self.name_apart(value);
            self.move_initializer(value, home, root);
        }
    }

    /// Renames a value if another value has or had its name.
    fn name_apart(&mut self, value: ValueId) {
        if self.name_is_shared(value) {
            self.rename_after(value, &self.value(value).name.clone());
        }
    }
}
