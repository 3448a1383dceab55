//! Parsers of numbers that users write: bytes, percentages and operator sets.

/// Parses a number of bytes: `4096`, `16K`, `1MB`, `2GiB`. Units are powers of 1024, as in onnxsim and polygraphy.
///
/// # Errors
/// What is expected instead.
pub fn bytes(text: &str) -> Result<usize, String> {
    let expected = || "expected a number of bytes, such as 4096, 64K or 1MB".to_string();
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits).ok_or_else(expected)?;
    let shift = match unit.to_ascii_uppercase().trim() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        _ => return Err(expected()),
    };
    let number: usize = number.parse().map_err(|_| expected())?;
    number.checked_mul(1 << shift).ok_or_else(|| "the number of bytes is too large".to_string())
}

/// Parses the version of an operator set of the default domain: a number, or `latest`.
///
/// # Errors
/// What is expected instead.
pub fn opset(text: &str) -> Result<i64, String> {
    let newest = crate::newest_opset("").unwrap_or_default();
    match text.trim() {
        "latest" => Ok(newest),
        number => number.parse().map_err(|_| format!("expected a number from 1 to {newest}, or 'latest'")),
    }
}

/// Parses a percentage that is not negative.
///
/// # Errors
/// What is expected instead.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').parse::<f64>().ok();
    let number = number.filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "expected a percentage of at least 0, such as 10".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_1024() {
        for (text, expected) in
            [("0", 0), ("4096", 4096), ("16K", 16384), ("1KB", 1024), ("1MB", 1 << 20), ("2GiB", 2 << 30)]
        {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for wrong in ["", "K", "-1", "1.5M", "1X", "99999999999999999999", "99999999999G"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        assert_eq!(percent("10%"), Ok(10.0));
        assert!(percent("-5").is_err() && percent("abc").is_err() && percent("nan").is_err());
    }
}
