//! Activation functions of recurrent networks.
//!
//! | function | `f(x)` | default α, β |
//! | --- | --- | --- |
//! | Relu | `max(0, x)` | |
//! | Tanh, Sigmoid, Softsign, Softplus | | |
//! | Affine | `αx + β` | none |
//! | LeakyRelu | `x`; for `x < 0`, `αx` | 0.01 |
//! | ThresholdedRelu | `x`; for `x < α`, 0 | 1 |
//! | ScaledTanh | `α tanh(βx)` | none |
//! | HardSigmoid | `αx + β`, clipped to 0 and 1 | 0.2, 0.5 |
//! | Elu | `x`; for `x < 0`, `α(eˣ − 1)` | 1 |

use crate::ops::{Decline, EvalCx};

/// A function with its parameters.
#[derive(Clone, Copy)]
pub(super) struct Activation {
    of: fn(f64, f64, f64) -> f64,
    alpha: f64,
    beta: f64,
}

impl Activation {
    pub fn apply(self, x: f64) -> f64 {
        (self.of)(x, self.alpha, self.beta)
    }
}

/// A parameter: not used, required, or with a default.
type Parameter = Option<Option<f64>>;

fn named(name: &str) -> Option<(fn(f64, f64, f64) -> f64, Parameter, Parameter)> {
    const REQUIRED: Parameter = Some(None);
    Some(match name {
        "relu" => (|x, _, _| if x < 0.0 { 0.0 } else { x }, None, None),
        "tanh" => (|x, _, _| libm::tanh(x), None, None),
        "sigmoid" => (|x, _, _| 1.0 / (1.0 + libm::exp(-x)), None, None),
        "softsign" => (|x, _, _| x / (1.0 + x.abs()), None, None),
        "softplus" => (|x, _, _| x.max(0.0) + libm::log1p(libm::exp(-x.abs())), None, None),
        "affine" => (|x, alpha, beta| alpha * x + beta, REQUIRED, REQUIRED),
        "leakyrelu" => (|x, alpha, _| if x < 0.0 { alpha * x } else { x }, Some(Some(0.01)), None),
        "thresholdedrelu" => (|x, alpha, _| if x < alpha { 0.0 } else { x }, Some(Some(1.0)), None),
        "scaledtanh" => (|x, alpha, beta| alpha * libm::tanh(beta * x), REQUIRED, REQUIRED),
        "hardsigmoid" => (|x, alpha, beta| (alpha * x + beta).clamp(0.0, 1.0), Some(Some(0.2)), Some(Some(0.5))),
        "elu" => (|x, alpha, _| if x < 0.0 { alpha * libm::expm1(x) } else { x }, Some(Some(1.0)), None),
        _ => return None,
    })
}

/// Returns the functions of all directions, the length of `defaults` per direction.
///
/// The lists of parameters apply, in order, to the functions that use one. Lists of other lengths are rejected, because runtimes
/// interpret them differently.
///
/// # Errors
/// Unknown functions, too few of them, or parameters that do not match them.
pub(super) fn activations(cx: &EvalCx<'_>, directions: usize, defaults: &[&str]) -> Result<Vec<Activation>, Decline> {
    let wanted = directions * defaults.len();
    let names: Vec<String> = match cx.attr_strings("activations")? {
        None | Some([]) => defaults.iter().cycle().take(wanted).map(|name| name.to_ascii_lowercase()).collect(),
        Some(names) => names.iter().map(|name| String::from_utf8_lossy(name).to_ascii_lowercase()).collect(),
    };
    if names.len() != wanted {
        return Err(Decline::invalid(format!(
            "attribute 'activations' lists {} functions instead of {wanted}",
            names.len()
        )));
    }
    let functions = names
        .iter()
        .map(|name| {
            named(name).ok_or_else(|| {
                Decline::invalid(format!("attribute 'activations' contains the unknown function '{name}'"))
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let spread = |name: &str, taken: Vec<Parameter>| -> Result<Vec<f64>, Decline> {
        let given = cx.attr_floats(name)?.filter(|given| !given.is_empty());
        let takers = taken.iter().flatten().count();
        if given.is_some_and(|given| given.len() != takers) {
            return Err(Decline::unsupported(format!(
                "attribute '{name}' must have one number for each of the {takers} functions that use the attribute"
            )));
        }
        let mut given = given.map(|given| given.iter());
        taken
            .into_iter()
            .map(|parameter| {
                let Some(default) = parameter else { return Ok(0.0) };
                let said = given.as_mut().and_then(Iterator::next).map(|&value| f64::from(value));
                said.or(default).ok_or_else(|| {
                    Decline::unsupported(format!(
                        "attribute '{name}' is missing, and the activation function has no default for this attribute"
                    ))
                })
            })
            .collect()
    };
    let alphas = spread("activation_alpha", functions.iter().map(|function| function.1).collect())?;
    let betas = spread("activation_beta", functions.iter().map(|function| function.2).collect())?;
    let parameters = alphas.into_iter().zip(betas);
    Ok(functions.iter().zip(parameters).map(|(&(of, ..), (alpha, beta))| Activation { of, alpha, beta }).collect())
}
