//! Axes that are turned, run together or taken apart, and turned back.

#[macro_use]
mod support;

fuses! {
    channels_moved_to_the_front_and_back: "transpose-around-reshape", 13, "g (float[n,h,w,6] x) => (y) <int64[3] flat = {0,6,-1}> {
        t = Transpose <perm = [0, 3, 1, 2]> (x)  r = Reshape (t, flat)  y = Transpose <perm = [0, 2, 1]> (r) }";
    channels_moved_to_the_front_and_apart: "transpose-around-reshape", 13, "g (float[n,h,w,6] x) => (y) <int64[4] flat = {0,2,3,-1}> {
        t = Transpose <perm = [0, 3, 1, 2]> (x)  r = Reshape (t, flat)  y = Transpose <perm = [0, 3, 2, 1]> (r) }";
    rows_taken_apart: "transpose-around-reshape", 13, "g (float[12,c] x) => (y) <int64[3] apart = {0,3,4}> {
        t = Transpose <perm = [1, 0]> (x)  r = Reshape (t, apart)  y = Transpose <perm = [1, 2, 0]> (r) }";
    rows_taken_apart_that_are_read_twice: "transpose-around-reshape", 13, "g (float[12,c] x) => (y, z) <int64[3] apart = {0,3,4}> {
        t = Transpose <perm = [1, 0]> (x)  r = Reshape (t, apart)  y = Transpose <perm = [1, 2, 0]> (r)  z = Relu (r) }";
}

keeps! {
    axes_that_did_not_stand_together: "transpose-around-reshape", 13, "g (float[n,2,3,4] x) => (y) <int64[3] flat = {0,8,3}> {
        t = Transpose <perm = [0, 1, 3, 2]> (x)  r = Reshape (t, flat)  y = Transpose <perm = [0, 2, 1]> (r) }";
    axes_in_another_order: "transpose-around-reshape", 13, "g (float[n,2,3,4] x) => (y) <int64[3] flat = {0,4,6}> {
        t = Transpose <perm = [0, 3, 2, 1]> (x)  r = Reshape (t, flat)  y = Transpose <perm = [0, 2, 1]> (r) }";
    turned_rows_that_are_read_twice: "transpose-around-reshape", 13, "g (float[n,h,w,6] x) => (y, z) <int64[4] flat = {0,2,3,-1}> {
        t = Transpose <perm = [0, 3, 1, 2]> (x)  r = Reshape (t, flat)  y = Transpose <perm = [0, 3, 2, 1]> (r)  z = Relu (t) }";
    groups_that_overlap: "transpose-around-reshape", 13, "g (float[n,4,6] x) => (y) <int64[3] other = {0,8,3}> {
        t = Transpose <perm = [0, 2, 1]> (x)  r = Reshape (t, other)  y = Transpose <perm = [0, 2, 1]> (r) }";
}
