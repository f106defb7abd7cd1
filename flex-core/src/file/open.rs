//! Opening a space: finding out what the directory holds, creating what is missing, recovery.
//!
//! A new space is complete when `TREE` has its name: it is written under `TREE.new` and renamed last. A directory
//! without it is taken for an unfinished creation only if nothing but our names is in it and `DATA` is empty.

use super::catalog::Catalog;
use super::core::{Core, Counters};
use super::geometry::Geometry;
use super::logical_log::{FRAMES_START, LOG_NAMES, LogHeader, LogicalLog};
use super::page_store::{PageBitmap, PageStore};
use super::recovery::{self, CheckpointNeed, Recovery};
use super::segment::SegmentArray;
use super::segment_table::SegmentTable;
use super::segment_writer::{DataStore, SegmentWriter};
use super::shared::{Parts, Shared};
use super::snapshots::SnapshotList;
use super::space::file_state;
use super::superblock::Superblock;
use crate::address::PageId;
use crate::codec::crc::crc32;
use crate::io::fail_stop::{FailStopFile, Latch};
use crate::io::{DirLock, FileSystem, LockMode, OpenMode};
use crate::limits::PAGE_BYTES;
use crate::options::{Durability, LogLevel, SpaceOptions};
use crate::{Error, ErrorKind, Result};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DATA_NAME: &str = "DATA";
const TREE_NAME: &str = "TREE";
const NEW_TREE_NAME: &str = "TREE.new";
const LOCK_NAME: &str = "LOCK";
/// The superblock that a creation writes.
const FIRST_GENERATION: u64 = 1;

/// Opens or creates the space in a directory.
pub fn open(fs: Arc<dyn FileSystem>, path: &Path, options: &SpaceOptions) -> Result<Shared> {
    check_options(options)?;
    if !prepare_directory(&*fs, path, options)? {
        return Err(Error::new(ErrorKind::NotFound, "there is no space here").at_path(path));
    }
    let lock = lock(&*fs, path, options)?;
    // Again, because another process may have been faster.
    if contents(&*fs, path)? == Contents::Unfinished {
        if options.read_only || !options.create {
            return Err(Error::new(ErrorKind::NotFound, "there is no space here").at_path(path));
        }
        create(&*fs, path, options)?;
    } else if options.exclusive {
        return Err(Error::new(ErrorKind::AlreadyExists, "there is a space here already").at_path(path));
    }
    recover(&*fs, path, options, lock)
}

fn check_options(options: &SpaceOptions) -> Result<()> {
    Geometry::new(options.segment_size_bytes)?;
    if matches!(options.durability, Durability::Interval(_)) && !options.background {
        return Err(Error::invalid("durability by interval needs the background thread"));
    }
    if options.read_only && options.exclusive {
        return Err(Error::invalid("exclusive creation contradicts opening for reading only"));
    }
    Ok(())
}

#[derive(PartialEq, Eq)]
enum Contents {
    /// `TREE` is there.
    Space,
    /// Nothing, or what an interrupted creation left.
    Unfinished,
}

/// Looks at the directory, and creates it where it may be. Returns whether there is one to go on with.
fn prepare_directory(fs: &dyn FileSystem, path: &Path, options: &SpaceOptions) -> Result<bool> {
    match contents(fs, path) {
        Ok(Contents::Space) => Ok(true),
        Ok(Contents::Unfinished) => Ok(options.create && !options.read_only),
        Err(error) if error.kind() == ErrorKind::NotFound && options.create && !options.read_only => {
            fs.create_dir(path).map_err(|e| Error::from_io("creating the directory", &e).at_path(path))?;
            Ok(true)
        }
        Err(error) => Err(error),
    }
}

fn contents(fs: &dyn FileSystem, path: &Path) -> Result<Contents> {
    let names = fs.list_dir(path).map_err(|e| match e.raw_os_error() {
        Some(libc::ENOTDIR) => Error::invalid("a space is a directory, and this is not one").at_path(path),
        _ => Error::from_io("listing the directory", &e).at_path(path),
    })?;
    if names.iter().any(|name| name == Path::new(TREE_NAME)) {
        return Ok(Contents::Space);
    }
    let ours = [DATA_NAME, NEW_TREE_NAME, LOCK_NAME, LOG_NAMES[0], LOG_NAMES[1]];
    if let Some(foreign) = names.iter().find(|name| !ours.iter().any(|our| name.as_os_str() == *our)) {
        let text = format!("the directory is not a space: it holds {:?} and no {TREE_NAME}", foreign.display());
        return Err(Error::invalid(text).at_path(path));
    }
    if names.iter().any(|name| name == Path::new(DATA_NAME)) {
        let data = open_file(fs, path, DATA_NAME, OpenMode::ReadOnly, &Latch::new())?;
        if data.len()? > 0 {
            return Err(Error::corruption(format!("{DATA_NAME} holds data, but {TREE_NAME} is missing")).at_path(path));
        }
    }
    Ok(Contents::Unfinished)
}

fn lock(fs: &dyn FileSystem, path: &Path, options: &SpaceOptions) -> Result<Box<dyn DirLock>> {
    let mode = if options.read_only { LockMode::Shared } else { LockMode::Exclusive };
    let file = path.join(LOCK_NAME);
    fs.lock(&file, mode).map_err(|e| {
        let error = Error::from_io("locking the space", &e).at_path(&file);
        if e.kind() == std::io::ErrorKind::WouldBlock { error.with_kind(ErrorKind::Busy) } else { error }
    })
}

fn open_file(fs: &dyn FileSystem, dir: &Path, name: &str, mode: OpenMode, latch: &Latch) -> Result<FailStopFile> {
    let path = dir.join(name);
    let file = fs.open(&path, mode).map_err(|e| Error::from_io("opening a file of the space", &e).at_path(&path))?;
    Ok(FailStopFile::new(file, path, latch.clone()))
}

/// Writes the files of a new space. `TREE` gets its name last.
fn create(fs: &dyn FileSystem, path: &Path, options: &SpaceOptions) -> Result<()> {
    let names = fs.list_dir(path).map_err(|e| Error::from_io("listing the directory", &e).at_path(path))?;
    for name in names.iter().filter(|name| name.as_os_str() != LOCK_NAME) {
        let old = path.join(name);
        fs.remove_file(&old).map_err(|e| Error::from_io("removing what a creation left", &e).at_path(&old))?;
    }
    let latch = Latch::new();
    let space_id = random_id();
    for (name, generation) in LOG_NAMES.iter().zip(0..) {
        let log = open_file(fs, path, name, OpenMode::CreateNew, &latch)?;
        log.reserve(0, FRAMES_START)?;
        log.write_at(&LogHeader { space_id, generation, base: 0 }.encode(), 0)?;
        log.sync_data()?;
    }
    open_file(fs, path, DATA_NAME, OpenMode::CreateNew, &latch)?.sync_data()?;
    let tree = open_file(fs, path, NEW_TREE_NAME, OpenMode::CreateNew, &latch)?;
    write_first_superblock(&tree, space_id, options.segment_size_bytes)?;
    sync_dir(fs, path)?;
    let (from, to) = (path.join(NEW_TREE_NAME), path.join(TREE_NAME));
    fs.rename(&from, &to).map_err(|e| Error::from_io("naming the new space", &e).at_path(&to))
}

fn sync_dir(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    fs.sync_dir(dir).map_err(|e| Error::from_io("syncing the directory", &e).at_path(dir))
}

/// Makes the names of a space durable, and its own name.
fn sync_names(fs: &dyn FileSystem, path: &Path) -> Result<()> {
    sync_dir(fs, path)?;
    match path.parent() {
        Some(parent) if parent != Path::new("") => sync_dir(fs, parent),
        Some(_) => sync_dir(fs, Path::new(".")),
        None => Ok(()),
    }
}

fn write_first_superblock(tree: &FailStopFile, space_id: [u8; 16], segment_bytes: u32) -> Result<()> {
    const CATALOG_PAGE: u64 = 2;
    let mut pages = PageBitmap::new(CATALOG_PAGE + 1);
    pages.mark(CATALOG_PAGE);
    let mut catalog = Catalog::default().encode_without_pages();
    Catalog::encode_pages(&pages, &mut catalog);
    let superblock = Superblock {
        space_id,
        unknown_read_flags: 0,
        generation: FIRST_GENERATION,
        log_generation: FIRST_GENERATION + 1,
        sequence: 0,
        commit_word: 0,
        segment_bytes,
        catalog_crc: crc32(&catalog),
        catalog_page: PageId(CATALOG_PAGE),
        catalog_len: catalog.len() as u64,
        next_file_id: 1,
        page_count: pages.len(),
        hash_seed: random_word(),
    };
    tree.reserve(0, pages.len() * PAGE_BYTES as u64)?;
    tree.write_at(&catalog, CATALOG_PAGE * PAGE_BYTES as u64)?;
    tree.write_all_at(&mut [IoSlice::new(&superblock.encode())], Superblock::slot_offset(superblock.generation))?;
    tree.sync_data()
}

/// Reads the state of a space that is there, and makes it ready to go on.
fn recover(fs: &dyn FileSystem, path: &Path, options: &SpaceOptions, lock: Box<dyn DirLock>) -> Result<Shared> {
    let latch = Latch::new();
    let mode = if options.read_only { OpenMode::ReadOnly } else { OpenMode::ReadWrite };
    let tree = open_file(fs, path, TREE_NAME, mode, &latch)?;
    let superblock = recovery::read_superblock(&tree)?;
    if superblock.unknown_read_flags != 0 && !options.read_only {
        let text = format!("needs features {:#x} to be written; open it for reading", superblock.unknown_read_flags);
        return Err(Error::new(ErrorKind::Version, text).at_path(path));
    }
    if superblock.generation == FIRST_GENERATION && !options.read_only {
        // Also where another process created it: that may have been killed before it came to this.
        sync_names(fs, path)?;
    }
    let catalog = recovery::read_catalog(&tree, &superblock)?;
    let geometry = Geometry::new(superblock.segment_bytes)?;
    let open = |name| open_file(fs, path, name, mode, &latch);
    let logs = [Arc::new(open(LOG_NAMES[0])?), Arc::new(open(LOG_NAMES[1])?)];
    let space_id = superblock.space_id;
    let data = DataStore { file: open(DATA_NAME)?, segments: SegmentArray::new(), geometry, space_id };
    let mut map = catalog.pages.clone();
    map.clip(tree.len()? / PAGE_BYTES as u64);
    let pages = PageStore::new(tree, space_id, map);

    let mut recovery = Recovery::new(&superblock, catalog, &data, &pages);
    let replayed = recovery.replay(&superblock, &logs, options.read_only)?;
    let open_segments = recovery.finish_segments(options.read_only)?;
    let state = recovery.into_state()?;

    let follows = replayed.checkpoint == CheckpointNeed::Soon;
    let (generation, base) = (replayed.next_generation, superblock.generation);
    let log = LogicalLog::new(logs, space_id, generation, base, state.sequence, superblock.sequence, follows)?;
    let mut core = new_core(log, state.table);
    core.commit_word = state.commit_word;
    core.next_file_id = state.next_file_id;
    core.released_pages = state.released_pages;
    core.drops = state.drops;
    // What the log held may be in the kernel only, as after a kill: nothing is known of it before the next sync.
    core.durable_sequence = if follows { superblock.sequence } else { state.sequence };
    if follows {
        core.writer.expect_unsynced();
    }
    core.superblock_generation = superblock.generation;
    core.files = state.files.into_iter().map(|(id, file)| (file.name, Arc::new(file_state(id, file.tree)))).collect();
    for open in &open_segments {
        core.writer.resume(open.clone(), &data);
    }
    let catalog_run = recovery::catalog_pages(&superblock).into_iter().filter(|page| pages.is_used(*page)).collect();
    let hash_seed = superblock.hash_seed;
    let (path, options) = (path.to_path_buf(), options.clone());
    let shared = Shared::new(Parts { path, options, latch, data, pages, core, catalog_run, hash_seed, lock });
    if replayed.checkpoint != CheckpointNeed::None {
        shared.say(LogLevel::Info, &format!("the space was not closed; {} operations were replayed", state.operations));
        if !shared.options.read_only {
            shared.freeze_recovered(open_segments);
        }
    }
    if replayed.checkpoint == CheckpointNeed::First && !shared.options.read_only {
        shared.checkpoint()?;
    }
    Ok(shared)
}

fn new_core(log: LogicalLog, table: SegmentTable) -> Core {
    Core {
        log,
        writer: SegmentWriter::new(),
        table,
        files: Default::default(),
        next_file_id: 1,
        commit_word: 0,
        snapshots: SnapshotList::default(),
        released_pages: Vec::new(),
        superseded: Vec::new(),
        drops: Vec::new(),
        epoch: 0,
        checkpoint_running: false,
        checkpoint_pending: false,
        durable_sequence: 0,
        superblock_generation: 0,
        operations: 0,
        group_owners: Vec::new(),
        gc_futile_at: 0,
        dirty_nodes: 0,
        dirty_nodes_covered: 0,
        frozen_pages: 0,
        catalog_pages: 4,
        counters: Counters::default(),
    }
}

fn random_id() -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&random_word().to_le_bytes());
    id[8..].copy_from_slice(&random_word().to_le_bytes());
    id
}

/// Random bits from the standard library's hasher, which the system's random source seeds.
fn random_word() -> u64 {
    let moment = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    RandomState::new().hash_one((moment, std::process::id(), PathBuf::new()))
}
