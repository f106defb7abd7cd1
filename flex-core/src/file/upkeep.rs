//! What a space does by itself: syncs, checkpoints, accounting for dropped subtrees, collection, giving blocks back.
//!
//! With `background` a thread of the space does it, and sleeps while nothing is dirty; otherwise the operation that made
//! it due. The thread ends with `close`. Failures are latched or reported to the log callback; operations that
//! already returned are not affected.

use super::core::Due;
use super::shared::Shared;
use super::wake::Wake;
use crate::limits;
use crate::options::{Durability, LogLevel};
use crate::tree::Released;
use crate::{ErrorKind, Result};
use parking_lot::Mutex;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const IDLE: Duration = Duration::from_secs(1);

/// What the background thread waits for.
pub struct Upkeep {
    wake: Wake,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Upkeep {
    /// Without a thread.
    pub fn new() -> Upkeep {
        Upkeep { wake: Wake::new(), thread: Mutex::new(None) }
    }

    /// An operation was made.
    #[inline]
    pub fn note(&self, due: Due) {
        self.wake.note(due.any());
    }

    /// Starts the thread.
    pub fn start(&self, shared: Arc<Shared>) -> Result<()> {
        let thread = std::thread::Builder::new()
            .name("flexfile-upkeep".into())
            .spawn(move || run(&shared))
            .map_err(|e| crate::Error::from_io("starting the upkeep thread", &e))?;
        *self.thread.lock() = Some(thread);
        Ok(())
    }

    /// Ends the thread and waits for it.
    pub fn stop(&self) {
        self.wake.stop();
        if let Some(thread) = self.thread.lock().take()
            && thread.thread().id() != std::thread::current().id()
            && thread.join().is_err()
        {
            // The thread panicked; there is nothing of it to wait for.
        }
    }
}

fn run(shared: &Arc<Shared>) {
    let (time, every_time) = match shared.options.durability {
        Durability::Interval(time) => (time, true),
        _ => (IDLE, false),
    };
    let (mut seen, mut dirty_since) = (0, None);
    while let Some(timed_out) = shared.upkeep.wake.wait(time, &mut dirty_since) {
        if timed_out {
            let sequence = shared.core.lock().log.sequence();
            if every_time || sequence == seen {
                shared.upkeep.wake.clean();
                shared.report("idle sync", shared.sync_recorded());
            }
            seen = shared.core.lock().log.sequence();
        }
        let begun = Instant::now();
        while shared.upkeep_step() {
            // Busy writers may make more due all the time: the timed sync and the end must have their turn.
            if begun.elapsed() >= time || shared.upkeep.wake.is_stopping() {
                shared.upkeep.wake.leave_due();
                dirty_since.get_or_insert(begun);
                break;
            }
        }
        shared.report("giving space back", shared.give_back());
    }
}

impl Shared {
    /// Does what is due, until nothing is or something fails.
    pub fn run_upkeep(self: &Arc<Self>) {
        while self.upkeep_step() {}
        self.report("giving space back", self.give_back());
    }

    /// Does one thing that is due. Returns whether there was one, and it went well.
    fn upkeep_step(self: &Arc<Self>) -> bool {
        if self.latch.is_poisoned() {
            return false;
        }
        let due = self.core.lock().due();
        let result = if due.checkpoint {
            self.checkpoint()
        } else if due.sync {
            self.sync_recorded()
        } else if due.reap {
            self.reap().map(|_| ())
        } else if due.gc {
            self.collect(false).map(|_| ())
        } else {
            return false;
        };
        self.report("upkeep", result)
    }

    fn report(&self, doing: &str, result: Result<()>) -> bool {
        match result {
            Ok(()) => true,
            Err(error) => {
                let level = if error.kind() == ErrorKind::NoSpace { LogLevel::Warning } else { LogLevel::Error };
                self.say(level, &format!("{doing}: {error}"));
                false
            }
        }
    }

    /// Accounts for one slice of a dropped subtree. Returns whether there was one.
    ///
    /// Not while a checkpoint runs: the subtree's nodes may be getting their pages.
    pub fn reap(&self) -> Result<bool> {
        let _no_checkpoint = self.checkpoint_lock.lock();
        let Some((mut subtree, death)) = ({
            let mut core = self.core.lock();
            if core.checkpoint_running { None } else { core.drops.pop() }
        }) else {
            return Ok(false);
        };
        let mut released = Released::default();
        let result = subtree.take_apart_some(&self.pages, limits::REAP_SLICE_NODES, &mut released);
        let mut core = self.core.lock();
        core.absorb(released, death);
        match result {
            Ok(true) => {}
            Ok(false) => core.drops.push((subtree, death)),
            Err(error) if error.kind() == ErrorKind::Corruption => {
                drop(core);
                // The space of what can't be read stays counted as live: nothing is lost but room.
                self.say(LogLevel::Warning, &format!("the space of a removed range can't be accounted for: {error}"));
            }
            Err(error) => {
                core.drops.push((subtree, death));
                return Err(error);
            }
        }
        Ok(true)
    }

    /// Frees what waits no longer, punches free segments out of `DATA` and cuts its free tail.
    pub fn give_back(&self) -> Result<()> {
        self.give_back_but(limits::RESERVE_SEGMENTS)
    }

    /// `give_back`, but for the blocks of `keep` free segments.
    pub fn give_back_but(&self, keep: usize) -> Result<()> {
        let punch = {
            let mut core = self.core.lock();
            core.settle(&self.data);
            let snapshots = &core.snapshots;
            self.pages.settle(snapshots);
            core.table.to_punch(keep)
        };
        let size = self.data.geometry.segment_bytes() as u64;
        for segment in punch {
            // Under the lock: a free segment may be opened again at any time.
            let mut core = self.core.lock();
            if core.table.entry(segment).state == super::segment_table::SegmentState::Free {
                self.data.file.punch_hole(self.data.geometry.start_of(segment), size)?;
                core.table.note_punched(segment);
            }
        }
        let mut core = self.core.lock();
        let before = core.table.entries().len() as u64;
        let after = core.table.trim(keep) as u64;
        if after < before && self.data.file.len()? > after * size {
            self.data.file.set_len(after * size)?;
        }
        Ok(())
    }
}
