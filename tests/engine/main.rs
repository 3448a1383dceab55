//! Tests of the library on models in text form: rules alone and together, the first edits of a run, operators, claims, control flow,
//! functions, and results of other runtimes. Each module is a subject; shared helpers are in `support`.

#[path = "../support/mod.rs"]
mod support;

mod bisection;
mod budgets;
mod check;
mod claims;
mod control;
mod copies;
mod custom;
mod explain;
mod external_data;
mod families;
mod functions;
mod idempotence;
mod inlining;
mod inspect;
mod labels;
mod long_chains;
mod misses;
mod movement_random;
mod naming;
mod needs;
mod normalization;
mod opset;
mod peer_traps;
mod quantization;
mod rules;
#[cfg(feature = "seeded-faults")]
mod seeded;
mod shape_reads;
mod slicing_oracle;
mod soundness;
mod soundness_ranks;
mod soundness_rebuild;
mod soundness_traits;
mod spelling;
mod stated;
mod text;
