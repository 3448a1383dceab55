//! Attention and the operators that go with it.
//!
//! | operator | versions | file |
//! | --- | --- | --- |
//! | Attention | 23; 24 adds `nonpad_kv_seqlen`; 25 adds windows | [`scaled`] (values), [`shapes`] |

mod heads;
mod mask;
mod scaled;
mod shapes;

use super::Operator;

pub(super) const OPERATORS: &[Operator] = &[Operator::new("Attention", &[23, 24, 25], shapes::infer, scaled::eval)];
