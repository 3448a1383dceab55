//! Operators on strings.
//!
//! | file | operators |
//! | --- | --- |
//! | [`strings`] | StringConcat, StringSplit, StringNormalizer |
//! | [`matching`] | RegexFullMatch |
//! | [`ngrams`] | TfIdfVectorizer |

mod matching;
mod ngrams;
mod strings;

use super::Operator;

pub(super) const OPERATORS: &[Operator] = &[
    strings::STRING_CONCAT,
    strings::STRING_SPLIT,
    strings::STRING_NORMALIZER,
    matching::REGEX_FULL_MATCH,
    ngrams::TF_IDF_VECTORIZER,
];
