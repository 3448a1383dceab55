//! Signatures only, until the engine lands.
#![allow(unused_variables, missing_docs)]
use std::collections::BTreeSet;
use std::sync::Arc;
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Symbol(u32);
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Dim(i64);
impl Dim {
    pub fn constant(v: i64) -> Dim {
        Dim(v)
    }
    pub fn symbol(s: Symbol) -> Dim {
        todo!()
    }
    pub fn as_const(&self) -> Option<i64> {
        todo!()
    }
    pub fn is_const(&self, v: i64) -> bool {
        todo!()
    }
    pub fn as_symbol(&self) -> Option<Symbol> {
        todo!()
    }
    pub fn symbols(&self) -> BTreeSet<Symbol> {
        todo!()
    }
    pub fn term_count(&self) -> usize {
        todo!()
    }
    pub fn evaluate(&self, f: &dyn Fn(Symbol) -> Option<i64>) -> Option<i64> {
        todo!()
    }
    pub fn substitute(&self, scope: &Scope, f: &dyn Fn(Symbol) -> Option<Dim>) -> Dim {
        todo!()
    }
}
impl From<i64> for Dim {
    fn from(v: i64) -> Dim {
        Dim(v)
    }
}
impl From<Symbol> for Dim {
    fn from(v: Symbol) -> Dim {
        Dim::symbol(v)
    }
}
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    Yes,
    No,
    Unknown,
}
impl Answer {
    pub fn is_yes(self) -> bool {
        self == Answer::Yes
    }
    pub fn is_no(self) -> bool {
        self == Answer::No
    }
}
#[derive(Debug, Default)]
pub struct Scope;
macro_rules! binary { ($($n:ident)*) => { impl Scope { $(pub fn $n(&self, a: &Dim, b: &Dim) -> Dim { todo!() })* } } }
binary!(add sub mul floor_div ceil_div modulo trunc_div rem min max);
macro_rules! ask { ($($n:ident)*) => { impl Scope { $(pub fn $n(&self, a: &Dim, b: &Dim) -> Answer { todo!() })* } } }
ask!(le lt ge gt eq divides);
impl Scope {
    pub fn new() -> Scope {
        Scope
    }
    pub fn named(&self, n: &str) -> Symbol {
        todo!()
    }
    pub fn lookup(&self, n: &str) -> Option<Symbol> {
        todo!()
    }
    pub fn fresh(&self, n: &str) -> Symbol {
        todo!()
    }
    pub fn fresh_dim(&self, n: &str) -> Dim {
        todo!()
    }
    pub fn fresh_value(&self, n: &str) -> Dim {
        todo!()
    }
    pub fn fresh_within(&self, n: &str, lo: Option<i64>, hi: Option<i64>) -> Dim {
        todo!()
    }
    pub fn is_fresh(&self, s: Symbol) -> bool {
        todo!()
    }
    pub fn name(&self, s: Symbol) -> Arc<str> {
        todo!()
    }
    pub fn rename(&self, s: Symbol, n: &str) {
        todo!()
    }
    pub fn restrict(&self, s: Symbol, lo: Option<i64>, hi: Option<i64>) {
        todo!()
    }
    pub fn set_multiple(&self, s: Symbol, m: i64) {
        todo!()
    }
    pub fn assume_le(&self, a: &Dim, b: &Dim) {
        todo!()
    }
    pub fn assume_eq(&self, a: &Dim, b: &Dim) {
        todo!()
    }
    pub fn neg(&self, a: &Dim) -> Dim {
        todo!()
    }
    pub fn abs(&self, a: &Dim) -> Dim {
        todo!()
    }
    pub fn sum<'d>(&self, a: impl IntoIterator<Item = &'d Dim>) -> Dim {
        todo!()
    }
    pub fn product<'d>(&self, a: impl IntoIterator<Item = &'d Dim>) -> Dim {
        todo!()
    }
    pub fn exact_div(&self, a: &Dim, b: &Dim) -> Option<Dim> {
        todo!()
    }
    pub fn bounds(&self, a: &Dim) -> (Option<i64>, Option<i64>) {
        todo!()
    }
    pub fn format(&self, a: &Dim) -> String {
        todo!()
    }
    pub fn parse(&self, t: &str) -> Option<Dim> {
        todo!()
    }
}
