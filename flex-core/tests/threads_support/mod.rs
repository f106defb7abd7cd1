//! What the tests of threads share: a deadline for everything that must not hang, a file system with gates, a generator.
#![allow(dead_code)]

use flex_core::file::{FlexSpace, SpaceOptions};
use flex_core::io::{DirLock, File, FileSystem, LockMode, OpenMode};
use std::collections::HashMap;
use std::io::{IoSlice, Result, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Small segments, so that a test fills many.
pub fn options() -> SpaceOptions {
    SpaceOptions { segment_size_bytes: flex_core::limits::MIN_SEGMENT_BYTES, ..SpaceOptions::default() }
}

/// Fails on any problem that a check finds.
pub fn sound(space: &FlexSpace) {
    let report = space.check(&mut |_| true).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

/// Whether the long runs were asked for.
pub fn long_run() -> bool {
    std::env::var_os("FLEXFILE_LONG").is_some()
}

/// Runs `body`; ends the process with a message when it takes longer than `seconds`, since a hang can't be unwound.
pub fn within<R>(seconds: u64, body: impl FnOnce() -> R) -> R {
    let done = Arc::new((Mutex::new(false), Condvar::new()));
    let seen = done.clone();
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    let watch = std::thread::spawn(move || {
        let (flag, wake) = &*seen;
        let guard = flag.lock().unwrap();
        let (guard, _) = wake.wait_timeout_while(guard, Duration::from_secs(seconds), |done| !*done).unwrap();
        if !*guard {
            // Not by a macro, whose output the test harness would keep for itself.
            let text = format!("{name}: still not done after {seconds} s: it hangs\n");
            std::io::stderr().write_all(text.as_bytes()).unwrap();
            std::process::abort();
        }
    });
    struct Done(Arc<(Mutex<bool>, Condvar)>);
    impl Drop for Done {
        fn drop(&mut self) {
            *self.0.0.lock().unwrap() = true;
            self.0.1.notify_all();
        }
    }
    let guard = Done(done);
    let result = body();
    drop(guard);
    watch.join().unwrap();
    result
}

/// A small generator of numbers (xorshift64*), so that a run can be repeated from its seed.
pub struct Chance(u64);

impl Chance {
    /// From a seed.
    pub fn new(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next number below `limit`, which is not zero.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16) % limit
    }
}

#[derive(Default)]
struct Gates {
    /// Name of the files whose syncs wait.
    held: Option<String>,
    /// Syncs that wait now.
    waiting: usize,
    /// Syncs begun, by file name.
    syncs: HashMap<String, u64>,
}

/// A file system whose syncs of one file can be held back.
pub struct Gated {
    below: Arc<dyn FileSystem>,
    gates: Arc<(Mutex<Gates>, Condvar)>,
}

impl Gated {
    /// Open gates over `below`.
    pub fn new(below: Arc<dyn FileSystem>) -> Gated {
        Gated { below, gates: Arc::default() }
    }

    /// Holds back syncs of the files with this name, from now on.
    pub fn hold(&self, name: &str) {
        self.gates.0.lock().unwrap().held = Some(name.to_owned());
    }

    /// Lets them go.
    pub fn release(&self) {
        self.gates.0.lock().unwrap().held = None;
        self.gates.1.notify_all();
    }

    /// Waits until so many syncs wait at the gate.
    pub fn wait_for_held(&self, count: usize) {
        let guard = self.gates.0.lock().unwrap();
        drop(self.gates.1.wait_while(guard, |gates| gates.waiting < count).unwrap());
    }

    /// Syncs of files with this name, so far.
    pub fn syncs(&self, name: &str) -> u64 {
        self.gates.0.lock().unwrap().syncs.get(name).copied().unwrap_or(0)
    }
}

struct GatedFile {
    below: Arc<dyn File>,
    name: String,
    gates: Arc<(Mutex<Gates>, Condvar)>,
}

impl FileSystem for Gated {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Arc::new(GatedFile { below: self.below.open(path, mode)?, name, gates: self.gates.clone() }))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.below.create_dir(path)
    }

    fn list_dir(&self, path: &Path) -> Result<Vec<PathBuf>> {
        self.below.list_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.below.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.below.remove_file(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.below.sync_dir(path)
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn DirLock>> {
        self.below.lock(path, mode)
    }
}

impl File for GatedFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.below.read_at(buf, offset)
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<usize> {
        self.below.write_at(bufs, offset)
    }

    fn sync_data(&self) -> Result<()> {
        let (gates, wake) = &*self.gates;
        let mut guard = gates.lock().unwrap();
        *guard.syncs.entry(self.name.clone()).or_default() += 1;
        if guard.held.as_deref() == Some(&self.name) {
            guard.waiting += 1;
            wake.notify_all();
            guard = wake.wait_while(guard, |gates| gates.held.as_deref() == Some(&self.name)).unwrap();
            guard.waiting -= 1;
        }
        drop(guard);
        self.below.sync_data()
    }

    fn len(&self) -> Result<u64> {
        self.below.len()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.below.set_len(len)
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        self.below.reserve(offset, len)
    }

    fn punch_hole(&self, offset: u64, len: u64) -> Result<()> {
        self.below.punch_hole(offset, len)
    }

    fn allocated(&self) -> Result<u64> {
        self.below.allocated()
    }
}
