//! Which snapshots are held: sequence numbers with counts and birthdays.
//!
//! Plain data under the space's lock.

use std::collections::BTreeMap;
use std::time::Instant;

/// The snapshots that are held, oldest first.
#[derive(Default)]
pub struct SnapshotList {
    held: BTreeMap<u64, Held>,
}

struct Held {
    count: usize,
    since: Instant,
}

impl SnapshotList {
    /// A snapshot after operation `sequence` is taken.
    pub fn add(&mut self, sequence: u64) {
        self.held.entry(sequence).or_insert_with(|| Held { count: 0, since: Instant::now() }).count += 1;
    }

    /// One of them is given back.
    pub fn remove(&mut self, sequence: u64) {
        if let Some(held) = self.held.get_mut(&sequence) {
            held.count -= 1;
            if held.count == 0 {
                self.held.remove(&sequence);
            }
        }
    }

    /// Whether a snapshot shows the state after some operation in `[birth, death)`.
    pub fn any_in(&self, birth: u64, death: u64) -> bool {
        birth < death && self.held.range(birth..death).next().is_some()
    }

    /// How many are held.
    pub fn count(&self) -> u64 {
        self.held.values().map(|h| h.count as u64).sum()
    }

    /// The oldest one: its sequence number and since when it is held.
    pub fn oldest(&self) -> Option<(u64, Instant)> {
        self.held.first_key_value().map(|(sequence, held)| (*sequence, held.since))
    }
}
