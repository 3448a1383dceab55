use prost::Message as _;

use super::*;
use crate::onnx::proto::*;
use crate::onnx::{DecodeError, decode};

fn varint(mut n: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while n >= 0x80 {
        bytes.push((n & 0x7f) as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8);
    bytes
}

fn tag(field: u32, wire: u32) -> Vec<u8> {
    varint(u64::from(field) << 3 | u64::from(wire))
}

/// Encodes a length-delimited field.
fn ld(field: u32, inner: &[u8]) -> Vec<u8> {
    [tag(field, 2), varint(inner.len() as u64), inner.to_vec()].concat()
}

/// Encodes a varint field.
fn vf(field: u32, n: u64) -> Vec<u8> {
    [tag(field, 0), varint(n)].concat()
}

fn walk_of(bytes: impl Into<Bytes>) -> Result<UnknownFields, WireError> {
    walk(&bytes.into(), &Limits::default())
}

fn refused(bytes: impl Into<Bytes>) -> String {
    walk_of(bytes).map(drop).unwrap_err().to_string()
}

fn path(steps: &[(u32, u32)]) -> Vec<Descent> {
    steps.iter().map(|&(field, index)| Descent { field, index }).collect()
}

fn found(unknown: &UnknownFields, steps: &[(u32, u32)]) -> Vec<u8> {
    unknown.at(&path(steps)).concat()
}

/// Returns a model with fields of every kind.
pub(in crate::onnx) fn sample() -> ModelProto {
    use tensor_shape_proto::{Dimension, dimension};
    let dim = |value| Dimension { value: Some(value), denotation: None };
    let shape = TensorShapeProto {
        dim: vec![
            dim(dimension::Value::DimParam("N".into())),
            dim(dimension::Value::DimValue(3)),
            Dimension::default(),
        ],
    };
    let tensor_type = type_proto::Value::TensorType(type_proto::Tensor { elem_type: Some(1), shape: Some(shape) });
    let sequence = type_proto::Value::SequenceType(Box::new(type_proto::Sequence {
        elem_type: Some(Box::new(TypeProto { value: Some(tensor_type.clone()), denotation: None })),
    }));
    let value = |name: &str, value| ValueInfoProto {
        name: Some(name.into()),
        r#type: Some(TypeProto { value: Some(value), denotation: None }),
        ..Default::default()
    };
    let tensor = TensorProto {
        dims: vec![2, 300],
        data_type: Some(1),
        float_data: vec![1.0, -2.5],
        int32_data: vec![-1, 5],
        int64_data: vec![1 << 40, -1],
        double_data: vec![0.5],
        uint64_data: vec![u64::MAX],
        string_data: vec![Bytes::from_static(b"\xff\0"), Bytes::new()],
        raw_data: Some(Bytes::from_static(&[7; 24])),
        name: Some("w".into()),
        ..Default::default()
    };
    let branch = GraphProto { name: Some("branch".into()), initializer: vec![tensor.clone()], ..Default::default() };
    let sparse =
        SparseTensorProto { values: Some(Box::new(tensor.clone())), indices: Some(Box::default()), dims: vec![9] };
    let node = NodeProto {
        input: vec!["x".into(), String::new()],
        output: vec!["y".into()],
        op_type: Some("If".into()),
        attribute: vec![
            AttributeProto {
                name: Some("then_branch".into()),
                g: Some(Box::new(branch)),
                r#type: Some(5),
                ..Default::default()
            },
            AttributeProto {
                name: Some("all".into()),
                f: Some(1.5),
                i: Some(-7),
                s: Some(Bytes::from_static(b"s")),
                floats: vec![1.0, 2.0],
                ints: vec![1, -1],
                strings: vec![Bytes::from_static(b"a")],
                sparse_tensor: Some(Box::new(sparse)),
                r#type: Some(99),
                ..Default::default()
            },
        ],
        ..Default::default()
    };
    ModelProto {
        ir_version: Some(14),
        graph: Some(GraphProto {
            node: vec![node],
            name: Some("g".into()),
            input: vec![value("x", tensor_type)],
            output: vec![value("y", sequence)],
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// prost must decode bytes that the walk accepts, and reject bytes that the walk calls malformed.
fn agree(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    match (walk(&bytes, &Limits::default()), ModelProto::decode(bytes.clone())) {
        (Ok(_), Err(error)) => panic!("prost refuses what passed: {error}\n{bytes:?}"),
        (Err(error), Ok(_)) => panic!("prost reads what was refused: {error}\n{bytes:?}"),
        _ => {}
    }
}

#[test]
fn a_model_cut_anywhere_is_refused_or_shorter() {
    let bytes = sample().encode_to_vec();
    walk_of(bytes.clone()).unwrap();
    for len in 0..bytes.len() {
        agree(&bytes[..len]);
    }
    // The graph is the last field, so it is incomplete without the last byte.
    assert_eq!(refused(bytes[..bytes.len() - 1].to_vec()), format!("model: field 7 (graph) is truncated at byte 2"));
}

#[test]
fn the_walk_and_prost_agree_on_every_changed_byte() {
    let bytes = sample().encode_to_vec();
    for at in 0..bytes.len() {
        for value in [0, 1, 3, 4, 7, 0x0b, 0x0c, 0x7f, 0x80, 0xff, bytes[at] ^ 1, bytes[at] ^ 2, bytes[at] ^ 8] {
            let mut changed = bytes.clone();
            changed[at] = value;
            agree(&changed);
        }
        let mut shorter = bytes.clone();
        shorter.remove(at);
        agree(&shorter);
    }
}

proptest::proptest! {
    #[test]
    fn the_walk_and_prost_agree_on_anything(bytes in proptest::collection::vec(
        // Generates mostly bytes that are tags or small lengths.
        proptest::prop_oneof![0u8..=0x1f, proptest::sample::select(vec![0x0a, 0x2a, 0x32, 0x3a, 0x12, 0x22]), 0u8..],
        0..200,
    )) {
        agree(&bytes);
    }
}

#[test]
fn errors_name_the_message_and_the_byte() {
    let tensor = [vf(2, 1), ld(8, b"w"), tag(9, 2), varint(100), vec![1, 2, 3]].concat();
    let attribute = [ld(1, b"value"), ld(5, &tensor)].concat();
    let node = |attribute: &[u8]| [ld(4, b"Constant"), ld(5, attribute)].concat();
    let graph = [ld(1, &node(b"")), ld(1, &node(&attribute))].concat();
    let model = ld(7, &graph);
    let at = model.len() - 5;
    assert_eq!(refused(model), format!("graph.node[1].attribute[0].t: field 9 (raw_data) is truncated at byte {at}"));
    assert_eq!(refused(vec![0]), "model: the tag of a field is invalid at byte 0");
    assert_eq!(refused(vf(7, 1)), "model: field 7 (graph) has wire type 0, which does not fit its type at byte 0");
    assert_eq!(refused(ld(7, &ld(2, b"\xff"))), "graph: field 2 (name) is not UTF-8 at byte 2");
    assert_eq!(refused(tag(100, 4)), "model: group 100 ends without a start at byte 0");
    assert_eq!(refused([tag(100, 3), vf(1, 1)].concat()), "model: group 100 does not end at byte 2");
    assert_eq!(refused([tag(100, 3), tag(101, 4)].concat()), "model: group 101 ends without a start at byte 2");
    assert_eq!(
        refused([vec![0x08], vec![0x80; 10], vec![1]].concat()),
        "model: field 1 (ir_version) has a varint of more than 64 bits at byte 0"
    );
    assert_eq!(
        refused([vec![0x08], vec![0xff; 9], vec![0x7f]].concat()),
        "model: field 1 (ir_version) has a varint of more than 64 bits at byte 0"
    );
    assert_eq!(
        refused(ld(7, &ld(5, &ld(4, &[0; 6])))),
        "graph.initializer[0]: field 4 (float_data) packs elements of 4 bytes into 6 bytes at byte 4"
    );
    // A field number of more than 29 bits, and an undefined wire type.
    assert_eq!(refused(varint(1 << 32)), "model: the tag of a field is invalid at byte 0");
    assert_eq!(refused(vec![0x1e, 0]), "model: the tag of a field is invalid at byte 0");
    assert_eq!(refused(vec![0x88]), "model: the tag of a field is truncated at byte 0");
    // A length that overflows.
    let wraps = [tag(7, 2), varint(u64::MAX)].concat();
    assert_eq!(refused(wraps), "model: field 7 (graph) is truncated at byte 0");
}

#[test]
fn every_valid_protobuf_encoding_is_accepted() {
    // Varints longer than needed, packed and unpacked elements mixed, an unknown number of any size.
    walk_of([vec![0x08, 0x88, 0x80, 0x80, 0x00], vf(536_870_911, 1)].concat()).unwrap();
    let mixed = ld(5, &[vf(1, 2), ld(1, &[3, 4]), ld(9, &[])].concat());
    let (model, _) = decode(&ld(7, &mixed).into(), &Limits::default()).unwrap();
    assert_eq!(model.graph.unwrap().initializer[0].dims, [2, 3, 4]);
}

#[test]
fn nesting_stops_where_prost_does() {
    // `graph.input[0].type`, and two more levels for each sequence.
    let nested = |sequences: usize| {
        let mut inner = vec![];
        for _ in 0..sequences {
            inner = ld(4, &ld(1, &inner));
        }
        ld(7, &ld(11, &ld(2, &inner)))
    };
    walk_of(nested(48)).unwrap();
    agree(&nested(48));
    agree(&nested(49));
    assert!(refused(nested(49)).contains("nested deeper than 100 levels"));
    assert!(refused(nested(20_000)).contains("nested deeper than 100 levels"));
    let groups = |deep: usize| [tag(100, 3).repeat(deep), tag(100, 4).repeat(deep)].concat();
    walk_of(groups(100)).unwrap();
    agree(&groups(100));
    agree(&groups(101));
    assert_eq!(refused(groups(200_000)), "model: nested deeper than 100 levels at byte 200");
    // Walk and prost could differ for unknown fields at the innermost level.
    for deep in [96, 97, 98, 99, 100] {
        let inside = [tag(100, 3).repeat(deep), vf(101, 1), tag(100, 4).repeat(deep)].concat();
        agree(&ld(7, &inside));
        agree(&inside);
    }
}

#[test]
fn memory_out_of_proportion_is_refused_by_name() {
    let nodes = ld(7, &ld(1, b"").repeat(2_000_000));
    let error = refused(nodes);
    assert!(error.starts_with("graph: field 1 (node): decoding needs more than "), "{error}");
    assert!(error.contains("for a file of 4000005 bytes"), "{error}");
    let attributes = ld(7, &ld(1, &ld(5, b"").repeat(1_000_000)));
    assert!(refused(attributes).starts_with("graph.node[0]: field 5 (attribute)"));
    let names = ld(7, &ld(1, &ld(1, b"").repeat(300_000)));
    walk(&names.clone().into(), &Limits::default()).map(drop).unwrap();
    let tight = Limits { memory: 1 << 20, memory_per_byte: 8, ..Limits::default() };
    assert!(walk(&names.into(), &tight).unwrap_err().to_string().contains("field 1 (input)"));
    // Unknown fields that are not adjacent cost a path and a slice each.
    let unknown = ld(7, &[vf(3, 0), ld(10, b"")].concat().repeat(100_000));
    assert!(walk(&unknown.into(), &tight).map(drop).unwrap_err().to_string().contains("field 0 (unknown)"));
}

#[test]
fn a_dense_real_model_is_not_refused() {
    // The smallest nodes of a real graph: external weights, names of four letters, one attribute per node.
    let mut graph = Vec::new();
    for n in 0..30_000u32 {
        let name = |n: u32| format!("{n:04x}");
        let attribute = [ld(1, b"to"), vf(3, 1), vf(20, 2)].concat();
        let node = [ld(1, name(n).as_bytes()), ld(2, name(n + 1).as_bytes()), ld(4, b"Cast"), ld(5, &attribute)];
        graph.extend(ld(1, &node.concat()));
    }
    let model: Bytes = ld(7, &graph).into();
    let proportion_only = Limits { memory: 0, ..Limits::default() };
    let (decoded, _) = decode(&model, &proportion_only).unwrap();
    assert_eq!(decoded.graph.unwrap().node.len(), 30_000);
}

#[test]
fn unknown_fields_are_found_at_their_messages() {
    let group = [tag(60, 3), vf(1, 9), tag(60, 4)].concat();
    let tensor = [vf(200, 5), vf(2, 1), ld(201, b"raw")].concat();
    let node = [ld(4, b"Relu"), group.clone()].concat();
    let graph = [ld(1, &ld(4, b"Abs")), ld(1, &node), ld(5, &tensor), ld(99, b"in graph")].concat();
    let model = [vf(1, 8), ld(1000, b"in model"), ld(7, &graph), vf(1001, 7)].concat();
    let unknown = walk_of(model).unwrap();
    assert_eq!(found(&unknown, &[]), [ld(1000, b"in model"), vf(1001, 7)].concat());
    assert_eq!(found(&unknown, &[(7, 0)]), ld(99, b"in graph"));
    assert_eq!(found(&unknown, &[(7, 0), (1, 1)]), group);
    assert_eq!(found(&unknown, &[(7, 0), (1, 0)]), b"");
    assert_eq!(found(&unknown, &[(7, 0), (5, 0)]), [vf(200, 5), ld(201, b"raw")].concat());
    assert_eq!(unknown.iter().count(), 4);
    assert!(walk_of(sample().encode_to_vec()).unwrap().is_empty());
}

#[test]
fn neighbours_stay_one_slice_of_the_file() {
    let model: Bytes = [ld(1000, &[1; 100]), vf(1001, 1), vf(1, 8), vf(1002, 1)].concat().into();
    let unknown = walk(&model, &Limits::default()).unwrap();
    let pieces = unknown.at(&[]);
    assert_eq!(pieces.iter().map(Bytes::len).collect::<Vec<_>>(), [106, 3]);
    assert_eq!(pieces[0].as_ptr(), model.as_ptr());
}

#[test]
fn messages_in_several_parts_are_one() {
    let node = |unknown: u64| ld(1, &vf(50, unknown));
    // Two graphs merge: the third node is the first of the second part. The types of one value merge, too.
    let dim = |unknown: u64| ld(1, &vf(50, unknown));
    let ty = |dims: &[u8]| ld(2, &ld(1, &ld(2, dims)));
    let value = ld(11, &[ty(&dim(1)), ty(&[dim(2), dim(3)].concat())].concat());
    let model: Bytes =
        [ld(7, &[node(1), node(2)].concat()), vf(1, 8), ld(7, &[node(3), value].concat())].concat().into();
    let (decoded, unknown) = decode(&model, &Limits::default()).unwrap();
    assert_eq!(decoded.graph.unwrap().node.len(), 3);
    assert_eq!(found(&unknown, &[(7, 0), (1, 2)]), vf(50, 3));
    let shape = |dim: u32| [(7, 0), (11, 0), (2, 0), (1, 0), (2, 0), (1, dim)];
    assert_eq!(found(&unknown, &shape(0)), vf(50, 1));
    assert_eq!(found(&unknown, &shape(1)), vf(50, 2));
    assert_eq!(found(&unknown, &shape(2)), vf(50, 3));
}

#[test]
fn the_last_oneof_field_replaces_the_others() {
    let tensor = |unknown: u64| ld(1, &ld(2, &ld(1, &vf(50, unknown))));
    let sequence = ld(4, &vf(51, 9));
    let value = ld(2, &[tensor(1), sequence, tensor(2)].concat());
    let (model, unknown) = decode(&ld(7, &ld(11, &value)).into(), &Limits::default()).unwrap();
    let Some(type_proto::Value::TensorType(tensor)) =
        model.graph.unwrap().input[0].r#type.as_ref().unwrap().value.clone()
    else {
        panic!("not a tensor")
    };
    assert_eq!(tensor.shape.unwrap().dim.len(), 1);
    assert_eq!(found(&unknown, &[(7, 0), (11, 0), (2, 0), (1, 0), (2, 0), (1, 0)]), vf(50, 2));
    assert_eq!(unknown.iter().count(), 1);
}

#[test]
fn payloads_stay_slices_of_the_file() {
    let file: Bytes = sample().encode_to_vec().into();
    let (model, _) = decode(&file, &Limits::default()).unwrap();
    assert_eq!(model, sample());
    let graph = model.graph.unwrap();
    let inner = &graph.node[0].attribute[0].g.as_ref().unwrap().initializer[0];
    for payload in [inner.raw_data.as_ref().unwrap(), &inner.string_data[0]] {
        assert!(file.as_ptr_range().contains(&payload.as_ptr()));
    }
}

#[test]
fn a_file_of_another_format_is_named() {
    let error = |bytes: &[u8]| decode(&Bytes::copy_from_slice(bytes), &Limits::default()).unwrap_err().to_string();
    assert!(error(b"PK\x03\x04").starts_with("this is a ZIP archive, not an ONNX model; unpack it"));
    assert!(matches!(decode(&Bytes::new(), &Limits::default()), Err(DecodeError::Empty)));
}

#[test]
fn values_no_enum_names_are_kept() {
    let attribute = [vf(20, 77)].concat();
    let tensor = [vf(2, 4000), vf(14, 9)].concat();
    let model = ld(7, &[ld(1, &ld(5, &attribute)), ld(5, &tensor)].concat());
    let (model, unknown) = decode(&model.into(), &Limits::default()).unwrap();
    let graph = model.graph.unwrap();
    assert_eq!(graph.node[0].attribute[0].r#type, Some(77));
    assert_eq!(graph.initializer[0].data_type, Some(4000));
    assert_eq!(graph.initializer[0].data_location, Some(9));
    assert!(unknown.is_empty());
}
