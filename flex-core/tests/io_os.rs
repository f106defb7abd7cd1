//! The real file system: what the traits promise beyond bytes (those: `io_model.rs`), and the locks.

use std::fs;
use std::io::{ErrorKind, IoSlice};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flex_core::io::os::OsFileSystem;
use flex_core::io::{FileSystem, LockMode, OpenMode};

/// A directory of its own for a test, removed at the end.
struct TempDir(PathBuf);

impl TempDir {
    fn new() -> TempDir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("flex-io-os-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        TempDir(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} stays: {error}", self.0.display());
        }
    }
}

/// Held by tests that start a process and by tests that lock again what they released: between fork and exec a child has
/// copies of all descriptors, and so holds their locks.
static NO_FORKS: Mutex<()> = Mutex::new(());

fn no_forks() -> MutexGuard<'static, ()> {
    NO_FORKS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(path: &Path, mode: LockMode) -> String {
    match OsFileSystem.lock(path, mode) {
        Ok(_) => panic!("{mode:?} lock was given"),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            error.to_string()
        }
    }
}

#[test]
fn open_modes() {
    let dir = TempDir::new();
    let path = dir.join("file");
    for mode in [OpenMode::ReadOnly, OpenMode::ReadWrite] {
        assert_eq!(OsFileSystem.open(&path, mode).err().unwrap().kind(), ErrorKind::NotFound);
    }
    let file = OsFileSystem.open(&path, OpenMode::CreateNew).unwrap();
    assert_eq!(OsFileSystem.open(&path, OpenMode::CreateNew).err().unwrap().kind(), ErrorKind::AlreadyExists);
    assert_eq!(file.write_at(&[IoSlice::new(b"abc")], 0).unwrap(), 3);
    let reader = OsFileSystem.open(&path, OpenMode::ReadOnly).unwrap();
    let mut buf = [0; 8];
    assert_eq!(reader.read_at(&mut buf, 1).unwrap(), 2);
    assert_eq!(&buf[..2], b"bc");
    assert!(reader.write_at(&[IoSlice::new(b"x")], 0).is_err());
    assert_eq!(reader.len().unwrap(), 3);
}

#[test]
fn names() {
    let dir = TempDir::new();
    let sub = dir.join("sub");
    OsFileSystem.create_dir(&sub).unwrap();
    assert_eq!(OsFileSystem.create_dir(&sub).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(OsFileSystem.create_dir(&dir.join("a/b")).unwrap_err().kind(), ErrorKind::NotFound);
    for name in ["one", "two"] {
        let file = OsFileSystem.open(&sub.join(name), OpenMode::CreateNew).unwrap();
        file.write_at(&[IoSlice::new(name.as_bytes())], 0).unwrap();
    }
    OsFileSystem.rename(&sub.join("one"), &sub.join("two")).unwrap();
    OsFileSystem.sync_dir(&sub).unwrap();
    assert_eq!(OsFileSystem.list_dir(&sub).unwrap(), [PathBuf::from("two")]);
    assert_eq!(fs::read(sub.join("two")).unwrap(), b"one");
    OsFileSystem.remove_file(&sub.join("two")).unwrap();
    assert!(OsFileSystem.list_dir(&sub).unwrap().is_empty());
    assert_eq!(OsFileSystem.remove_file(&sub.join("two")).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(OsFileSystem.sync_dir(&dir.join("none")).is_err());
}

#[test]
fn more_buffers_than_one_call_takes() {
    let dir = TempDir::new();
    let file = OsFileSystem.open(&dir.join("file"), OpenMode::CreateNew).unwrap();
    let bytes: Vec<u8> = (0..3000u32).map(|number| number as u8).collect();
    let mut bufs: Vec<IoSlice<'_>> = bytes.chunks(1).map(IoSlice::new).collect();
    flex_core::io::transfer::write_all_at(&*file, &mut bufs, 5).unwrap();
    let mut read = vec![0; 3005];
    flex_core::io::transfer::read_exact_at(&*file, &mut read, 0).unwrap();
    assert_eq!(&read[..5], [0; 5]);
    assert_eq!(&read[5..], bytes);
}

#[test]
fn reserve_and_punch_change_the_blocks() {
    const MIB: u64 = 1 << 20;
    let dir = TempDir::new();
    let file = OsFileSystem.open(&dir.join("file"), OpenMode::CreateNew).unwrap();
    file.write_at(&[IoSlice::new(&[7; 100])], 0).unwrap();
    file.reserve(0, MIB).unwrap();
    assert_eq!(file.len().unwrap(), MIB);
    let reserved = file.allocated().unwrap();
    file.punch_hole(MIB / 2, MIB / 2).unwrap();
    assert_eq!(file.len().unwrap(), MIB);
    let mut head = [0; 101];
    assert_eq!(file.read_at(&mut head, 0).unwrap(), 101);
    assert_eq!((&head[..100], head[100]), (&[7; 100][..], 0));
    file.sync_data().unwrap();
    // Where the file system knows neither call, both did nothing, as documented.
    if reserved >= MIB {
        assert!(file.allocated().unwrap() <= reserved - MIB / 2);
    }
    file.reserve(0, 0).unwrap();
    file.punch_hole(0, 0).unwrap();
    assert_eq!(file.len().unwrap(), MIB);
}

#[test]
fn offsets_beyond_the_kernels_are_errors() {
    let dir = TempDir::new();
    let file = OsFileSystem.open(&dir.join("file"), OpenMode::CreateNew).unwrap();
    for offset in [1 << 63, u64::MAX] {
        assert!(file.write_at(&[IoSlice::new(b"x")], offset).is_err());
        assert!(file.read_at(&mut [0], offset).is_err());
        assert!(file.set_len(offset).is_err());
        assert!(file.reserve(offset, 1).is_err());
        assert!(file.reserve(1, offset).is_err());
        assert!(file.punch_hole(offset, 1).is_err());
    }
    assert_eq!(file.len().unwrap(), 0);
}

#[test]
fn one_writer_or_many_readers() {
    let _alone = no_forks();
    let dir = TempDir::new();
    let path = dir.join("LOCK");
    let writer = OsFileSystem.lock(&path, LockMode::Exclusive).unwrap();
    let pid = std::process::id();
    assert_eq!(fs::read_to_string(&path).unwrap().trim(), pid.to_string());
    for mode in [LockMode::Exclusive, LockMode::Shared] {
        let text = refused(&path, mode);
        assert!(text.ends_with(&format!("LOCK is held by this process ({pid})")), "{text}");
    }
    drop(writer);
    let readers = [LockMode::Shared; 2].map(|mode| OsFileSystem.lock(&path, mode).unwrap());
    // The text in the file is the last writer's, and must not be blamed.
    let text = refused(&path, LockMode::Exclusive);
    assert!(text.ends_with("is held by a process that reads it"), "{text}");
    drop(readers);
    OsFileSystem.lock(&path, LockMode::Exclusive).unwrap();
    OsFileSystem.lock(&path, LockMode::Exclusive).unwrap();
}

#[test]
fn readers_need_no_lock_file_and_make_none() {
    let dir = TempDir::new();
    let path = dir.join("LOCK");
    let reader = OsFileSystem.lock(&path, LockMode::Shared).unwrap();
    assert!(!path.exists());
    drop(reader);
    assert!(OsFileSystem.lock(&dir.join("none/LOCK"), LockMode::Exclusive).is_err());
}

#[test]
fn readers_can_lock_what_they_must_not_write() {
    let dir = TempDir::new();
    let path = dir.join("LOCK");
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let readers = [LockMode::Shared; 2].map(|mode| OsFileSystem.lock(&path, mode).unwrap());
    drop(readers);
}

const CHILD_LOCK: &str = "FLEX_IO_OS_CHILD_LOCK";

/// Not a test of its own: what `the_holder_in_another_process_is_named` runs in a second process.
#[test]
fn child_process() {
    if let Some(path) = std::env::var_os(CHILD_LOCK) {
        println!("answer: {}", refused(Path::new(&path), LockMode::Exclusive));
    }
}

#[test]
fn the_holder_in_another_process_is_named() {
    let _alone = no_forks();
    let dir = TempDir::new();
    let path = dir.join("LOCK");
    // A longer pid from before, of which nothing may remain.
    fs::write(&path, "99999999999999999999\n").unwrap();
    let lock = OsFileSystem.lock(&path, LockMode::Exclusive).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "child_process", "--nocapture"]).env(CHILD_LOCK, &path);
    let output = child.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains(&format!("is held by process {}\n", std::process::id())), "{text}");
    // The child's exit has released nothing.
    refused(&path, LockMode::Exclusive);
    drop(lock);
    OsFileSystem.lock(&path, LockMode::Exclusive).unwrap();
}

#[test]
fn descriptors_do_not_reach_child_programs() {
    let _alone = no_forks();
    let dir = TempDir::new();
    let path = dir.join("LOCK");
    let lock = OsFileSystem.lock(&path, LockMode::Exclusive).unwrap();
    let file = OsFileSystem.open(&dir.join("file"), OpenMode::CreateNew).unwrap();
    let output = Command::new("ls").args(["-l", "/proc/self/fd"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success());
    assert!(!text.contains(&*dir.0.to_string_lossy()), "{text}");
    drop((lock, file));
}
