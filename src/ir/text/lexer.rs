//! Splits the text syntax into tokens.

use thiserror::Error;

/// An error for text that is not a model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The reason.
    pub reason: String,
}

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// An identifier of letters, digits and `_`; other names are quoted.
    Word(String),
    /// A quoted string, or a name that is not an identifier.
    Quoted(Vec<u8>),
    /// A number as written.
    Number(String),
    /// A sign: `=>` or one character.
    Sign(&'static str),
    /// The end of the text.
    End,
}

const SIGNS: [&str; 18] = ["@", "=>", "<", ">", "(", ")", "[", "]", "{", "}", ",", "=", ":", "?", ".", "*", "-", "+"];

/// Returns tokens with their positions.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Self {
        Lexer { text, at: 0 }
    }

    /// Creates an error at a byte position.
    pub fn error(&self, at: usize, reason: impl Into<String>) -> ParseError {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        ParseError { line, column, reason: reason.into() }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_blank(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            match trimmed.strip_prefix('#') {
                Some(comment) => self.at += 1 + comment.find('\n').unwrap_or(comment.len()),
                None => return,
            }
        }
    }

    /// Returns the next token and its position.
    pub fn next(&mut self) -> Result<(usize, Token), ParseError> {
        self.skip_blank();
        let start = self.at;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok((start, Token::End)) };
        if first == '"' {
            return self.quoted(start);
        }
        if first.is_ascii_digit()
            || rest
                .strip_prefix('-')
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == 'i' || c == '.'))
        {
            return Ok((start, self.number(start)));
        }
        if first.is_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            self.at += end;
            return Ok((start, Token::Word(rest.get(..end).unwrap_or_default().to_string())));
        }
        match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            Some(sign) => {
                self.at += sign.len();
                Ok((start, Token::Sign(sign)))
            }
            None => Err(self.error(start, format!("{first:?} does not begin any token"))),
        }
    }

    fn number(&mut self, start: usize) -> Token {
        let rest = self.rest();
        let sign = usize::from(rest.starts_with('-'));
        let body = rest.get(sign..).unwrap_or_default();
        let mut previous = ' ';
        let end = body
            .find(|c: char| {
                let exponent = (c == '-' || c == '+') && matches!(previous, 'e' | 'E');
                let inside = c.is_ascii_alphanumeric() || c == '.' || exponent;
                previous = c;
                !inside
            })
            .unwrap_or(body.len());
        self.at = start + sign + end;
        Token::Number(rest.get(..sign + end).unwrap_or_default().to_string())
    }

    fn quoted(&mut self, start: usize) -> Result<(usize, Token), ParseError> {
        let bytes = self.text.as_bytes();
        let mut content = Vec::new();
        let mut at = start + 1;
        loop {
            match bytes.get(at) {
                None => return Err(self.error(start, "the string does not end")),
                Some(b'"') => break,
                Some(b'\\') => {
                    let escaped = *bytes.get(at + 1).ok_or_else(|| self.error(start, "the string does not end"))?;
                    content.push(match escaped {
                        b'n' => b'\n',
                        b't' => b'\t',
                        b'r' => b'\r',
                        b'x' => {
                            let digits = self.text.get(at + 2..at + 4).and_then(|hex| u8::from_str_radix(hex, 16).ok());
                            at += 2;
                            digits.ok_or_else(|| self.error(at, "\\x needs two hexadecimal digits"))?
                        }
                        other => other,
                    });
                    at += 2;
                }
                Some(&byte) => {
                    content.push(byte);
                    at += 1;
                }
            }
        }
        self.at = at + 1;
        Ok((start, Token::Quoted(content)))
    }
}
