//! Compares known elements of results, which the index maps give, with evaluation.

use super::maps::{Random, Trial, trial};
use super::*;
use crate::ir::{Fact, Scalar};

/// Compares tracked elements with evaluation, where one element of each operand is unknown; returns the number of
/// tracked elements.
fn followed(operator: &Operator, version: i64, trial: &Trial, random: &mut Random) -> Result<usize, String> {
    let (model, _, outputs) = trial.model(operator, version, &|_, _| None);
    let given = trial.data.iter().map(|&slot| Data::Tensor(trial.tensor(slot).clone())).collect();
    let Ok(results) = evaluate_graph(&model, model.main(), given, &Budget::default(), SliceRule::Agree) else {
        return Ok(0);
    };
    let mut walk = Walk::new(Rc::new(Scope::new()), SliceRule::Agree, Budget::default());
    for (&input, &slot) in model.graph(model.main()).inputs().iter().zip(&trial.data) {
        let fact = Fact::constant(trial.tensor(slot).clone());
        let Some(mut elements) = fact.elements() else { return Ok(0) };
        let hidden = random.below(elements.len());
        elements.get_mut(hidden).into_iter().for_each(|element| *element = Scalar::Unknown);
        walk.facts.set(input, Fact { content: None, ..fact }.with_elements(elements));
    }
    walk.infer_main(&model).unwrap();
    let mut count = 0;
    for (&output, result) in outputs.iter().zip(&results) {
        let elements = walk.facts.get(output).and_then(Fact::elements).unwrap_or_default();
        let expected = result.tensor().unwrap().to_f64s().unwrap();
        for (at, (element, expected)) in elements.iter().zip(expected).enumerate() {
            let found = match element {
                Scalar::Unknown => continue,
                Scalar::Int(dim) => dim.as_const().map(|int| int as f64),
                Scalar::Float(float) => Some(*float),
                Scalar::Real { .. } => None,
            };
            if found != Some(expected) {
                return Err(format!("element {at} is {element:?} instead of {expected}"));
            }
            count += 1;
        }
    }
    Ok(count)
}

#[test]
fn contents_are_the_elements_that_evaluation_gives() {
    let mut wrong = Vec::new();
    for operator in operators().filter(|operator| operator.traits.index_map.is_some()) {
        for &version in operator.versions {
            let mut random = Random(Numbers(version as u64 + 7));
            let mut count = 0;
            for _ in 0..120 {
                let trial = trial(operator, version, &mut random).unwrap();
                match followed(operator, version, &trial, &mut random) {
                    Ok(elements) => count += elements,
                    Err(reason) => wrong.push(format!(
                        "{} {version}: {reason}, {:?}, {:?}",
                        operator.name, trial.attributes, trial.operands
                    )),
                }
            }
            if count < 30 {
                wrong.push(format!("{} {version}: {count} elements", operator.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
