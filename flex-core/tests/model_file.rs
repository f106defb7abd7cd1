//! Lists of operations on a space and on a model of it, with shrinking: see `model_file/run.rs` for what is compared.
//!
//! With the feature `small_limits` twenty operations reach splits of nodes, full segments, collections and log switches;
//! without it the default limits are run, over the smallest segments. More cases: the environment's `PROPTEST_CASES`.

#[path = "model_file/bad.rs"]
mod bad;
#[path = "model_file/compare.rs"]
mod compare;
#[path = "model_file/model.rs"]
mod model;
#[path = "model_file/ops.rs"]
mod ops;
#[path = "model_file/run.rs"]
mod run;

use flex_core::file::Durability;
use flex_core::limits::MIN_SEGMENT_BYTES;
use proptest::prelude::*;
use run::{Setup, run};
use std::time::Duration;

const SETUP: Setup = Setup { segment: MIN_SEGMENT_BYTES, durability: Durability::Manual, background: false };

fn cases(default: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    ProptestConfig { cases, max_shrink_iters: 20_000, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn a_space_is_its_model(ops in ops::ops(false, 150)) {
        run(SETUP, &ops);
    }

    #[test]
    fn a_death_leaves_a_prefix(ops in ops::ops(true, 150)) {
        run(SETUP, &ops);
    }
}

proptest! {
    #![proptest_config(cases(8))]

    #[test]
    fn every_setup_answers_alike(ops in ops::ops(false, 80)) {
        for segment in [MIN_SEGMENT_BYTES, MIN_SEGMENT_BYTES * 2, MIN_SEGMENT_BYTES * 16] {
            run(Setup { segment, ..SETUP }, &ops);
        }
        run(Setup { durability: Durability::EveryCommit, ..SETUP }, &ops);
        run(Setup { background: true, ..SETUP }, &ops);
        run(Setup { background: true, durability: Durability::Interval(Duration::from_millis(1)), ..SETUP }, &ops);
    }

    #[test]
    fn a_death_leaves_a_prefix_in_every_setup(ops in ops::ops(true, 80)) {
        run(Setup { durability: Durability::EveryCommit, ..SETUP }, &ops);
        run(Setup { background: true, ..SETUP }, &ops);
        run(Setup { segment: MIN_SEGMENT_BYTES * 4, ..SETUP }, &ops);
    }
}
