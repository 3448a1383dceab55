//! Escaping of text for markup.

/// Escapes text for markup, including attributes. Replaces control characters by the replacement character.
pub(super) fn escaped(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => written.push_str("&amp;"),
            '<' => written.push_str("&lt;"),
            '>' => written.push_str("&gt;"),
            '"' => written.push_str("&quot;"),
            '\'' => written.push_str("&#39;"),
            letter if letter.is_control() => written.push('\u{fffd}'),
            letter => written.push(letter),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn characters_with_a_meaning_are_escaped() {
        assert_eq!(escaped("</script><b a='\"&\u{1}"), "&lt;/script&gt;&lt;b a=&#39;&quot;&amp;\u{fffd}");
    }
}
