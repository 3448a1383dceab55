//! Draws sizes and inputs that are likely to expose differences between two models.
//!
//! Sizes: ordinary ones, then 0, 1, primes, the axis lengths of constants, and the bounds in the options. If the original runs with none of them,
//! sizes typical of images, sentences and sound follow. If several sizes depend on each other, many combinations are drawn.
//! Integers are small, so that they serve as indices, or near a number in the model if the model runs with those.
//! Floats are ordinary, or near a number in the model, and include −0. If results must be equal bit for bit, NaN, infinities, subnormals and the
//! largest numbers are included.
//! Every second case overrides inputs that have a default. Boolean inputs are all true, all false or mixed, so that conditions take both values.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::dim::{Scope, is_word};
use crate::ir::{Attribute, Data, DeclaredType, DimClaim, Model};
use crate::ops::{input_labels, label_relations};
use crate::passes::{Assumption, Options, is_possible};
use crate::sort;
use crate::tensor::{DType, Tensor, nearest_bf16, nearest_f16};

/// The most elements of all inputs together.
const MOST_ELEMENTS: usize = 1 << 25;
/// The sizes that are tried for each symbol, in addition to those in the options.
const SIZES: [i64; 10] = [2, 3, 1, 0, 5, 7, 4, 8, 16, 13];
/// The sizes for symbols of other than leading axes, if ordinary ones do not run.
const LARGER: [i64; 9] = [16, 32, 64, 24, 128, 224, 256, 512, 1024];
/// The number of attempts with ordinary sizes. Attempts with [`LARGER`] sizes for all but leading axes, with varied larger sizes and with any sizes
/// follow.
const ORDINARY: usize = 6;
const AS_THEY_ARE: usize = ORDINARY + LARGER.len();
const VARIED: usize = AS_THEY_ARE + LARGER.len();
/// The number of attempts at a case, so that the original runs with one of them.
const ATTEMPTS: usize = VARIED + 40;
/// The most draws of sizes until the assumptions allow them.
const DRAWS: usize = 40;
/// Constants of at most this many elements contain numbers near which a model's functions may change. At most [`MOST_CONSTANTS`] numbers up to
/// [`LARGEST`] are used.
const SMALL: usize = 16;
const MOST_CONSTANTS: usize = 64;
const LARGEST: f64 = 1e4;
/// The largest axis length of a constant that is tried as a size.
const MOST_LENGTH: i64 = 128;
const EXTREMES: [f64; 9] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e-40, -1e-45, 3e38, -3e38, 1e30];

/// An input of the main graph.
struct Input {
    name: String,
    dtype: DType,
    dims: Vec<DimClaim>,
    has_default: bool,
}

/// Draws cases for a model.
pub struct Draw<'a> {
    inputs: Vec<Input>,
    original: &'a Model,
    options: &'a Options,
    /// Each symbol, and the sizes it may have.
    symbols: BTreeMap<String, Vec<i64>>,
    /// The labels that parse as expressions in others. Every second attempt evaluates these expressions.
    related: Vec<String>,
    /// The symbols of leading axes of inputs: mostly batch sizes, which need not be large.
    leading: BTreeSet<String>,
    /// Numbers in the original near which its functions may change: bounds and thresholds.
    constants: Vec<f64>,
    integers: Vec<i64>,
    /// Sizes at which results may change: the axis lengths of constants, such as position tables, and the numbers in the assumptions.
    ends: Vec<i64>,
    exact: bool,
}

/// The inputs of one comparison.
#[derive(Clone, Debug)]
pub struct Case {
    sizes: BTreeMap<String, i64>,
    inputs: BTreeMap<String, Data>,
    kind: String,
}

impl Case {
    /// Creates a case from input values by name, which come from `source`, and the sizes of the names in declared shapes.
    pub fn given(source: &str, sizes: BTreeMap<String, usize>, values: BTreeMap<String, Data>) -> Self {
        let sizes = sizes.into_iter().filter_map(|(name, size)| Some((name, i64::try_from(size).ok()?))).collect();
        Case { sizes, inputs: values, kind: format!("values of {source}") }
    }

    /// Returns the value of an input.
    pub fn input(&self, name: &str) -> Option<&Data> {
        self.inputs.get(name)
    }

    /// Returns the size of each symbol.
    pub fn sizes(&self) -> &BTreeMap<String, i64> {
        &self.sizes
    }

    /// Describes the case in a few words.
    pub fn told(&self, model: &Model) -> String {
        let mut sizes: Vec<String> = self.sizes.iter().map(|(name, size)| format!("{name} = {size}")).collect();
        for &value in model.graph(model.main()).inputs() {
            let name = &model.value(value).name;
            let Some(Data::Tensor(tensor)) = self.inputs.get(name.as_str()) else { continue };
            if let (0 | 1, Some([number])) = (tensor.rank(), tensor.to_i64s().as_deref()) {
                sizes.push(format!("'{name}' = {number}"));
            }
        }
        sizes.push(self.kind.clone());
        sizes.join(", ")
    }
}

/// A pseudorandom number generator with a fixed sequence per seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        let count = u64::try_from(count).unwrap_or(1).max(1);
        usize::try_from(self.next() % count).unwrap_or(0)
    }

    /// Returns a number between −2 and 2 that float16 represents exactly, so that all types get the same numbers.
    fn real(&mut self) -> f64 {
        let steps = u32::try_from(self.next() % 2049).unwrap_or(0);
        f64::from(steps) / 512.0 - 2.0
    }
}

impl<'a> Draw<'a> {
    /// Prepares the sizes and numbers to draw from.
    ///
    /// # Errors
    /// No value can be drawn for an input, or no size for a symbol.
    pub fn new(original: &'a Model, folded: &Model, options: &'a Options) -> Result<Self, String> {
        let labels = input_labels(folded, folded.main());
        let related: Vec<String> = label_relations(&labels).into_iter().map(str::to_string).collect();
        let (mut inputs, mut names, mut leading) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        // The inputs of the folded model declare the assumed sizes.
        for &value in folded.graph(folded.main()).inputs() {
            let place = folded.value(value);
            let Some(DeclaredType::Tensor { shape, .. }) = &place.declared else {
                return Err(format!("input '{}' is no tensor", place.name));
            };
            let dtype = place.declared.as_ref().and_then(DeclaredType::dtype);
            let dtype = dtype.ok_or_else(|| format!("input '{}' has an unknown type", place.name))?;
            let dims: Vec<DimClaim> = match shape {
                Some(dims) => dims.iter().map(|dim| dim.claim.clone()).collect(),
                None => vec![DimClaim::Value(2), DimClaim::Value(3)],
            };
            for (axis, dim) in dims.iter().enumerate() {
                // Numeric labels and trusted expressions are evaluated, not drawn.
                let is_drawn = |text: &String| {
                    let is_number = || Scope::new().parse(text).is_some_and(|size| size.as_const().is_some());
                    !(options.trust_input_names && related.contains(text)) && (dim.name().is_some() || !is_number())
                };
                if let DimClaim::Param(text) = dim
                    && is_drawn(text)
                {
                    leading.extend(Some(text.clone()).filter(|_| axis == 0 && dims.len() > 1));
                    names.insert(text.clone());
                }
            }
            inputs.push(Input { name: place.name.to_string(), dtype, dims, has_default: place.tensor().is_some() });
        }
        let mut draw = Draw {
            inputs,
            original,
            options,
            related,
            symbols: BTreeMap::new(),
            leading,
            constants: constants(original),
            integers: integers(original),
            ends: ends(original, &options.assumptions),
            exact: options.exact,
        };
        for name in names {
            let mut sizes: Vec<i64> = SIZES.to_vec();
            sizes.extend(named_sizes(&options.assumptions));
            sizes.retain(|&size| draw.fits(&BTreeMap::from([(name.clone(), size)])));
            if sizes.is_empty() {
                return Err(format!("no size was found for '{name}'"));
            }
            draw.symbols.insert(name, sizes);
        }
        Ok(draw)
    }

    /// Returns `true` if the assumptions allow the sizes of a case.
    pub fn allows(&self, case: &Case) -> bool {
        let names = case.sizes.iter().filter(|(name, _)| is_word(name) || self.symbols.contains_key(*name));
        self.fits(&sort::map(names.map(|(name, &size)| (name.clone(), size))))
    }

    /// Returns `true` if the assumptions allow these sizes.
    fn fits(&self, sizes: &BTreeMap<String, i64>) -> bool {
        if self.options.assumptions.is_empty() {
            return true;
        }
        let fixed = sizes.iter().map(|(name, size)| Assumption::Dim(format!("{name}={size}")));
        let assumptions: Vec<Assumption> = self.options.assumptions.iter().cloned().chain(fixed).collect();
        is_possible(self.original, &assumptions, self.options.trust_input_names)
    }

    /// Returns the number of attempts at a case.
    pub fn attempts(&self) -> usize {
        if self.symbols.is_empty() { ORDINARY } else { ATTEMPTS }
    }

    /// Returns `true` if an attempt uses ordinary sizes.
    pub fn is_ordinary(&self, attempt: usize) -> bool {
        attempt < ORDINARY
    }

    /// Draws a case, a different one for each attempt.
    pub fn case(&self, number: usize, attempt: usize) -> Case {
        let mut numbers = Numbers((number as u64) << 8 | attempt as u64);
        let sizes = self.sizes(number, attempt, &mut numbers);
        self.of_sizes(number, attempt, sizes, &mut numbers)
    }

    /// Returns a case with one given size and ordinary other sizes; `None` if the assumptions exclude it or an input would be too large.
    pub fn case_at(&self, name: &str, size: i64) -> Option<Case> {
        let mut sizes = self.sizes(0, 0, &mut Numbers(0));
        sizes.insert(name.to_string(), size);
        let case = self.fits(&sizes).then(|| self.case_of(0, sizes))?;
        let is_given = |input: &Input| input.has_default || case.inputs.contains_key(&input.name);
        self.inputs.iter().all(is_given).then_some(case)
    }

    /// Draws a case with these sizes.
    pub fn case_of(&self, number: usize, sizes: BTreeMap<String, i64>) -> Case {
        let mut numbers = Numbers((number as u64) << 8 | ATTEMPTS as u64);
        self.of_sizes(number, ATTEMPTS, sizes, &mut numbers)
    }

    fn of_sizes(&self, number: usize, attempt: usize, sizes: BTreeMap<String, i64>, numbers: &mut Numbers) -> Case {
        let is_wild = self.exact && number % 2 == 1;
        let kind = if is_wild { "with NaN, infinities and extreme numbers" } else { "ordinary numbers" };
        let mut inputs = BTreeMap::new();
        let mut left = MOST_ELEMENTS;
        for input in &self.inputs {
            if input.has_default && number.is_multiple_of(2) {
                continue;
            }
            let shape: Option<Vec<usize>> = input.dims.iter().map(|dim| size(dim, &sizes)).collect();
            let Some(shape) = shape else { continue };
            let count = shape.iter().try_fold(1_usize, |count, &size| count.checked_mul(size));
            let Some(count) = count.filter(|&count| count <= left) else { continue };
            left -= count;
            let is_near = number % 2 == 1;
            let kinds = Kinds {
                is_wild,
                number,
                near: if is_near { &self.constants } else { &[] },
                // Models that use integers as indices fail with most of these.
                near_whole: if is_near && attempt == 0 { &self.integers } else { &[] },
                below: match attempt {
                    // Indices beyond the first rows, if the model runs with them.
                    0 if number % 4 == 2 => 3 + number,
                    // Masks are 0 and 1. `LARGER` has an odd length, so each of its sizes is tried with both bounds.
                    _ if attempt.is_multiple_of(2) => 3,
                    _ => 2,
                },
            };
            if let Some(tensor) = tensor(input.dtype, &shape, count, &kinds, numbers) {
                inputs.insert(input.name.clone(), Data::Tensor(tensor));
            }
        }
        Case { sizes, inputs, kind: kind.to_string() }
    }

    /// Draws sizes: the first cases give all symbols one size, later cases any size. Later attempts use ordinary, then larger, then any sizes.
    fn sizes(&self, number: usize, attempt: usize, numbers: &mut Numbers) -> BTreeMap<String, i64> {
        let plain = |at: usize| {
            self.symbols
                .iter()
                .map(move |(name, sizes)| (name.clone(), sizes.get(at % sizes.len()).copied().unwrap_or(1)))
        };
        let any = |numbers: &mut Numbers, ends: &[i64]| -> BTreeMap<String, i64> {
            let mut one = |sizes: &[i64]| {
                let sizes = if ends.is_empty() || numbers.below(2) == 0 { sizes } else { ends };
                sizes.get(numbers.below(sizes.len())).copied().unwrap_or(1)
            };
            sort::map(self.symbols.iter().map(|(name, sizes)| (name.clone(), one(sizes))))
        };
        let is_even = attempt > 0 || number < 4;
        for _ in 0..DRAWS {
            let drawn: BTreeMap<String, i64> = match (number, attempt) {
                (0..4, 0) => plain(number).collect(),
                (_, ORDINARY..VARIED) => {
                    let size = LARGER.get((attempt - ORDINARY) % LARGER.len()).copied().unwrap_or(1);
                    self.larger(size, attempt >= AS_THEY_ARE, numbers)
                }
                (_, VARIED..) => any(numbers, &[]),
                (_, 3..) => plain(attempt % 3).collect(),
                _ if is_even => plain(numbers.below(3)).collect(),
                _ => any(numbers, &self.ends),
            };
            let drawn = self.in_relation(number.wrapping_add(attempt), drawn);
            if self.fits(&drawn) {
                return drawn;
            }
        }
        self.in_relation(0, plain(0).collect())
    }

    /// Removes the sizes of related labels in every second turn, so that their expressions are evaluated.
    fn in_relation(&self, turn: usize, mut sizes: BTreeMap<String, i64>) -> BTreeMap<String, i64> {
        if turn.is_multiple_of(2) {
            sizes.retain(|name, _| !self.related.contains(name));
        }
        sizes
    }

    /// Returns ordinary sizes for leading axes and `size` for the others; with `is_varied`, up to half more.
    fn larger(&self, size: i64, is_varied: bool, numbers: &mut Numbers) -> BTreeMap<String, i64> {
        let mut one = |name: &String, sizes: &[i64]| {
            if self.leading.contains(name) {
                return sizes.get(numbers.below(sizes.len().min(3))).copied().unwrap_or(1);
            }
            let above = [0, 0, 1, size / 2].get(numbers.below(4)).copied().unwrap_or(0);
            size + if is_varied { above } else { 0 }
        };
        sort::map(self.symbols.iter().map(|(name, sizes)| (name.clone(), one(name, sizes))))
    }
}

fn size(dim: &DimClaim, sizes: &BTreeMap<String, i64>) -> Option<usize> {
    match dim {
        DimClaim::Unknown => Some(2),
        DimClaim::Value(size) => usize::try_from(*size).ok(),
        DimClaim::Param(text) => usize::try_from(size_of(text, sizes)?).ok(),
    }
}

/// Returns the size of a dim label: a symbol or an expression of symbols; `None` if a symbol is unknown.
pub fn size_of(text: &str, sizes: &BTreeMap<String, i64>) -> Option<i64> {
    if let Some(&size) = sizes.get(text) {
        return Some(size);
    }
    let scope = Scope::new();
    scope.parse(text)?.evaluate(&|symbol| sizes.get(&*scope.name(symbol)).copied())
}

/// Returns the sorted numbers in small constants and attributes, near which the model's functions may change.
fn constants(model: &Model) -> Vec<f64> {
    let mut found = Vec::new();
    let mut of_tensor = |tensor: &Tensor| {
        if tensor.len() <= SMALL {
            found.extend(tensor.to_f64s().unwrap_or_default());
        }
    };
    for graph in model.graphs() {
        for &value in model.graph(graph).initializers() {
            model.value(value).tensor().into_iter().for_each(&mut of_tensor);
        }
        for node in model.graph(graph).nodes().filter_map(|id| model.node(id)) {
            for attribute in &node.attributes {
                match &attribute.value {
                    Attribute::Tensor(tensor, _) => of_tensor(tensor),
                    Attribute::Float(number) => of_tensor(&Tensor::scalar(*number)),
                    Attribute::Floats(numbers) => of_tensor(&Tensor::vector(numbers.clone())),
                    _ => {}
                }
            }
        }
    }
    found.retain(|number| number.abs() <= LARGEST);
    sort::by(&mut found, f64::total_cmp);
    found.dedup();
    found.truncate(MOST_CONSTANTS);
    found
}

/// Returns the sorted integers in small constants.
fn integers(model: &Model) -> Vec<i64> {
    let mut found = BTreeSet::new();
    let mut of_tensor = |tensor: &Tensor| {
        if tensor.len() <= SMALL {
            found.extend(tensor.to_i64s().unwrap_or_default());
        }
    };
    for graph in model.graphs() {
        for &value in model.graph(graph).initializers() {
            model.value(value).tensor().into_iter().for_each(&mut of_tensor);
        }
        let attributes = model.graph(graph).nodes().filter_map(|id| model.node(id)).flat_map(|node| &node.attributes);
        for attribute in attributes {
            if let Attribute::Tensor(tensor, _) = &attribute.value {
                of_tensor(tensor);
            }
        }
    }
    found.retain(|number| number.unsigned_abs() <= LARGEST as u64);
    found.into_iter().take(MOST_CONSTANTS).collect()
}

/// Returns the numbers in the assumptions, which are bounds.
fn named_sizes(assumptions: &[Assumption]) -> impl Iterator<Item = i64> {
    let texts = assumptions.iter().map(|assumption| match assumption {
        Assumption::Dim(text) | Assumption::Relation(text) | Assumption::InputShape(text) => text,
    });
    let numbers = texts.flat_map(|text| text.split(|letter: char| !letter.is_ascii_digit()));
    numbers.filter_map(|number| number.parse().ok())
}

/// Returns the ordinary axis lengths of constants, and the numbers in the assumptions.
fn ends(model: &Model, assumptions: &[Assumption]) -> Vec<i64> {
    let constants = model.graphs().flat_map(|graph| model.graph(graph).initializers());
    let lengths = constants.filter_map(|&value| model.value(value).tensor()).flat_map(|tensor| tensor.shape().to_vec());
    let lengths = lengths.filter_map(|length| i64::try_from(length).ok());
    let ordinary: BTreeSet<i64> = lengths.filter(|length| (2..=MOST_LENGTH).contains(length)).collect();
    let ends: BTreeSet<i64> = ordinary.into_iter().take(MOST_CONSTANTS).chain(named_sizes(assumptions)).collect();
    ends.into_iter().collect()
}

/// The kinds of numbers in an input.
struct Kinds<'a> {
    is_wild: bool,
    /// The number of the case.
    number: usize,
    /// Numbers of the model. Some drawn numbers are near one of them.
    near: &'a [f64],
    near_whole: &'a [i64],
    /// The exclusive bound of small integers.
    below: usize,
}

/// Draws a tensor; `None` for data types without a generator.
fn tensor(dtype: DType, shape: &[usize], count: usize, kinds: &Kinds<'_>, numbers: &mut Numbers) -> Option<Tensor> {
    let &Kinds { is_wild, number, near, .. } = kinds;
    let mut real = || {
        let ordinary = numbers.real();
        match numbers.below(8) {
            0 if is_wild => EXTREMES.get(numbers.below(EXTREMES.len())).copied().unwrap_or(0.0),
            1 if number % 3 == 2 => -0.0,
            2 | 3 => near.get(numbers.below(near.len())).map_or(ordinary, |constant| constant + ordinary),
            _ => ordinary,
        }
    };
    let made = match dtype {
        DType::Float => Tensor::from_vec(shape, (0..count).map(|_| real() as f32).collect()),
        DType::Double => Tensor::from_vec(shape, (0..count).map(|_| real()).collect()),
        DType::Float16 => Tensor::from_vec(shape, (0..count).map(|_| nearest_f16(real())).collect()),
        DType::Bfloat16 => Tensor::from_vec(shape, (0..count).map(|_| nearest_bf16(real())).collect()),
        DType::Bool => {
            let flag = |numbers: &mut Numbers| match number % 3 {
                0 => true,
                1 => false,
                _ => numbers.next().is_multiple_of(2),
            };
            Tensor::from_bools(shape, &(0..count).map(|_| flag(numbers)).collect::<Vec<_>>())
        }
        DType::String => {
            let words = [&b"ant"[..], b"Bee", b"cow hen", b""].map(Bytes::from_static);
            let word = |numbers: &mut Numbers| words.get(numbers.below(words.len())).cloned().unwrap_or_default();
            Tensor::from_strings(shape, (0..count).map(|_| word(numbers)).collect())
        }
        _ => return whole(dtype, shape, count, kinds, numbers),
    };
    made.ok()
}

/// Draws integers that may be indices or counts: small ones, some of them −1, or near a number of the model and mostly that number itself.
fn whole(dtype: DType, shape: &[usize], count: usize, kinds: &Kinds<'_>, numbers: &mut Numbers) -> Option<Tensor> {
    let low = if kinds.number % 4 == 3 && dtype.is_signed_integer() { -1 } else { 0 };
    let draw = |numbers: &mut Numbers| {
        let small = i64::try_from(numbers.below(kinds.below)).unwrap_or(0);
        match numbers.below(4) {
            0 | 1 if !kinds.near_whole.is_empty() => {
                let constant = kinds.near_whole.get(numbers.below(kinds.near_whole.len())).copied().unwrap_or(0);
                constant.saturating_add([0, 0, -1, 1].get(numbers.below(4)).copied().unwrap_or(0))
            }
            _ => small + low,
        }
    };
    let drawn: Vec<i64> = (0..count).map(|_| draw(numbers)).collect();
    macro_rules! of_type {
        ($type:ty) => {{
            let element = |&number: &i64| <$type>::try_from(number).unwrap_or(1);
            Tensor::from_vec(shape, drawn.iter().map(element).collect())
        }};
    }
    let made = match dtype {
        DType::Int64 => Tensor::from_vec(shape, drawn),
        DType::Int32 => of_type!(i32),
        DType::Int16 => of_type!(i16),
        DType::Int8 => of_type!(i8),
        DType::Uint64 => of_type!(u64),
        DType::Uint32 => of_type!(u32),
        DType::Uint16 => of_type!(u16),
        DType::Uint8 => of_type!(u8),
        _ => return None,
    };
    made.ok()
}
