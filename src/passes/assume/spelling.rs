//! Parses the shape of an input as the tools around ONNX write it: `x:1,3,224,224`.
//!
//! Allows brackets around the dims (`x:[1,3]`, `x:(1, 3)`), `x` between numbers (`x:1x3`), and quotes around name or shape. Without a name, the shape
//! belongs to the only input.

use crate::dim::is_word;
use crate::ir::DimClaim;

/// A parsed shape, with the input's name if one is given.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Spelled<'t> {
    pub input: Option<&'t str>,
    pub shape: Vec<DimClaim>,
}

/// Parses a shape with or without a name; `None` if the text is no shape. `known` are dim names of the model, which need not be identifiers.
pub(super) fn read<'t>(text: &'t str, known: &[String]) -> Option<Spelled<'t>> {
    let text = unquoted(text);
    // Input names may contain colons ("input:0"), shapes do not.
    let (input, list) = match text.rsplit_once(':') {
        Some((input, list)) => (Some(unquoted(input)).filter(|input| !input.is_empty()), list),
        None => (None, text),
    };
    if input.is_none() && list.trim().is_empty() {
        return None;
    }
    Some(Spelled { input, shape: shape(unquoted(list), known)? })
}

fn shape(list: &str, known: &[String]) -> Option<Vec<DimClaim>> {
    let bracket = |open: char, close: char| list.strip_prefix(open).map(|rest| rest.strip_suffix(close));
    let list = match bracket('[', ']').or_else(|| bracket('(', ')')) {
        // An opened bracket must be closed.
        Some(inside) => inside?,
        None => list,
    };
    if list.trim().is_empty() {
        return Some(Vec::new());
    }
    let numeric = |part: &str| part == "?" || part.parse::<i64>().is_ok();
    if !list.contains(',') && list.contains('x') && list.split('x').all(numeric) {
        return list.split('x').map(|part| entry(part, known)).collect();
    }
    // Python writes a shape of one dim as `(1,)`.
    let list = list.trim_end().strip_suffix(',').unwrap_or(list);
    list.split(',').map(|part| entry(part, known)).collect()
}

fn entry(text: &str, known: &[String]) -> Option<DimClaim> {
    let text = unquoted(text);
    match text.parse::<i64>() {
        Ok(-1) => Some(DimClaim::Unknown),
        Ok(size) => (size >= 0).then_some(DimClaim::Value(size)),
        Err(_) if matches!(text, "?" | "None") => Some(DimClaim::Unknown),
        Err(_) => {
            let is_name = is_word(text) || known.iter().any(|name| name == text);
            is_name.then(|| DimClaim::Param(text.to_string()))
        }
    }
}

/// Removes surrounding blanks and one pair of quotes.
pub(super) fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let inside = |quote: char| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inside('"').or_else(|| inside('\'')).map_or(text, str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Option<(Option<&str>, String)> {
        let spelled = read(text, &["N+1".to_string()])?;
        let dims = spelled.shape.iter().map(DimClaim::to_string);
        Some((spelled.input, dims.collect::<Vec<_>>().join(" ")))
    }

    #[test]
    fn all_spellings_of_a_shape_mean_the_same() {
        for text in [
            "x:1,3,8",
            "x:[1,3,8]",
            "x:[1, 3, 8]",
            "x:(1,3,8)",
            "x:1x3x8",
            "x:[1x3x8]",
            "x: 1, 3, 8",
            "'x:1,3,8'",
            "\"x\":1,3,8",
            "x:\"1,3,8\"",
            " x:1,3,8,",
        ] {
            assert_eq!(told(text), Some((Some("x"), "1 3 8".to_string())), "{text}");
        }
        for text in ["1,3,8", "[1,3,8]", "1x3x8", ":1,3,8"] {
            assert_eq!(told(text), Some((None, "1 3 8".to_string())), "{text}");
        }
        assert_eq!(told("input:0:1,batch,-1,?"), Some((Some("input:0"), "1 batch ? ?".to_string())));
        assert_eq!(told("x:?x3"), Some((Some("x"), "? 3".to_string())));
        // `max` is a valid dim name.
        assert_eq!(told("x:max"), Some((Some("x"), "max".to_string())));
        assert_eq!(told("x:2,N+1"), Some((Some("x"), "2 N+1".to_string())));
        for scalar in ["x:", "x:[]", "x:()"] {
            assert_eq!(told(scalar), Some((Some("x"), String::new())), "{scalar}");
        }
    }

    #[test]
    fn invalid_shapes_are_refused() {
        for text in [
            "",
            " ",
            "x:[1,3",
            "x:1,3]",
            "x:1,,3",
            "x:-2",
            "x:N+2",
            "x:foo bar",
            "x:1x",
            "x:[[1]]",
            "[1;3]",
            ",",
            "x:1.5",
        ] {
            assert_eq!(told(text), None, "{text}");
        }
    }
}
