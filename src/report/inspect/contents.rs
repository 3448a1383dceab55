//! Lists the contents of a model: tensors, data files, functions, dynamic dims.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{DataFile, DynamicDim, FunctionInfo, LargeTensor, Parameters};
use crate::ir::text::type_text;
use crate::ir::{Attribute, Constant, DeclaredType, DimClaim, Facts, Model, OpsetImport, Value};
use crate::sort;
use crate::tensor::{DType, Tensor};

/// The number of listed tensors.
const LARGEST: usize = 5;

/// Element type, number of elements and bytes of a constant. If its data is in a missing file, the declared type determines them.
struct Held {
    dtype: Option<DType>,
    elements: u64,
    bytes: u64,
}

impl Held {
    fn of(value: &Value) -> Option<Held> {
        let constant = value.constant.as_deref()?;
        if let Some(tensor) = &constant.tensor {
            return Some(Held::of_tensor(tensor));
        }
        let declared = value.declared.as_ref();
        let dtype = declared.and_then(DeclaredType::dtype);
        let elements = declared.and_then(DeclaredType::shape).and_then(|shape| {
            shape.iter().try_fold(1_usize, |product, dim| match dim.claim {
                DimClaim::Value(size) => product.checked_mul(usize::try_from(size).ok()?),
                _ => None,
            })
        });
        let dense = dtype.zip(elements).and_then(|(dtype, elements)| dtype.byte_len(elements));
        let verbatim = constant.verbatim.as_ref().map_or(0, |bytes| bytes.len());
        let bytes = if constant.sparse { verbatim } else { dense.unwrap_or(verbatim) };
        Some(Held { dtype, elements: elements.unwrap_or(0) as u64, bytes: bytes as u64 })
    }

    fn of_tensor(tensor: &Tensor) -> Held {
        Held { dtype: Some(tensor.dtype()), elements: tensor.len() as u64, bytes: tensor.byte_len() as u64 }
    }
}

/// Returns the initializers of all graphs that belong to the model.
fn initializers(model: &Model) -> impl Iterator<Item = &Value> {
    let live = model.graphs().filter(|&graph| model.is_live(graph));
    live.flat_map(|graph| model.graph(graph).initializers()).map(|&value| model.value(value))
}

/// Returns the tensors in attributes of nodes, each with the name of the node's first result.
fn attribute_tensors(model: &Model) -> impl Iterator<Item = (&str, &Tensor)> {
    let live = model.graphs().filter(|&graph| model.is_live(graph));
    let nodes = live.flat_map(|graph| model.graph(graph).nodes()).filter_map(|id| model.node(id));
    nodes.flat_map(|node| {
        let name = node.output(0).map_or("", |value| model.value(value).name.as_str());
        node.attributes.iter().filter_map(move |held| match &held.value {
            Attribute::Tensor(tensor, _) => Some((name, tensor)),
            _ => None,
        })
    })
}

/// Sums the parameters by element type.
pub(super) fn parameters(model: &Model) -> BTreeMap<String, Parameters> {
    let mut sums: BTreeMap<String, Parameters> = BTreeMap::new();
    let held = initializers(model).filter_map(Held::of);
    for Held { dtype, elements, bytes } in
        held.chain(attribute_tensors(model).map(|(_, tensor)| Held::of_tensor(tensor)))
    {
        let sum = sums.entry(dtype.map_or("unknown", DType::name).to_string()).or_default();
        sum.tensors = sum.tensors.saturating_add(1);
        sum.elements = sum.elements.saturating_add(elements);
        sum.bytes = sum.bytes.saturating_add(bytes);
    }
    sums
}

/// Lists the largest tensors.
pub(super) fn largest(model: &Model) -> Vec<LargeTensor> {
    let of_tensor = |tensor: &Tensor| {
        let dims: Vec<String> = tensor.shape().iter().map(usize::to_string).collect();
        format!("{}[{}]", tensor.dtype().name(), dims.join(","))
    };
    let of_value = |value: &Value| match value.tensor() {
        Some(tensor) => of_tensor(tensor),
        None => value.declared.as_ref().map_or_else(String::new, type_text),
    };
    let held = initializers(model).filter_map(|value| Some((Held::of(value)?.bytes, value)));
    let mut largest: Vec<(u64, &str, String)> = Vec::new();
    let mut keep = |bytes: u64, name, ty: &dyn Fn() -> String| {
        let at = largest.partition_point(|(other, ..)| *other >= bytes);
        if at < LARGEST {
            largest.insert(at, (bytes, name, ty()));
            largest.truncate(LARGEST);
        }
    };
    for (bytes, value) in held {
        keep(bytes, value.name.as_str(), &|| of_value(value));
    }
    for (name, tensor) in attribute_tensors(model) {
        keep(tensor.byte_len() as u64, name, &|| of_tensor(tensor));
    }
    largest.into_iter().map(|(bytes, name, ty)| LargeTensor { name: name.to_string(), ty, bytes }).collect()
}

/// Lists the data files, in the order in which the model refers to them.
pub(super) fn files(model: &Model, missing: &[(String, usize)]) -> Vec<DataFile> {
    let mut files: Vec<DataFile> = Vec::new();
    let mut places: FxHashMap<&str, usize> = FxHashMap::default();
    for value in initializers(model) {
        let origin = value.constant.as_deref().and_then(|Constant { origin, .. }| origin.as_ref());
        let (Some(location), Some(held)) = (origin.and_then(|origin| origin.location()), Held::of(value)) else {
            continue;
        };
        let at = *places.entry(location).or_insert_with(|| {
            let is_missing = missing.iter().any(|(missing, _)| missing == location);
            files.push(DataFile { location: location.to_string(), tensors: 0, bytes: 0, is_missing });
            files.len().saturating_sub(1)
        });
        if let Some(file) = files.get_mut(at) {
            file.tensors = file.tensors.saturating_add(1);
            file.bytes = file.bytes.saturating_add(held.bytes);
        }
    }
    // A tensor with missing data may be kept in a form without a file name.
    for (location, tensors) in missing.iter().filter(|(location, _)| !places.contains_key(location.as_str())) {
        files.push(DataFile { location: location.clone(), tensors: *tensors, bytes: 0, is_missing: true });
    }
    files
}

/// Lists the operator sets by domain.
pub(super) fn opsets(imports: &[OpsetImport]) -> BTreeMap<String, i64> {
    let domain = |import: &OpsetImport| match import.domain.as_str() {
        "" => "ai.onnx".to_string(),
        domain => domain.to_string(),
    };
    sort::map(imports.iter().map(|import| (domain(import), import.version)))
}

/// Lists the functions, those with most nodes first.
pub(super) fn functions(model: &Model) -> Vec<FunctionInfo> {
    let mut sizes: FxHashMap<_, usize> = FxHashMap::default();
    for graph in model.graphs().filter(|&graph| model.is_live(graph)) {
        let size = sizes.entry(model.root(graph)).or_default();
        *size = size.saturating_add(model.graph(graph).node_count());
    }
    let mut functions: Vec<FunctionInfo> = model
        .functions()
        .map(|(_, function)| FunctionInfo {
            name: match function.overload.as_str() {
                "" => format!("{}::{}", function.domain, function.name),
                overload => format!("{}::{}:{overload}", function.domain, function.name),
            },
            nodes: sizes.get(&function.body).copied().unwrap_or(0),
            opsets: opsets(&function.opsets),
        })
        .collect();
    sort::by_key(&mut functions, |function| Reverse(function.nodes));
    functions
}

/// Lists the dims of inputs without a constant size.
pub(super) fn dims(model: &Model, facts: &Facts) -> Vec<DynamicDim> {
    let mut found: Vec<DynamicDim> = Vec::new();
    let mut places: FxHashMap<String, usize> = FxHashMap::default();
    for &input in model.graph(model.main()).inputs() {
        let Some(shape) = facts.get(input).and_then(|fact| fact.shape()) else { continue };
        for (axis, dim) in shape.iter().enumerate().filter(|(_, dim)| dim.as_const().is_none()) {
            let name = facts.scope().format(dim);
            let at = *places.entry(name.clone()).or_insert_with(|| {
                found.push(DynamicDim { name, places: Vec::new() });
                found.len().saturating_sub(1)
            });
            if let Some(dim) = found.get_mut(at) {
                dim.places.push((model.value(input).name.to_string(), axis));
            }
        }
    }
    found
}
