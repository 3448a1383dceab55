//! Conversions between element types.

use super::*;

fn cast<T: crate::tensor::Element>(x: &[T], to: DType) -> Single {
    one("Cast", 28, x).with("to", to)
}

#[test]
fn casts_between_numbers() {
    assert_eq!(cast(&[200i16, -1, 32767], DType::Int8).integers(), [-56, -1, -1]);
    assert_eq!(cast(&[-1i8], DType::Uint64).eval().unwrap()[0].elements::<u64>().unwrap().as_ref(), [u64::MAX]);
    assert_eq!(cast(&[u64::MAX], DType::Float).floats(), [18_446_744_073_709_551_616.0]);
    assert_eq!(cast(&[-1.9f32, 1.9, -0.5], DType::Int32).integers(), [-1, 1, 0]);
    assert_eq!(cast(&[255.9f32, -0.9], DType::Uint8).integers(), [255, 0]);
    for value in [256.0f32, -1.0, f32::NAN, f32::INFINITY] {
        declines(cast(&[value], DType::Uint8));
    }
    declines(cast(&[9.3e18f64], DType::Int64));
    assert_eq!(cast(&[-9.223_372_036_854_776e18], DType::Int64).integers(), [i64::MIN]);
    assert_eq!(cast(&[f32::NAN, -0.0, 1e-40], DType::Bool).integers(), [1, 0, 1]);
    assert_eq!(cast(&[65520f32, 65519.0], DType::Float16).floats(), [f64::INFINITY, 65504.0]);
    assert_eq!(cast(&[16_777_217i64], DType::Float).floats(), [16_777_216.0]);
    // Double rounding would yield 1, single rounding 1 + 2⁻¹⁰: runtimes differ.
    declines(cast(&[1.0 + 2f64.powi(-11) + 2f64.powi(-40)], DType::Float16));
    assert_eq!(cast(&[1.0 + 2f64.powi(-11)], DType::Float16).floats(), [1.0]);
    declines(cast(&[(1i64 << 31) + (1 << 23) + 1], DType::Bfloat16));
    // All bytes except 0 are true, and true is 1.
    let odd = Tensor::from_bytes(DType::Bool, &[2], vec![7, 0].into()).unwrap();
    assert_eq!(Single::new("Cast", 13).constant(odd).with("to", DType::Uint8).integers(), [1, 0]);
    declines(cast(&[Complex64([1.0, 0.0])], DType::Float));
    let long: Vec<i32> = (-1000..1000).collect();
    assert_eq!(cast(&long, DType::Int16).integers(), (-1000..1000).collect::<Vec<i64>>());
}

/// The fast truncation to few bits equals the conversion of Rust.
#[test]
fn floats_are_truncated() {
    let around = |low: i32, high: i32| -> Vec<f32> {
        let halves = (2 * low..=2 * high).step_by(7).chain(2 * low..2 * low + 9).chain(2 * high - 9..=2 * high);
        let numbers = halves.map(|half| half as f32 / 2.0).chain([-0.0, 1e-40, -1e-40]);
        let numbers = numbers.flat_map(|x| [x.next_down(), x, x.next_up()]);
        numbers.filter(|&x| x.trunc() >= low as f32 && x.trunc() <= high as f32).collect()
    };
    for (low, high, to) in
        [(-128, 127, DType::Int8), (0, 255, DType::Uint8), (-32_768, 32_767, DType::Int16), (0, 65_535, DType::Uint16)]
    {
        let numbers = around(low, high);
        let expected: Vec<i64> = numbers.iter().map(|&x| x as i64).collect();
        assert_eq!(cast(&numbers, to).integers(), expected, "{to}");
        declines(cast(&[low as f32 - 1.0], to));
        declines(cast(&[high as f32 + 1.0], to));
    }
}

#[test]
fn casts_to_and_from_few_bits() {
    assert_eq!(cast(&[8i32, -9, 17], DType::Int4).integers(), [-8, 7, 1]);
    assert_eq!(cast(&[-1i32, 18], DType::Uint4).integers(), [15, 2]);
    assert_eq!(cast(&[8f32, -9.0, 7.0], DType::Int4).integers(), [-8, 7, 7]);
    declines(cast(&[1.5f32], DType::Int4));
    declines(cast(&[f32::NAN], DType::Uint2));
    let codes = Tensor::from_bytes(DType::Int2, &[5], vec![0b1101_1000, 0b10].into()).unwrap();
    assert_eq!(Single::new("Cast", 25).constant(codes).with("to", DType::Float).floats(), [0.0, -2.0, 1.0, -1.0, -2.0]);
    assert_eq!(cast(&[500f32, -1e9, 0.05], DType::Float8E4M3FN).floats(), [448.0, -448.0, 0.05078125]);
    let unsaturated = cast(&[500f32, -1e9], DType::Float8E5M2).with("saturate", 0).floats();
    assert_eq!(unsaturated, [512.0, f64::NEG_INFINITY]);
    assert_eq!(cast(&[5f32, 5.1, -1e9, 0.25], DType::Float4E2M1).floats(), [4.0, 6.0, -6.0, 0.0]);
    // The conformance tests of Cast convert NaN to −0.
    assert_eq!(bits(&cast(&[f32::NAN], DType::Float4E2M1).floats()), bits(&[-0.0]));
    declines(cast(&[-f32::NAN], DType::Float4E2M1));
    let powers =
        |mode: &'static str| cast(&[1.5f32, 2.0, 5.0], DType::Float8E8M0).with_str("round_mode", mode).floats();
    assert_eq!(powers("up"), [2.0, 2.0, 8.0]);
    assert_eq!(powers("down"), [1.0, 2.0, 4.0]);
    assert_eq!(powers("nearest"), [2.0, 2.0, 4.0]);
    declines(cast(&[-1f32], DType::Float8E8M0));
    declines(cast(&[2f64 + 2f64.powi(-40)], DType::Float8E8M0));
    assert_eq!(cast(&[F8E8M0(130), F8E8M0(127)], DType::Int32).integers(), [8, 1]);
    assert_eq!(cast(&[F8E4M3Fn(0x38), F8E4M3Fn(0)], DType::Bool).integers(), [1, 0]);
    declines(cast(&[F8E4M3Fn(0x80)], DType::Bool));
    assert_eq!(cast(&[1.75f32, 60000.0], DType::Float6E3M2).floats(), [1.75, 28.0]);
}

#[test]
fn casts_of_strings() {
    let texts = |texts: &[&'static str]| {
        Tensor::from_strings(&[texts.len()], texts.iter().map(|&text| text.into()).collect()).unwrap()
    };
    let parse = |text: &'static str, to: DType| Single::new("Cast", 13).constant(texts(&[text])).with("to", to);
    for (text, value) in [
        ("2.5", 2.5),
        ("-3e2", -300.0),
        ("+INF", f64::INFINITY),
        ("-inf", f64::NEG_INFINITY),
        (".5", 0.5),
        ("1E3", 1000.0),
    ] {
        for to in [DType::Float, DType::Double, DType::Float16] {
            assert_eq!(parse(text, to).floats(), [value], "{text}");
        }
    }
    assert!(parse("NaN", DType::Float).floats()[0].is_nan());
    assert_eq!(parse("-20", DType::Int8).integers(), [-20]);
    for (text, to) in [
        ("2.5", DType::Int32),
        ("300", DType::Uint8),
        (" 1", DType::Float),
        ("infinity", DType::Float),
        ("1e400", DType::Double),
        ("1e39", DType::Float),
        ("1", DType::Bool),
        ("", DType::Float),
        ("abc", DType::Double),
    ] {
        declines(parse(text, to));
    }
    let written = cast(&[-5i8, 65], DType::String).eval().unwrap();
    assert_eq!(written[0].strings().unwrap(), ["-5", "65"]);
    let written = cast(&[0.47892547f32, -1.5], DType::String).eval().unwrap();
    assert_eq!(written[0].strings().unwrap(), ["0.47892547", "-1.5"]);
    for value in [1.0f32, 1e-5, 1.5e9, f32::NAN, f32::INFINITY, 0.0] {
        declines(cast(&[value], DType::String));
    }
    declines(cast(&[1f64 / 3.0], DType::String));
    // With eight digits, the number is 0.60240531.
    declines(cast(&[0.6024053f32], DType::String));
    declines(cast(&[0.1f64], DType::String));
    declines(cast(&[crate::tensor::Bool(1)], DType::String));
}

#[test]
fn cast_types() {
    let named = Single::new("Cast", 1).input(DType::Float, "N").with_str("to", "INT64");
    assert_eq!(named.infer(), ["int64[N]"]);
    let unknown = Single::new("Cast", 1).input(DType::Float, "N").with_str("to", "INT63");
    assert!(unknown.infer()[0].starts_with("invalid"));
    assert!(Single::new("Cast", 13).input(DType::Float, "N").infer()[0].starts_with("invalid"));
    assert_eq!(Single::new("Cast", 13).unranked(DType::Float).with("to", DType::Bool).infer(), ["bool"]);
    let like = Single::new("CastLike", 19).input(DType::Float, "N 2").input(DType::Int8, "?");
    assert_eq!(like.infer(), ["int8[N, 2]"]);
    let like = one("CastLike", 15, &[1.5f32, -1.5]).values(&[0], &[] as &[i64]);
    assert_eq!(like.integers(), [1, -1]);
}
