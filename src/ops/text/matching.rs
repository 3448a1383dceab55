//! RegexFullMatch: whether each string as a whole matches a pattern.
//!
//! | | |
//! |---|---|
//! | computes | a bool for each string |
//! | `pattern` | in the syntax of RE2 |
//! | versions | 20 |
//! | not evaluated | patterns that mean something else in our syntax than in RE2's, or do so for text beyond ASCII, where classes such as `\w` and folding of case differ |

use regex::Regex;

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

/// For which strings a pattern means the same in both syntaxes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reach {
    Everything,
    Ascii,
}

/// What follows one after another in a pattern.
struct Scanner<'p> {
    rest: std::iter::Peekable<std::str::Chars<'p>>,
    reach: Reach,
}

impl Scanner<'_> {
    /// For which strings a pattern means the same in both syntaxes; `None` for none, as far as is known.
    fn reach(pattern: &str) -> Option<Reach> {
        let mut scanner = Scanner { rest: pattern.chars().peekable(), reach: Reach::Everything };
        while let Some(c) = scanner.rest.next() {
            match c {
                '\\' => scanner.escape()?,
                '[' => scanner.class()?,
                '(' if scanner.rest.peek() == Some(&'?') => scanner.group()?,
                '{' => scanner.repetition()?,
                '*' | '+' | '?' | '}' => {
                    // `?` after these means as few as possible; more of them mean different things.
                    scanner.rest.next_if_eq(&'?');
                    if scanner.rest.peek().is_some_and(|next| "*+?{".contains(*next)) {
                        return None;
                    }
                }
                _ => {}
            }
        }
        Some(scanner.reach)
    }

    fn escape(&mut self) -> Option<()> {
        match self.rest.next()? {
            'd' | 'D' | 'w' | 'W' | 's' | 'S' => self.reach = Reach::Ascii,
            // Our boundaries come in more kinds.
            'b' | 'B' if self.rest.peek() == Some(&'{') => return None,
            'b' | 'B' => self.reach = Reach::Ascii,
            'p' | 'P' => {
                self.reach = Reach::Ascii;
                if self.rest.next()? == '{' {
                    while self.rest.next()? != '}' {}
                }
            }
            'a' | 'f' | 'n' | 'r' | 't' | 'v' | 'A' | 'z' => {}
            '<' | '>' => return None,
            c if c.is_ascii_punctuation() => {}
            _ => return None,
        }
        Some(())
    }

    /// A bracketed class: ours may hold others, and set operations.
    fn class(&mut self) -> Option<()> {
        self.rest.next_if_eq(&'^');
        self.rest.next_if_eq(&']');
        let mut before = ' ';
        loop {
            let c = self.rest.next()?;
            match c {
                ']' => return Some(()),
                '\\' => self.escape()?,
                '[' => {
                    self.rest.next_if_eq(&':')?;
                    while self.rest.next()? != ']' {}
                }
                '&' | '-' | '~' if before == c => return None,
                _ => {}
            }
            before = c;
        }
    }

    /// `(?:`, `(?P<name>`, or flags that both have.
    fn group(&mut self) -> Option<()> {
        self.rest.next();
        if self.rest.next_if_eq(&'P').is_some() {
            return (self.rest.peek() == Some(&'<')).then_some(());
        }
        loop {
            match self.rest.next()? {
                ':' | ')' => return Some(()),
                'i' => self.reach = Reach::Ascii,
                'm' | 's' | 'U' | '-' => {}
                _ => return None,
            }
        }
    }

    /// `{n}`, `{n,}`, `{n,m}` of at most a thousand; anything else stands for itself in RE2.
    fn repetition(&mut self) -> Option<()> {
        let mut numbers = vec![String::new()];
        while let Some(&c) = self.rest.peek() {
            match c {
                '}' => break,
                ',' if numbers.len() == 1 => numbers.push(String::new()),
                '0'..='9' => numbers.last_mut()?.push(c),
                _ => return None,
            }
            self.rest.next();
        }
        let bounded = |number: &String| number.parse::<u32>().is_ok_and(|number| number <= 1000);
        let (first, rest) = numbers.split_first()?;
        (bounded(first) && rest.iter().all(|last| last.is_empty() || bounded(last))).then_some(())
    }
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let pattern = cx.attr_str("pattern")?.ok_or_else(|| Decline::invalid("attribute 'pattern' is missing"))?;
    let reach = Scanner::reach(pattern);
    let reach =
        reach.ok_or_else(|| Decline::unsupported("the pattern is not in the common syntax of RE2 and this program"))?;
    let broken = |error: regex::Error| Decline::unsupported(format!("the pattern is not valid: {error}"));
    // The pattern stands on its own before it is put in brackets.
    Regex::new(pattern).map_err(broken)?;
    let regex = Regex::new(&format!(r"\A(?:{pattern})\z")).map_err(broken)?;
    let (elements, shape) = (strings(cx, 0)?, cx.tensor(0)?.shape());
    cx.claim(DType::Bool, shape)?;
    let bytes = elements.iter().fold(elements.len() as u64, |sum, string| sum.saturating_add(string.len() as u64));
    cx.budget().take_work(bytes.saturating_mul(pattern.len() as u64 + 1))?;
    let matches = elements.iter().map(|element| {
        let string = text(element)?;
        // The vertical tab is a blank here and none in RE2.
        if string.contains('\u{b}') || (reach == Reach::Ascii && !string.is_ascii()) {
            return Err(Decline::unsupported("RE2 and this program may match the pattern differently in this text"));
        }
        Ok(regex.is_match(string))
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
    fn where_the_syntaxes_differ_nothing_is_said() {
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
