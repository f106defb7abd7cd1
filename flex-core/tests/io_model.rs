//! Every file system against a plain vector of bytes: in memory, on the disk, and both through one-byte transfers.

use std::collections::BTreeMap;
use std::io::{ErrorKind, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use flex_core::io::fault::FaultFileSystem;
use flex_core::io::mem::MemFileSystem;
use flex_core::io::os::OsFileSystem;
use flex_core::io::{File, FileSystem, OpenMode, transfer};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    Write(u64, Vec<u8>),
    WriteParts(u64, Vec<Vec<u8>>),
    SetLen(u64),
    Reserve(u64, u64),
    Punch(u64, u64),
    Sync,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    // Offsets near page and sector borders as well as anywhere.
    let offset = prop_oneof![0u64..20_000, (0u64..5, 0u64..3).prop_map(|(page, off)| page * 4096 + off)];
    let len = prop_oneof![0u64..600, 4000u64..9000];
    let bytes = (len.clone(), 1u8..).prop_map(|(len, byte)| vec![byte; len as usize]);
    let op = prop_oneof![
        4 => (offset.clone(), bytes.clone()).prop_map(|(offset, bytes)| Op::Write(offset, bytes)),
        1 => (offset.clone(), prop::collection::vec(bytes, 0..4)).prop_map(|(offset, parts)| Op::WriteParts(offset, parts)),
        1 => offset.clone().prop_map(Op::SetLen),
        1 => (offset.clone(), len.clone()).prop_map(|(offset, len)| Op::Reserve(offset, len)),
        2 => (offset, len).prop_map(|(offset, len)| Op::Punch(offset, len)),
        1 => Just(Op::Sync),
    ];
    prop::collection::vec(op, 1..40)
}

/// What a file is: bytes.
fn apply_to_model(model: &mut Vec<u8>, op: &Op) {
    let extend = |model: &mut Vec<u8>, end: u64| model.resize(model.len().max(end as usize), 0);
    match op {
        Op::Write(offset, bytes) => {
            if !bytes.is_empty() {
                extend(model, offset + bytes.len() as u64);
                model[*offset as usize..][..bytes.len()].copy_from_slice(bytes);
            }
        }
        Op::WriteParts(offset, parts) => apply_to_model(model, &Op::Write(*offset, parts.concat())),
        Op::SetLen(len) => model.resize(*len as usize, 0),
        Op::Reserve(offset, len) => {
            if *len > 0 {
                extend(model, offset + len);
            }
        }
        Op::Punch(offset, len) => {
            let end = ((offset + len) as usize).min(model.len());
            let start = (*offset as usize).min(end);
            model[start..end].fill(0);
        }
        Op::Sync => {}
    }
}

fn apply(file: &dyn File, op: &Op) {
    match op {
        Op::Write(offset, bytes) => transfer::write_all_at(file, &mut [IoSlice::new(bytes)], *offset).unwrap(),
        Op::WriteParts(offset, parts) => {
            let mut bufs: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
            transfer::write_all_at(file, &mut bufs, *offset).unwrap();
        }
        Op::SetLen(len) => file.set_len(*len).unwrap(),
        Op::Reserve(offset, len) => file.reserve(*offset, *len).unwrap(),
        Op::Punch(offset, len) => file.punch_hole(*offset, *len).unwrap(),
        Op::Sync => file.sync_data().unwrap(),
    }
}

fn check(fs: &dyn FileSystem, path: &Path, ops: &[Op]) {
    let file = fs.open(path, OpenMode::CreateNew).unwrap();
    let mut model = Vec::new();
    for (number, op) in ops.iter().enumerate() {
        apply(&*file, op);
        apply_to_model(&mut model, op);
        assert_eq!(file.len().unwrap(), model.len() as u64, "length after {number}: {op:?}");
        let mut bytes = vec![0xEE; model.len() + 10];
        let read = transfer::read_up_to_at(&*file, &mut bytes, 0).unwrap();
        assert!(bytes[..read] == model[..], "bytes after {number}: {op:?}");
        let mut middle = [0xEE; 700];
        let from = model.len() / 2;
        let read = transfer::read_up_to_at(&*file, &mut middle, from as u64).unwrap();
        assert_eq!(read, (model.len() - from).min(700));
        assert!(middle[..read] == model[from..from + read]);
    }
    fs.remove_file(path).unwrap();
}

fn one_byte_transfers(below: Arc<dyn FileSystem>, bytes: usize) -> FaultFileSystem {
    let fs = FaultFileSystem::new(below);
    fs.control().set_max_transfer(bytes);
    fs
}

proptest! {
    #[test]
    fn memory(ops in ops()) {
        let fs = MemFileSystem::new();
        check(&fs, Path::new("file"), &ops);
        // The name is gone, and its removal is made durable: so is the space.
        fs.sync_dir(Path::new("/")).unwrap();
        prop_assert_eq!(fs.used(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn disk(ops in ops()) {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("flex-io-model-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        check(&OsFileSystem, &std::env::temp_dir().join(name), &ops);
    }

    #[test]
    fn small_transfers(ops in ops(), bytes in prop_oneof![Just(1usize), 2usize..700]) {
        check(&one_byte_transfers(Arc::new(MemFileSystem::new()), bytes), Path::new("file"), &ops);
    }

    #[test]
    fn blocks_are_counted(ops in ops()) {
        let fs = MemFileSystem::new();
        let file = fs.open(Path::new("file"), OpenMode::CreateNew).unwrap();
        for op in &ops {
            apply(&*file, op);
            prop_assert_eq!(file.allocated().unwrap(), fs.used());
            prop_assert_eq!(fs.used() % 4096, 0);
        }
        prop_assert_eq!(fs.deep_copy().used(), fs.used());
        file.set_len(0).unwrap();
        prop_assert_eq!(fs.used(), 0);
    }
}

#[test]
fn huge_sparse_files_cost_nothing() {
    let fs = MemFileSystem::new();
    let file = fs.open(Path::new("file"), OpenMode::CreateNew).unwrap();
    file.set_len(1 << 50).unwrap();
    file.write_at(&[IoSlice::new(b"end")], (1 << 50) - 1).unwrap();
    file.punch_hole(0, 1 << 50).unwrap();
    assert_eq!(file.len().unwrap(), (1 << 50) + 2);
    assert_eq!(file.allocated().unwrap(), 4096);
    for offset in [i64::MAX as u64, u64::MAX] {
        assert_eq!(file.write_at(&[IoSlice::new(b"x")], offset).unwrap_err().raw_os_error(), Some(libc::EFBIG));
        assert!(file.punch_hole(offset, 2).is_err());
    }
}

#[test]
fn a_full_disk_changes_nothing() {
    let fs = MemFileSystem::new();
    fs.set_capacity(3 * 4096 + 100);
    let file = fs.open(Path::new("file"), OpenMode::CreateNew).unwrap();
    let other = fs.open(Path::new("other"), OpenMode::CreateNew).unwrap();
    file.reserve(0, 8192).unwrap();
    other.write_at(&[IoSlice::new(b"x")], 0).unwrap();
    for result in [file.reserve(0, 8193), other.write_at(&[IoSlice::new(&[1; 4097])], 0).map(|_| ())] {
        assert_eq!(result.unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    }
    assert_eq!((file.len().unwrap(), other.len().unwrap(), fs.used()), (8192, 1, 3 * 4096));
    // What is reserved can be written, and what is given back can be taken.
    assert_eq!(file.write_at(&[IoSlice::new(&[2; 8192])], 0).unwrap(), 8192);
    file.punch_hole(0, 4096).unwrap();
    other.reserve(0, 8192).unwrap();
    assert_eq!(file.write_at(&[IoSlice::new(b"x")], 0).unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    // A removed file's blocks come back with its last handle, once the removal is durable.
    fs.remove_file(Path::new("other")).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    assert_eq!(fs.used(), 3 * 4096);
    drop(other);
    assert_eq!(fs.used(), 4096);
}

#[derive(Clone, Debug)]
enum NameOp {
    Create(u8),
    Remove(u8),
    Rename(u8, u8),
    SyncDir,
}

fn name_ops() -> impl Strategy<Value = Vec<NameOp>> {
    let name = 0u8..4;
    let op = prop_oneof![
        3 => name.clone().prop_map(NameOp::Create),
        1 => name.clone().prop_map(NameOp::Remove),
        2 => (name.clone(), name).prop_map(|(from, to)| NameOp::Rename(from, to)),
        1 => Just(NameOp::SyncDir),
    ];
    prop::collection::vec(op, 1..30)
}

fn path(name: u8) -> PathBuf {
    PathBuf::from(format!("/dir/{name}"))
}

proptest! {
    #[test]
    fn names_in_memory(ops in name_ops()) {
        let fs = MemFileSystem::new();
        fs.create_dir(Path::new("/dir")).unwrap();
        let mut model: BTreeMap<u8, u64> = BTreeMap::new();
        for (number, op) in ops.iter().enumerate() {
            match op {
                NameOp::Create(name) => match fs.open(&path(*name), OpenMode::CreateNew) {
                    // Its length says which file it is.
                    Ok(file) => {
                        file.set_len(number as u64).unwrap();
                        prop_assert_eq!(model.insert(*name, number as u64), None);
                    }
                    Err(error) => {
                        prop_assert_eq!(error.kind(), ErrorKind::AlreadyExists);
                        prop_assert!(model.contains_key(name));
                    }
                },
                NameOp::Remove(name) => prop_assert_eq!(fs.remove_file(&path(*name)).is_ok(), model.remove(name).is_some()),
                NameOp::Rename(from, to) => {
                    let renamed = fs.rename(&path(*from), &path(*to)).is_ok();
                    prop_assert_eq!(renamed, model.contains_key(from));
                    if let Some(file) = model.remove(from) {
                        model.insert(*to, file);
                    }
                }
                NameOp::SyncDir => fs.sync_dir(Path::new("dir")).unwrap(),
            }
            let mut names = fs.list_dir(Path::new("dir")).unwrap();
            names.sort();
            let expected: Vec<PathBuf> = model.keys().map(|name| PathBuf::from(name.to_string())).collect();
            prop_assert_eq!(names, expected);
            for (name, len) in &model {
                prop_assert_eq!(fs.open(&path(*name), OpenMode::ReadOnly).unwrap().len().unwrap(), *len);
            }
        }
    }
}

#[test]
fn names_that_are_refused() {
    let fs = MemFileSystem::new();
    let kind = |result: std::io::Result<()>| result.unwrap_err().kind();
    fs.create_dir(Path::new("a")).unwrap();
    fs.create_dir(Path::new("/a/b")).unwrap();
    assert_eq!(kind(fs.create_dir(Path::new("a/b"))), ErrorKind::AlreadyExists);
    assert_eq!(kind(fs.create_dir(Path::new("/"))), ErrorKind::AlreadyExists);
    assert_eq!(kind(fs.create_dir(Path::new("x/y"))), ErrorKind::NotFound);
    let file = fs.open(Path::new("a/file"), OpenMode::CreateNew).unwrap();
    assert_eq!(kind(fs.create_dir(Path::new("a/file/x"))), ErrorKind::NotADirectory);
    assert_eq!(kind(fs.remove_file(Path::new("a/b"))), ErrorKind::IsADirectory);
    assert_eq!(kind(fs.rename(Path::new("a/file"), Path::new("a/b"))), ErrorKind::IsADirectory);
    assert_eq!(kind(fs.rename(Path::new("a/file"), Path::new("file"))), ErrorKind::CrossesDevices);
    assert_eq!(kind(fs.list_dir(Path::new("none")).map(|_| ())), ErrorKind::NotFound);
    assert_eq!(fs.list_dir(Path::new("/")).unwrap(), [PathBuf::from("a")]);
    let reader = fs.open(Path::new("./a/file"), OpenMode::ReadOnly).unwrap();
    assert!(reader.write_at(&[IoSlice::new(b"x")], 0).is_err());
    assert!(reader.set_len(1).is_err());
    assert_eq!(file.len().unwrap(), 0);
}
