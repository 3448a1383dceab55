//! Inlining, as a change of the graphs: the content of a subgraph moves up into the graph around it, and a copy of a function's body
//! takes the place of a call. When that is to be done is the business of the passes.

use rustc_hash::FxHashMap;

use super::copy::Copying;
use super::{Binding, Broken, Definition, Edit, FunctionId, GraphId, Model, NodeId, ValueId};

impl Model {
    /// Replaces `owner`, which holds `branch`, by the content of `branch`. Input `i` of the branch is read as `arguments[i]`, and
    /// result `i` of the owner as `outputs[i]`, a value of the branch or one it sees. Values whose names another value has or had
    /// get new names.
    ///
    /// # Errors
    /// [`Broken`] if the branch has another number of inputs or the owner more results than is given, or a value would be defined
    /// twice.
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

    /// Replaces a call of a function by a copy of the function's body, with these attributes bound. What the call leaves out of the
    /// inputs is left out of the operands in the body.
    ///
    /// # Errors
    /// [`Broken`] if an output of the body is an input the call leaves out, or the body is inconsistent.
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

    /// Puts a copy of a body's content before the node that has the body, input `i` read as `arguments[i]`. Copies with higher numbers stand
    /// behind others. Returns the copies of the body's outputs.
    ///
    /// # Errors
    /// [`Broken`] if the body has another number of inputs than is given, or is inconsistent.
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

    /// Makes an initializer of a body one of the graph around it, in which `owner` has the body. Anything else is left alone.
    pub fn lift_initializer(&mut self, value: ValueId, body: GraphId, owner: NodeId) {
        let Some(home) = self.node(owner).map(|node| node.graph()) else { return };
        if self.value(value).definition() == Definition::Initializer(body) {
            self.name_apart(value);
            self.move_initializer(value, body, home);
        }
    }

    /// Makes an initializer of a body one of the root graph, where every graph of the root sees it.
    pub fn raise_initializer(&mut self, value: ValueId) {
        let Definition::Initializer(home) = self.value(value).definition() else { return };
        let root = self.root(home);
        if root != home {
            self.name_apart(value);
            self.move_initializer(value, home, root);
        }
    }

    /// Gives a value a name of its own if another value has or had its name.
    fn name_apart(&mut self, value: ValueId) {
        if self.name_is_shared(value) {
            self.rename_after(value, &self.value(value).name.clone());
        }
    }
}
