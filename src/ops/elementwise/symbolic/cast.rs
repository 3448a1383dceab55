//! Conversion of elements between types, as in Cast.

use super::{Elements, limits};
use crate::dim::{Answer, Dim, Law};
use crate::ir::Scalar;
use crate::tensor::DType;

impl Elements<'_> {
    /// Converts an element of type `from` to this arithmetic's type, as in Cast.
    pub(in crate::ops::elementwise) fn cast(&self, element: &Scalar, from: DType) -> Scalar {
        let to = self.dtype;
        match element {
            Scalar::Int(dim) if to == DType::Bool => self.nonzero(dim),
            Scalar::Int(dim) if to.is_integer() => self.int(dim.clone()),
            // A `uint64` is an expression only below 2⁶³, so the sign is preserved.
            Scalar::Int(dim) => match dim.as_const() {
                Some(value) if to == DType::Double => self.rounded(value as f64),
                Some(value) if to == DType::Float => Scalar::Float(f64::from(value as f32)),
                _ => self.real(self.scope.unwrapped(dim), 1),
            },
            Scalar::Real { num, .. } if to == DType::Bool => self.nonzero(num),
            Scalar::Real { num, den } if to.is_integer() => {
                let whole = self.scope.trunc_div(num, &(*den).into());
                let bits = to.bits().unwrap_or(0).max(1);
                let most = limits(bits, true).1;
                // Values out of range are undefined: this cast does not wrap.
                if self.scope.lies_within(&whole, -most, most) {
                    return self.int(whole);
                }
                let nominal = self.scope.nominal(&whole);
                if bits < 32 || !self.within(&nominal, most) {
                    return Scalar::Unknown;
                }
                if self.scope.trusts() {
                    return self.int(nominal);
                }
                let (least, most) = limits(bits, to.is_signed_integer());
                let law = Law { name: "cast", parameter: bits as i64, reach: most };
                Scalar::Int(self.scope.assumed(law, vec![whole], Some(nominal), (Some(least), Some(most))))
            }
            Scalar::Real { num, den } => self.real(num.clone(), *den),
            Scalar::Float(value) if to == DType::Bool => Scalar::Int(Dim::constant(i64::from(*value != 0.0))),
            Scalar::Float(value) if to.is_integer() => {
                let whole = value.trunc();
                let within = whole.abs() < 9e18;
                let int = if within { self.int(Dim::constant(whole as i64)) } else { Scalar::Unknown };
                // A wrapped integer was out of range.
                if int.as_const_int() == Some(whole as i64) { int } else { Scalar::Unknown }
            }
            // A cast from `double` to 16-bit types would round twice.
            Scalar::Float(value) if from != DType::Double || !matches!(to, DType::Float16 | DType::Bfloat16) => {
                self.rounded(*value)
            }
            Scalar::Float(_) | Scalar::Unknown => Scalar::Unknown,
        }
    }

    /// Returns 1 if an integer is nonzero, else 0: `min(1, x)` for nonnegative integers.
    fn nonzero(&self, dim: &Dim) -> Scalar {
        let (zero, dim) = (Dim::constant(0), &self.scope.unwrapped(dim));
        match self.scope.eq(dim, &zero) {
            Answer::Unknown if self.not_negative(dim) => Scalar::Int(self.scope.min(dim, &Dim::constant(1))),
            answer => self.truth(match answer {
                Answer::Yes => Answer::No,
                Answer::No => Answer::Yes,
                Answer::Unknown => Answer::Unknown,
            }),
        }
    }
}
