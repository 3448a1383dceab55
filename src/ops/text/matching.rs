//! RegexFullMatch: tests if each whole string matches a pattern.
//!
//! | | |
//! |---|---|
//! | computes | a bool for each string |
//! | `pattern` | in the syntax of RE2 |
//! | versions | 20 |
//! | not evaluated | patterns whose meaning differs between the `regex` crate and RE2; texts beyond ASCII with classes such as `\w` or `\pL` or with case folding |

use regex::bytes::{Regex, RegexBuilder};

use super::strings::{strings, text};
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator};
use crate::tensor::{DType, Tensor};

pub(super) const REGEX_FULL_MATCH: Operator = Operator::new("RegexFullMatch", &[20], infer, eval);

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let shape = cx.required(0)?.shape().map(<[Dim]>::to_vec);
    Ok(vec![Fact::tensor(Some(DType::Bool), shape)])
}

/// The strings for which a pattern has the same meaning in both syntaxes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reach {
    Everything,
    Ascii,
}

/// The classes `\p` of RE2 by name, with their ASCII members: general categories, scripts in wide use, and `Any`. RE2 has no
/// other property (`\p{Alphabetic}`), long name (`\p{Letter}`) or spelling (`\p{lu}`).
const CLASSES: &[(&str, &str)] = &[
    ("Any", r"\x00-\x7F"),
    ("C", r"\x00-\x1F\x7F"),
    ("Cc", r"\x00-\x1F\x7F"),
    ("L", "A-Za-z"),
    ("Ll", "a-z"),
    ("Lu", "A-Z"),
    ("N", "0-9"),
    ("Nd", "0-9"),
    ("P", r"!-#%-*,-/:;?@\[-\]_{}"),
    ("Pc", "_"),
    ("Pd", r"\-"),
    ("Pe", r")\]}"),
    ("Po", r"!-#%-'*,./:;?@\\"),
    ("Ps", r"(\[{"),
    ("S", r"$+<->\^`|~"),
    ("Sc", "$"),
    ("Sk", r"\^`"),
    ("Sm", r"+<->|~"),
    ("Z", r"\x20"),
    ("Zs", r"\x20"),
    ("Common", r"\x00-@\[-`{-\x7F"),
    ("Latin", "A-Za-z"),
];

/// The classes without ASCII characters.
const OTHER_CLASSES: &[&str] = &[
    "Cf",
    "Co",
    "Lm",
    "Lo",
    "Lt",
    "M",
    "Mc",
    "Me",
    "Mn",
    "Nl",
    "No",
    "Pf",
    "Pi",
    "So",
    "Zl",
    "Zp",
    "Arabic",
    "Armenian",
    "Bengali",
    "Cyrillic",
    "Devanagari",
    "Ethiopic",
    "Georgian",
    "Greek",
    "Gujarati",
    "Gurmukhi",
    "Han",
    "Hangul",
    "Hebrew",
    "Hiragana",
    "Inherited",
    "Kannada",
    "Katakana",
    "Khmer",
    "Lao",
    "Malayalam",
    "Mongolian",
    "Myanmar",
    "Oriya",
    "Sinhala",
    "Tamil",
    "Telugu",
    "Thai",
    "Tibetan",
];

/// Returns the ASCII members of the class `\p{name}`, in the syntax of a bracketed class.
fn ascii_members(name: &str) -> Option<&'static str> {
    let known = CLASSES.iter().find(|(known, _)| *known == name).map(|(_, members)| *members);
    known.or_else(|| OTHER_CLASSES.contains(&name).then_some(r"\x80-\xFF"))
}

/// Scans a pattern and rewrites it for ASCII strings.
struct Scanner<'p> {
    rest: std::iter::Peekable<std::str::Chars<'p>>,
    reach: Reach,
    /// The scanned characters, with the ASCII members of a class instead of `\p`.
    ascii: String,
}

impl Scanner<'_> {
    /// Returns the strings for which a pattern has the same meaning in both syntaxes, and the pattern for these strings; `None` if
    /// the meaning may differ for all strings.
    fn read(pattern: &str) -> Option<(Reach, String)> {
        let rest = pattern.chars().peekable();
        let mut scanner = Scanner { rest, reach: Reach::Everything, ascii: String::with_capacity(pattern.len()) };
        while let Some(c) = scanner.next() {
            match c {
                '\\' => scanner.escape()?,
                '[' => scanner.class()?,
                '(' if scanner.rest.peek() == Some(&'?') => scanner.group()?,
                '{' => scanner.repetition()?,
                '*' | '+' | '?' | '}' => {
                    // A following `?` means lazy repetition; further operators have different meanings.
                    scanner.next_if('?');
                    if scanner.rest.peek().is_some_and(|next| "*+?{".contains(*next)) {
                        return None;
                    }
                }
                _ => {}
            }
        }
        Some((scanner.reach, scanner.ascii))
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest.next()?;
        self.ascii.push(next);
        Some(next)
    }

    fn next_if(&mut self, wanted: char) -> Option<char> {
        if self.rest.peek() == Some(&wanted) { self.next() } else { None }
    }

    fn escape(&mut self) -> Option<()> {
        match self.next()? {
            'd' | 'D' | 'w' | 'W' | 's' | 'S' => self.reach = Reach::Ascii,
            // The `regex` crate has more kinds of boundaries.
            'b' | 'B' if self.rest.peek() == Some(&'{') => return None,
            'b' | 'B' => self.reach = Reach::Ascii,
            letter @ ('p' | 'P') => {
                self.reach = Reach::Ascii;
                let mut name = String::from(self.rest.next()?);
                if name == "{" {
                    name.clear();
                    while self.rest.peek()? != &'}' {
                        name.extend(self.rest.next());
                    }
                    self.rest.next();
                }
                let plain = name.strip_prefix('^');
                let is_negated = (letter == 'P') != plain.is_some();
                let members = ascii_members(plain.unwrap_or(&name))?;
                // Remove the backslash and the letter.
                self.ascii.truncate(self.ascii.len().saturating_sub(2));
                self.ascii.extend(["[", if is_negated { "^" } else { "" }, members, "]"]);
            }
            'a' | 'f' | 'n' | 'r' | 't' | 'v' | 'A' | 'z' => {}
            '<' | '>' => return None,
            c if c.is_ascii_punctuation() => {}
            _ => return None,
        }
        Some(())
    }

    /// Scans a bracketed class; the `regex` crate also allows nested classes and set operations.
    fn class(&mut self) -> Option<()> {
        self.next_if('^');
        self.next_if(']');
        let mut before = ' ';
        loop {
            let c = self.next()?;
            match c {
                ']' => return Some(()),
                '\\' => self.escape()?,
                '[' => {
                    self.next_if(':')?;
                    while self.next()? != ']' {}
                }
                '&' | '-' | '~' if before == c => return None,
                _ => {}
            }
            before = c;
        }
    }

    /// Scans `(?:`, `(?P<name>`, or flags that both syntaxes have.
    fn group(&mut self) -> Option<()> {
        self.next();
        if self.next_if('P').is_some() {
            return (self.rest.peek() == Some(&'<')).then_some(());
        }
        loop {
            match self.next()? {
                ':' | ')' => return Some(()),
                'i' => self.reach = Reach::Ascii,
                'm' | 's' | 'U' | '-' => {}
                _ => return None,
            }
        }
    }

    /// Scans `{n}`, `{n,}`, `{n,m}` up to 1,000; RE2 treats other forms literally.
    fn repetition(&mut self) -> Option<()> {
        let mut numbers = vec![String::new()];
        while let Some(&c) = self.rest.peek() {
            match c {
                '}' => break,
                ',' if numbers.len() == 1 => numbers.push(String::new()),
                '0'..='9' => numbers.last_mut()?.push(c),
                _ => return None,
            }
            self.next();
        }
        let bounded = |number: &String| number.parse::<u32>().is_ok_and(|number| number <= 1000);
        let (first, rest) = numbers.split_first()?;
        (bounded(first) && rest.iter().all(|last| last.is_empty() || bounded(last))).then_some(())
    }
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let pattern = cx.attr_str("pattern")?.ok_or_else(|| Decline::invalid("attribute 'pattern' is missing"))?;
    let (reach, ascii) = Scanner::read(pattern)
        .ok_or_else(|| Decline::unsupported("the pattern is not in the common syntax of RE2 and this program"))?;
    let regex = |pattern: &str| {
        let built = RegexBuilder::new(pattern).unicode(reach == Reach::Everything).build();
        built.map_err(|error| Decline::unsupported(format!("the pattern is not valid: {error}")))
    };
    // The pattern must be valid without the enclosing group.
    regex(&ascii)?;
    let regex: Regex = regex(&format!(r"\A(?:{ascii})\z"))?;
    let (elements, shape) = (strings(cx, 0)?, cx.tensor(0)?.shape());
    cx.claim(DType::Bool, shape)?;
    let bytes = elements.iter().fold(elements.len() as u64, |sum, string| sum.saturating_add(string.len() as u64));
    cx.budget().take_work(bytes.saturating_mul(pattern.len() as u64 + 1))?;
    let matches = elements.iter().map(|element| {
        let string = text(element)?;
        // The vertical tab is a space in the `regex` crate, but not in RE2.
        if string.contains('\u{b}') || (reach == Reach::Ascii && !string.is_ascii()) {
            return Err(Decline::unsupported("RE2 and this program may match the pattern differently in this text"));
        }
        Ok(regex.is_match(string.as_bytes()))
    });
    Ok(vec![Tensor::from_bools(shape, &matches.collect::<Result<Vec<bool>, Decline>>()?)?.into()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::single::Single;

    fn matches(pattern: &'static str, string: &'static str) -> Option<bool> {
        let tensor = Tensor::from_strings(&[1], vec![string.into()]).unwrap();
        let node = Single::new("RegexFullMatch", 20).with_str("pattern", pattern).constant(tensor);
        node.eval().ok().map(|found| found[0].bools().unwrap()[0])
    }

    #[test]
    fn the_whole_string_matches() {
        assert_eq!(matches("b", "abc"), Some(false));
        assert_eq!(matches("a|abc", "abc"), Some(true));
        assert_eq!(matches("", ""), Some(true));
        assert_eq!(matches(r"www\.[\w.-]+\.\bcom\b", "www.google.com"), Some(true));
        assert_eq!(matches(r"(\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$)", "account@gmail.com"), Some(true));
        assert_eq!(matches("a.c", "aéc"), Some(true));
        assert_eq!(matches("a{2,3}?", "aaa"), Some(true));
        assert_eq!(matches(r"\d{2}\p{Lu}\pL", "12Ab"), Some(true));
        assert_eq!(matches(r"\p{Latin}+\p{Greek}?", "ab"), Some(true));
        assert_eq!(matches("[]a]+", "]a"), Some(true));
        assert_eq!(matches("a$", "a\n"), Some(false));
    }

    #[test]
    fn classes_are_those_of_re2() {
        for (pattern, string, expected) in [
            (r"\p{Lu}\p{Ll}+", "Abc", true),
            (r"\P{Lu}", "A", false),
            (r"\p{^Lu}\P{^Lu}", "aA", true),
            (r"[\pL\d_]+", "a1_B", true),
            (r"[^\pL\d]+", "a1", false),
            (r"[\P{L}x]+", "1x2", true),
            (r"\p{Greek}?\p{Latin}", "a", true),
            (r"[^\p{Han}]*", "abc", true),
            (r"\p{Common}+", "1 -", true),
        ] {
            assert_eq!(matches(pattern, string), Some(expected), "{pattern}");
        }
        for c in '\0'..='\u{7f}' {
            let in_class = |name: &str| {
                let class = format!("[{}]", ascii_members(name).unwrap());
                let class = RegexBuilder::new(&class).unicode(false).build().unwrap();
                class.is_match(c.to_string().as_bytes())
            };
            let parts = ["Pc", "Pd", "Pe", "Po", "Ps", "Sc", "Sk", "Sm", "Lu", "Ll", "Nd", "Zs", "Cc"];
            assert_eq!(parts.iter().filter(|part| in_class(part)).count(), 1, "{c:?} has one category");
            assert_eq!(in_class("L"), c.is_ascii_alphabetic());
            assert_eq!(in_class("P") || in_class("S"), c.is_ascii_punctuation());
            assert_eq!(in_class("P"), parts.iter().take(5).any(|part| in_class(part)));
            assert_eq!(in_class("Common"), !in_class("Latin"));
            assert!(in_class("Any") && !in_class("Greek"));
        }
        // Forms of `\p` in other syntaxes.
        for pattern in [r"\p{Alphabetic}", r"\p{Letter}", r"\p{lu}", r"\p{L", r"\p{}", r"\p{Script=Greek}", r"\p{Latn}"]
        {
            assert_eq!(matches(pattern, "a"), None, "{pattern}");
        }
        assert_eq!(matches(r"\p{Lu}", "É"), None);
    }

    #[test]
    fn patterns_with_different_syntaxes_decline() {
        for pattern in ["a{,3}", "a**", "[a&&b]", "[[a]b]", r"\<a", r"\Qa\E", "(?x)a", r"\07", "a)(b", r"\b{start}a"] {
            assert_eq!(matches(pattern, "a"), None, "{pattern}");
        }
        assert_eq!(matches(r"\w", "é"), None);
        assert_eq!(matches("(?i)k", "\u{212a}"), None);
        assert_eq!(matches(r"\s", "\u{b}"), None);
    }

    #[test]
    fn shapes() {
        let node = Single::new("RegexFullMatch", 20).with_str("pattern", "a").input(DType::String, "A 2");
        assert_eq!(node.infer(), ["bool[A, 2]"]);
    }
}
