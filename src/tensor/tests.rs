//! Compares tensors, views and copies with simple reference implementations.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

fn any_dtype() -> impl Strategy<Value = DType> {
    prop::sample::select(DType::ALL)
}

/// Returns a tensor of rank 1 with elements from a seed.
fn filled(dtype: DType, len: usize, seed: u64) -> Tensor {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    match dtype.byte_len(len) {
        Some(bytes) => Tensor::from_bytes(dtype, &[len], (0..bytes).map(|_| next()).collect()).unwrap(),
        None => Tensor::from_strings(&[len], (0..len).map(|_| Bytes::from(vec![next(); 2])).collect()).unwrap(),
    }
}

/// Returns the elements as bytes; a packed element is its code.
fn elements(tensor: &Tensor) -> Vec<Vec<u8>> {
    if let Some(strings) = tensor.strings() {
        return strings.iter().map(|string| string.to_vec()).collect();
    }
    if tensor.dtype().is_packed() {
        return tensor.codes().unwrap().map(|code| vec![code]).collect();
    }
    let width = tensor.dtype().bits().unwrap() / 8;
    tensor.bytes().chunks_exact(width).map(<[u8]>::to_vec).collect()
}

/// Returns the elements of a view, index by index.
fn enumerated(tensor: &Tensor, view: &StridedView) -> Vec<Vec<u8>> {
    let position = |index: Shape| {
        let distance: isize = index.iter().zip(view.strides()).map(|(&at, &stride)| at as isize * stride).sum();
        usize::try_from(view.offset() + distance).unwrap()
    };
    let elements = elements(tensor);
    Indices::new(view.shape()).map(|index| elements[position(index)].clone()).collect()
}

fn check(tensor: &Tensor, view: &StridedView) {
    let gathered = gather(tensor, view).unwrap();
    assert_eq!(gathered.dtype(), tensor.dtype());
    assert_eq!(gathered.shape(), view.shape());
    assert_eq!(elements(&gathered), enumerated(tensor, view), "{view:?}");
}

/// Generates a view, and the smallest number of elements that contains it. Half of the views are permuted, partly reversed or
/// repeated dense tensors, half have any strides.
fn any_view() -> impl Strategy<Value = (StridedView, usize)> {
    let dim = prop_oneof![12 => 1usize..5, 4 => 5usize..20, 1 => Just(0usize), 2 => 20usize..150];
    let stride =
        prop_oneof![3 => Just(1isize), 2 => Just(-1isize), 1 => Just(0isize), 3 => -6isize..7, 2 => -80isize..81];
    let axes = prop::collection::vec((dim, stride, any::<u8>()), 0..7);
    (axes, any::<bool>(), 0usize..9).prop_filter_map("too large to enumerate", |(axes, dense, slack)| {
        let shape: Vec<usize> = axes.iter().map(|axis| axis.0).collect();
        let mut strides: Vec<isize> = axes.iter().map(|axis| axis.1).collect();
        if dense {
            let mut order: Vec<usize> = (0..axes.len()).collect();
            order.sort_by_key(|&axis| axes[axis].2);
            let mut span = 1;
            for axis in order {
                strides[axis] = span * strides[axis].signum();
                span *= shape[axis].max(1) as isize;
            }
        }
        if product(&shape)? > 12_000 {
            return None;
        }
        let ends = shape.iter().zip(&strides).map(|(&dim, &stride)| dim.saturating_sub(1) as isize * stride);
        let low: isize = ends.clone().map(|end| end.min(0)).sum();
        let high: isize = ends.map(|end| end.max(0)).sum();
        let view = StridedView::new(&shape, &strides, slack as isize - low).unwrap();
        Some((view, slack + (high - low) as usize + 1))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn gather_is_enumeration(dtype in any_dtype(), (view, span) in any_view(), more in 0usize..5, seed: u64) {
        check(&filled(dtype, span + more, seed), &view);
    }

    #[test]
    fn a_view_that_reaches_outside_is_refused(dtype in any_dtype(), (view, span) in any_view(), seed: u64) {
        let short = filled(dtype, span - 1, seed);
        let before = StridedView::new(view.shape(), view.strides(), view.offset() - span as isize).unwrap();
        if view.is_empty() {
            prop_assert!(gather(&short, &view).unwrap().is_empty());
        } else {
            let outside = TensorError::ViewOutOfBounds { elements: span - 1 };
            prop_assert_eq!(gather(&short, &view).unwrap_err(), outside.clone());
            prop_assert_eq!(gather(&short, &before).unwrap_err(), outside);
        }
    }

    /// A view of a view is a view of the copy: `gather(v.op()) = gather(of(gather(v)).op())`.
    #[test]
    fn views_compose(dtype in any_dtype(), (view, span) in any_view(), seed: u64, picks: [u16; 4]) {
        let tensor = filled(dtype, span, seed);
        let copy = gather(&tensor, &view).unwrap();
        let dense = StridedView::of(&copy);
        let rank = view.rank();
        let [axis, start, end, step] = picks.map(usize::from);

        let mut permutation: Vec<usize> = (0..rank).collect();
        if rank > 0 {
            permutation.rotate_left(axis % rank);
            permutation.swap(0, start % rank);
        }
        let both = |view: StridedView, dense: StridedView| {
            let (of_view, of_copy) = (gather(&tensor, &view).unwrap(), gather(&copy, &dense).unwrap());
            assert_eq!(elements(&of_view), elements(&of_copy));
            assert!(of_view.same(&of_copy) && of_view.hash_content() == of_copy.hash_content());
        };
        both(view.permute(&permutation).unwrap(), dense.permute(&permutation).unwrap());

        let mut target = view.shape().to_vec();
        target.iter_mut().filter(|dim| **dim == 1).for_each(|dim| *dim = 3);
        target.insert(0, 2);
        both(view.broadcast_to(&target).unwrap(), dense.broadcast_to(&target).unwrap());

        if let Some(&dim) = view.shape().get(axis % rank.max(1)).filter(|&&dim| dim > 0) {
            let axis = axis % rank;
            let (start, end, step) = (start % dim, end % dim, 1 + step % 3);
            let len = start.abs_diff(end) / step + 1;
            let step = if end < start { -(step as isize) } else { step as isize };
            both(view.slice_axis(axis, start, step, len).unwrap(), dense.slice_axis(axis, start, step, len).unwrap());
            both(view.select(axis, start).unwrap(), dense.select(axis, start).unwrap());
            both(view.insert_axis(axis).unwrap(), dense.insert_axis(axis).unwrap());
        }
    }

    #[test]
    fn a_payload_of_any_other_length_is_refused(dtype in any_dtype(), shape in prop::collection::vec(0usize..6, 0..4), extra in 1usize..40) {
        let len = product(&shape).unwrap();
        match dtype.byte_len(len) {
            None => {
                prop_assert_eq!(Tensor::from_bytes(dtype, &shape, Bytes::new()).unwrap_err(), TensorError::StringPayload);
                prop_assert!(Tensor::from_strings(&shape, vec![Bytes::new(); len]).is_ok());
                prop_assert!(Tensor::from_strings(&shape, vec![Bytes::new(); len + extra]).is_err());
            }
            Some(bytes) => {
                let tensor = Tensor::from_bytes(dtype, &shape, vec![7; bytes].into()).unwrap();
                prop_assert_eq!((tensor.len(), tensor.byte_len(), tensor.shape()), (len, bytes, shape.as_slice()));
                prop_assert!(Tensor::from_bytes(dtype, &shape, vec![7; bytes + extra].into()).is_err());
                if bytes > 0 {
                    prop_assert!(Tensor::from_bytes(dtype, &shape, vec![7; bytes - 1].into()).is_err());
                }
            }
        }
    }

    #[test]
    fn uniform_is_all_elements_equal(dtype in any_dtype(), len in 0usize..12, seed: u64, odd in 0usize..12) {
        let one = filled(dtype, 1, seed);
        let view = StridedView::of(&one).select(0, 0).unwrap().broadcast_to(&[len]).unwrap();
        let tensor = gather(&one, &view).unwrap();
        match tensor.uniform() {
            None => prop_assert_eq!(len, 0),
            Some(scalar) => prop_assert!(scalar.same(&gather(&one, &StridedView::of(&one).select(0, 0).unwrap()).unwrap())),
        }
        let mixed = filled(dtype, len, seed ^ odd as u64);
        let all = elements(&mixed);
        prop_assert_eq!(mixed.uniform().is_some(), all.windows(2).all(|pair| pair[0] == pair[1]) && len > 0);
    }

    #[test]
    fn same_is_equal_elements_and_hashes_follow(dtype in any_dtype(), len in 0usize..70, seed: u64, flip in 0usize..70) {
        let tensor = filled(dtype, len, seed);
        let again = gather(&tensor, &StridedView::of(&tensor)).unwrap();
        prop_assert!(tensor.same(&again));
        prop_assert_eq!(tensor.hash_content(), again.hash_content());
        prop_assert!(!tensor.same(&tensor.reshape(&[1, len]).unwrap()));
        prop_assert_ne!(tensor.hash_content(), tensor.reshape(&[len, 1]).unwrap().hash_content());
        if flip < tensor.bytes().len() {
            // A flipped bit changes equality unless it is padding.
            let mut bytes = tensor.bytes().to_vec();
            bytes[flip] ^= 0x80;
            let other = Tensor::from_bytes(dtype, &[len], bytes.into()).unwrap();
            let equal = elements(&tensor) == elements(&other);
            prop_assert_eq!(tensor.same(&other), equal);
            prop_assert_eq!(tensor.hash_content() == other.hash_content(), equal);
        }
    }
}

/// Sizes that use tiles, stretches and several threads.
#[test]
fn large_views_are_enumeration_too() {
    for (dtype, shape) in [
        (DType::Uint8, [70usize, 300, 260]),
        (DType::Float16, [3, 300, 330]),
        (DType::Float, [130, 100, 90]),
        (DType::Complex128, [67, 3, 1400]),
        (DType::Int4, [11, 101, 101]),
    ] {
        let len = product(&shape).unwrap();
        let tensor = filled(dtype, len, 99).reshape(&shape).unwrap();
        let whole = StridedView::of(&tensor);
        let mut views: Vec<StridedView> = [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
            .iter()
            .map(|permutation| whole.permute(permutation).unwrap())
            .collect();
        for (axis, &dim) in shape.iter().enumerate() {
            views.push(whole.slice_axis(axis, 0, 2, dim.div_ceil(2)).unwrap());
            views.push(whole.slice_axis(axis, dim - 1, -1, dim).unwrap());
            views.push(whole.slice_axis(axis, dim - 1, -1, dim).unwrap().permute(&[2, 1, 0]).unwrap());
        }
        let source = unpacked(&tensor);
        let width = source.len() / len;
        for view in views {
            let out = unpacked(&gather(&tensor, &view).unwrap());
            let mut out = out.chunks_exact(width);
            let (dims, strides) = (view.shape(), view.strides());
            for i in 0..dims[0] as isize {
                for j in 0..dims[1] as isize {
                    for k in 0..dims[2] as isize {
                        let at = view.offset() + i * strides[0] + j * strides[1] + k * strides[2];
                        let expected = &source[at as usize * width..][..width];
                        assert!(out.next() == Some(expected), "{dtype} {view:?} at {i} {j} {k}");
                    }
                }
            }
        }
    }
}

/// Returns the payload, with one byte per packed code.
fn unpacked(tensor: &Tensor) -> Vec<u8> {
    if tensor.dtype().is_packed() { tensor.codes().unwrap().collect() } else { tensor.bytes().to_vec() }
}

#[test]
fn contiguous_views_share_the_payload() {
    let tensor = filled(DType::Float, 24, 1).reshape(&[2, 3, 4]).unwrap();
    let second = gather(&tensor, &StridedView::of(&tensor).slice_axis(0, 1, 1, 1).unwrap()).unwrap();
    assert_eq!(second.bytes().as_ptr(), tensor.bytes()[48..].as_ptr());
    let packed = filled(DType::Int4, 9, 1);
    let view = |start, len| StridedView::of(&packed).slice_axis(0, start, 1, len).unwrap();
    let shares = |start, len| {
        let bytes = packed.bytes().as_ptr_range();
        bytes.contains(&gather(&packed, &view(start, len)).unwrap().bytes().as_ptr())
    };
    assert!(shares(0, 4) && shares(2, 6) && shares(4, 5));
    // The elements do not form whole bytes, and padding is zero.
    assert!(!shares(1, 4) && !shares(0, 3));
    assert_eq!(gather(&packed, &view(0, 3)).unwrap().bytes()[1] & 0xf0, 0);
}

#[test]
fn sizes_beyond_memory_are_errors() {
    let one = Tensor::scalar(1u8);
    let huge = [usize::MAX, usize::MAX];
    assert!(matches!(Tensor::zeros(DType::Float, &huge), Err(TensorError::ElementCount { .. })));
    assert!(matches!(Tensor::zeros(DType::String, &huge), Err(TensorError::ElementCount { .. })));
    assert!(matches!(Tensor::zeros(DType::Double, &[1 << 61]), Err(TensorError::ByteCount { .. })));
    assert!(matches!(Tensor::zeros(DType::Uint8, &[1 << 62]), Err(TensorError::OutOfMemory { .. })));
    assert!(matches!(Tensor::zeros(DType::String, &[1 << 62]), Err(TensorError::OutOfMemory { .. })));
    assert!(matches!(Tensor::from_strings(&[1 << 63], vec![]), Err(TensorError::ElementCount { .. })));
    assert!(matches!(Tensor::from_bytes(DType::Bool, &[1 << 63], Bytes::new()), Err(TensorError::ElementCount { .. })));
    assert!(matches!(one.reshape(&huge), Err(TensorError::ElementCount { .. })));
    // No elements, with large other dims.
    let none = Tensor::zeros(DType::Int2, &[usize::MAX, 0, usize::MAX]).unwrap();
    assert!(none.is_empty() && none.bytes().is_empty() && none.uniform().is_none());
    let view = StridedView::of(&none).slice_axis(0, usize::MAX - 1, -1, usize::MAX).unwrap();
    assert_eq!(gather(&none, &view).unwrap().shape(), none.shape());
    assert!(gather(&none, &StridedView::of(&none).permute(&[2, 0, 1]).unwrap()).unwrap().is_empty());

    let broadcast = |shape: &[usize]| gather(&one, &StridedView::of(&one).broadcast_to(shape).unwrap());
    assert!(matches!(broadcast(&huge), Err(TensorError::ElementCount { .. })));
    assert!(matches!(broadcast(&[1 << 62]), Err(TensorError::OutOfMemory { .. })));
    for (dim, stride, offset) in
        [(2, isize::MAX, 1), (2, isize::MIN, 0), (3, isize::MAX, 0), (1, 0, -1), (1, 0, isize::MIN), (usize::MAX, 1, 0)]
    {
        let view = StridedView::new(&[dim], &[stride], offset).unwrap();
        assert!(gather(&one, &view).is_err(), "{view:?}");
    }
    // The stride of an axis of one element is unused.
    assert!(gather(&one, &StridedView::new(&[1, 1], &[isize::MIN, isize::MAX], 0).unwrap()).is_ok());
}

#[test]
fn views_that_do_not_fit_are_errors() {
    let tensor = Tensor::zeros(DType::Float, &[2, 3]).unwrap();
    let view = StridedView::of(&tensor);
    for permutation in [&[0][..], &[0, 0], &[0, 2], &[0, 1, 2], &[1, usize::MAX]] {
        assert!(matches!(view.permute(permutation), Err(TensorError::Permutation { .. })));
    }
    for shape in [&[3][..], &[3, 3], &[2, 2], &[2, 0], &[2, 3, 1]] {
        assert!(matches!(view.broadcast_to(shape), Err(TensorError::Broadcast { .. })));
    }
    assert!(view.broadcast_to(&[0, 2, 3]).is_ok());
    for (axis, start, step, len) in [
        (1, 0, 1, 4),
        (1, 3, 1, 1),
        (1, 2, 1, 2),
        (1, 1, -1, 3),
        (1, 1, isize::MIN, 2),
        (1, 0, isize::MAX, 2),
        (1, 0, 2, usize::MAX),
    ] {
        assert!(matches!(view.slice_axis(axis, start, step, len), Err(TensorError::Slice { .. })));
    }
    assert!(view.slice_axis(1, usize::MAX, isize::MIN, 0).is_ok());
    assert!(view.slice_axis(1, 2, isize::MIN, 1).is_ok());
    assert_eq!(view.slice_axis(2, 0, 1, 1), Err(TensorError::Axis { axis: 2, rank: 2 }));
    assert!(view.select(0, 2).is_err() && view.select(2, 0).is_err());
    assert!(view.insert_axis(2).is_ok() && view.insert_axis(3).is_err());
    assert!(StridedView::new(&[1, 2], &[1], 0).is_err());
}

#[test]
fn elements_are_borrowed_when_aligned_and_copied_when_not() {
    let values: Vec<f32> = vec![1.0, -2.5, f32::NAN, 0.0];
    let tensor = Tensor::from_vec(&[2, 2], values.clone()).unwrap();
    assert!(matches!(tensor.elements::<f32>(), Some(std::borrow::Cow::Borrowed(_))));
    assert!(tensor.elements::<i32>().is_none());
    let mut shifted = vec![0u8];
    shifted.extend_from_slice(tensor.bytes());
    for skip in 1..=8 {
        let mut payload = vec![0u8; skip];
        payload.extend_from_slice(tensor.bytes());
        let unaligned = Tensor::from_bytes(DType::Float, &[2, 2], Bytes::from(payload).slice(skip..)).unwrap();
        let bits = |tensor: &Tensor| tensor.elements::<f32>().unwrap().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&unaligned), bits(&tensor));
        assert!(unaligned.same(&tensor));
    }
    assert_eq!(Tensor::scalar(0x0102_0304u32).bytes().as_ref(), [4, 3, 2, 1]);
    let complex = Tensor::vector(vec![Complex64([1.0, 2.0])]);
    assert_eq!(complex.bytes()[..4], 1f32.to_le_bytes());
    assert_eq!(complex.elements::<Complex64>().unwrap()[0], Complex64([1.0, 2.0]));
}

#[test]
fn integers_and_bools_read_as_i64() {
    let ints = |dtype, shape: &[usize], bytes: &'static [u8]| {
        Tensor::from_bytes(dtype, shape, Bytes::from_static(bytes)).unwrap().to_i64s()
    };
    assert_eq!(ints(DType::Int4, &[3], &[0x8f, 0xf7]), Some(vec![-1, -8, 7]));
    assert_eq!(ints(DType::Uint4, &[3], &[0x8f, 0xf7]), Some(vec![15, 8, 7]));
    assert_eq!(ints(DType::Int2, &[5], &[0b10_11_01_00, 0xff]), Some(vec![0, 1, -1, -2, -1]));
    assert_eq!(ints(DType::Uint2, &[4], &[0b10_11_01_00]), Some(vec![0, 1, 3, 2]));
    assert_eq!(ints(DType::Bool, &[3], &[0, 1, 2]), Some(vec![0, 1, 1]));
    assert_eq!(ints(DType::Float16, &[0], &[]), None);
    assert_eq!(Tensor::vector(vec![-1i8, 5]).to_i64s(), Some(vec![-1, 5]));
    assert_eq!(Tensor::vector(vec![u32::MAX]).to_i64s(), Some(vec![u32::MAX.into()]));
    assert_eq!(Tensor::vector(vec![i64::MAX as u64]).to_i64s(), Some(vec![i64::MAX]));
    assert_eq!(Tensor::vector(vec![0, 1u64 << 63]).to_i64s(), None);
    assert_eq!(Tensor::from_bools(&[2], &[true, false]).unwrap().bools(), Some(vec![true, false]));
    assert_eq!(
        Tensor::from_bytes(DType::Int4, &[3], Bytes::from_static(&[0x8f, 7])).unwrap().unpacked(),
        Some(vec![255, 248, 7])
    );
    assert_eq!(Tensor::scalar(1i8).unpacked(), None);
}

#[test]
fn reals_read_as_f64() {
    assert_eq!(Tensor::vector(vec![1.5f32, -0.0]).to_f64s(), Some(vec![1.5, -0.0]));
    assert_eq!(Tensor::vector(vec![half::f16::from_f32(0.1)]).to_f64s(), Some(vec![0.0999755859375]));
    assert_eq!(Tensor::vector(vec![half::bf16::from_f32(3.0)]).to_f64s(), Some(vec![3.0]));
    assert_eq!(Tensor::vector(vec![u64::MAX]).to_f64s(), Some(vec![2f64.powi(64)]));
    assert_eq!(Tensor::vector(vec![F8E5M2(0x3c), F8E5M2(0xfc)]).to_f64s(), Some(vec![1.0, f64::NEG_INFINITY]));
    assert_eq!(Tensor::vector(vec![F8E8M0(0)]).to_f64s(), Some(vec![2f64.powi(-127)]));
    let packed = |dtype, len, bytes: &'static [u8]| {
        Tensor::from_bytes(dtype, &[len], Bytes::from_static(bytes)).unwrap().to_f64s().unwrap()
    };
    assert_eq!(packed(DType::Float4E2M1, 3, &[0xf7, 0x01]), [6.0, -6.0, 0.5]);
    assert_eq!(packed(DType::Float6E3M2, 1, &[0x1f]), [28.0]);
    assert_eq!(packed(DType::Int4, 2, &[0x1f]), [-1.0, 1.0]);
    assert_eq!(Tensor::vector(vec![Complex64([1.0, 0.0])]).to_f64s(), None);
    assert_eq!(Tensor::from_strings(&[], vec![Bytes::new()]).unwrap().to_f64s(), None);
}

#[test]
fn string_tensors_are_compared_and_shared() {
    let strings = |all: &[&'static str]| {
        Tensor::from_strings(&[all.len()], all.iter().map(|s| Bytes::from_static(s.as_bytes())).collect()).unwrap()
    };
    let tensor = strings(&["a", "bc", ""]);
    assert_eq!((tensor.byte_len(), tensor.bytes().len(), tensor.len()), (3, 0, 3));
    assert!(tensor.same(&strings(&["a", "bc", ""])) && !tensor.same(&strings(&["a", "b", "c"])));
    assert_ne!(strings(&["ab", "c"]).hash_content(), strings(&["a", "bc"]).hash_content());
    assert_eq!(strings(&["x", "x"]).uniform().unwrap().strings(), Some(&[Bytes::from_static(b"x")][..]));
    assert!(tensor.uniform().is_none() && tensor.elements::<u8>().is_none() && tensor.codes().is_none());
    assert_eq!(Tensor::zeros(DType::String, &[2]).unwrap().strings().unwrap().len(), 2);
}

#[test]
fn blocks_outside_of_memory_are_compared_element_by_element() {
    struct Held(Vec<u8>);
    impl ByteSource for Held {
        fn size(&self) -> u64 {
            self.0.len() as u64
        }

        fn read(&self, from: u64, out: &mut [u8]) -> std::io::Result<()> {
            out.copy_from_slice(&self.0[from as usize..][..out.len()]);
            Ok(())
        }
    }
    for dtype in [DType::Uint8, DType::Float16, DType::Float, DType::Double, DType::Complex128] {
        let (width, len) = (dtype.byte_len(1).unwrap(), 300_001);
        let uniform = |wrong: Option<usize>| {
            let mut bytes: Vec<u8> = (0..width * len).map(|at| 1 + (at % width) as u8).collect();
            wrong.into_iter().for_each(|at| bytes[at] ^= 128);
            let source = SharedSource::new(Box::new(Held(bytes.clone())));
            let range = ByteRange::new(source, 0, bytes.len()).unwrap();
            let outside = Tensor::outside(dtype, &[len], range).unwrap().uniform();
            let inside = Tensor::from_bytes(dtype, &[len], bytes.into()).unwrap().uniform();
            assert_eq!(outside.as_ref().map(Tensor::bytes), inside.as_ref().map(Tensor::bytes));
            outside.is_some()
        };
        assert!(uniform(None), "{dtype}");
        for at in [0, width, 7 * width, 4096, 70_001 * width, width * len - 1] {
            assert!(!uniform(Some(at)), "{dtype} at {at}");
        }
    }
}

#[test]
fn hashes_are_the_same_on_every_machine() {
    let hashes = [
        Tensor::scalar(0f32).hash_content(),
        Tensor::vector((0..100u8).collect()).hash_content(),
        Tensor::vector((0..100i64).collect()).hash_content(),
    ];
    assert_eq!(hashes, [433049588739812972, 1047683472185114508, 13290483003378659339]);
}

/// A source that records its largest read.
struct Watched(Vec<u8>, std::sync::Arc<std::sync::atomic::AtomicUsize>);

impl ByteSource for Watched {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, from: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.1.fetch_max(out.len(), std::sync::atomic::Ordering::Relaxed);
        out.copy_from_slice(&self.0[from as usize..][..out.len()]);
        Ok(())
    }
}

#[test]
fn questions_about_values_read_blocks() {
    let count = Tensor::BLOCK * 2 + 3;
    let outside = |tensor: &Tensor| {
        let largest = std::sync::Arc::default();
        let source = SharedSource::new(Box::new(Watched(tensor.bytes().to_vec(), std::sync::Arc::clone(&largest))));
        let range = ByteRange::new(source, 0, tensor.bytes().len()).unwrap();
        (Tensor::outside(tensor.dtype(), tensor.shape(), range).unwrap(), largest)
    };
    let (floats, largest) = outside(&Tensor::vector((0..count).map(|at| at as f32).collect()));
    let mut seen = Vec::new();
    assert_eq!(
        floats.every_f64(|number| {
            seen.push(number);
            number >= 0.0
        }),
        Some(true)
    );
    assert!(seen.into_iter().eq((0..count).map(|at| at as f64)));
    assert_eq!(floats.every_f64(|number| number < (count - 1) as f64), Some(false));
    assert_eq!(floats.every_i64(|_| true), None);
    let (ints, other) = outside(&Tensor::vector((0..count).map(|at| at as i64).collect()));
    assert_eq!(ints.every_i64(|number| number >= 0), Some(true));
    assert_eq!(ints.every_i64(|number| number != count as i64 - 1), Some(false));
    for (tensor, largest) in [(floats, largest), (ints, other)] {
        let most = Tensor::BLOCK * tensor.dtype().byte_len(1).unwrap();
        assert_eq!(largest.load(std::sync::atomic::Ordering::Relaxed), most);
        assert!(!tensor.is_in_memory());
    }
}
