//! The written form of sizes: short, or with a name for a long expression.

use onnx_slice_fold::ir::{Definition, Model, text};
use onnx_slice_fold::ops::EventKind;
use onnx_slice_fold::{Options, Report};

use crate::support::{folded_unrun, shape};

fn inferred(source: &str) -> (Model, Report) {
    folded_unrun(source, &Options::new().fold(false))
}

/// The positions of three grids, concatenated, twice.
const GRIDS: &str = r#"<ir_version: 8, opset_import: ["" : 17]>
    agraph (float[1, 3, height, width] x, float[1, 3, length, breadth] y, float[1, 3, upwards, sideways] z) => (float[OUT] all, twice)
    <int64[3] rows = {1, 3, -1}, int64[2] zero = {0, 0}, int64[2] end = {9223372036854775807, 9223372036854775807}, int64[2] axes = {2, 3},
     int64[2] two = {2, 2}, int64[2] four = {4, 4}, int64[2] eight = {8, 8}> {
        a = Slice (x, zero, end, axes, two)
        b = Slice (y, zero, end, axes, four)
        c = Slice (z, zero, end, axes, eight)
        ra = Reshape (a, rows)
        rb = Reshape (b, rows)
        rc = Reshape (c, rows)
        all = Concat <axis = 2> (ra, rb, rc)
        twice = Relu (all)
    }"#;

#[test]
fn one_name_replaces_a_long_size() {
    let (model, report) = inferred(&GRIDS.replace("OUT", "?, ?, ?"));
    assert_eq!(shape(&model, "ra"), "1,3,floor((width + 1)/2)*floor((height + 1)/2)");
    assert_eq!((shape(&model, "all"), shape(&model, "twice")), ("1,3,size_1".to_string(), "1,3,size_1".to_string()));
    let notes: Vec<_> = report.notes.iter().filter(|note| note.kind == EventKind::NamedSize).collect();
    let [note] = notes.as_slice() else { panic!("{notes:?}") };
    let told = note.to_string();
    let sum = told.strip_prefix("named: size 'size_1': stands for ").unwrap_or_else(|| panic!("{told}"));
    let mut places: Vec<&str> = sum.split(" + floor").collect();
    assert_eq!(places.len(), 3, "{told}");
    places.retain(|place| place.contains("height") || place.contains("breadth") || place.contains("upwards"));
    assert_eq!(places.len(), 3, "{told}");
    // A second run finds the name in the file and keeps it.
    let (again, _) = inferred(&text::print(&model));
    assert_eq!(text::print(&again), text::print(&model));
}

#[test]
fn an_authors_name_replaces_a_long_size() {
    let (model, _) = inferred(&GRIDS.replace("OUT", "1, 3, cells"));
    assert_eq!((shape(&model, "all"), shape(&model, "twice")), ("1,3,cells".to_string(), "1,3,cells".to_string()));
}

#[test]
fn a_long_size_has_a_unique_name() {
    let source = GRIDS.replace("OUT", "1, 3, ?").replace("length", "size_1");
    let (model, _) = inferred(&source);
    assert_eq!(shape(&model, "all"), "1,3,size_2");
}

#[test]
fn anonymous_sizes_of_inputs_get_names() {
    let (model, _) = inferred(
        r#"<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[?, n, 4] x, float[?] y) => (float[total, n, 4] xx, z) {
            xx = Concat <axis = 0> (x, x)
            z = Concat <axis = 0> (y, y)
        }"#,
    );
    assert_eq!((shape(&model, "y"), shape(&model, "z")), ("y_dim_0".to_string(), "2*y_dim_0".to_string()));
    assert_eq!((shape(&model, "x"), shape(&model, "xx")), ("x_dim_0,n,4".to_string(), "total,n,4".to_string()));
    let inputs = model.graph(model.main()).inputs();
    assert!(inputs.iter().all(|&input| matches!(model.value(input).definition(), Definition::Input(_))));
    let (again, _) = inferred(&text::print(&model));
    assert_eq!(text::print(&again), text::print(&model));
}
