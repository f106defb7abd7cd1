//! Random operations: arguments are numbers that the runner scales to the file at hand, so that a shrunk list stays legal.

use crate::model::{Action, Bytes};
use flex_core::io::mem::CrashKind;
use proptest::prelude::*;

/// Names of files: short, longest, and no text.
pub fn name(index: u8) -> Vec<u8> {
    match index % 4 {
        0 => b"a".to_vec(),
        1 => vec![b'n'; 255],
        2 => vec![0xff, 1, b'/'],
        _ => b"b".to_vec(),
    }
}

/// A change of one file.
#[derive(Clone, Debug)]
pub enum Edit {
    Write { at: u32, gap: u16, len: u16, seed: u8 },
    Append { len: u16, seed: u8 },
    Insert { at: u32, len: u16, seed: u8 },
    InsertHole { at: u32, len: u16 },
    Collapse { at: u32, len: u16 },
    CollapseMost { at: u16 },
    Update { at: u32, old: u16, len: u16, seed: u8 },
    Truncate { size: u32 },
    Fallocate { at: u32, len: u16 },
    Punch { at: u32, len: u16 },
    SetTag { at: u32, tag: u16 },
}

/// One step of a run.
#[derive(Clone, Debug)]
pub enum Op {
    Create(u8),
    Rename(u8, u8),
    Remove(u8),
    Edit(u8, Edit),
    Group { files: Vec<u8>, edits: Vec<(u8, Edit)>, word: Option<u64>, commit: bool },
    Query(u8, u32, u16),
    Bad(u8),
    SnapshotFile(u8),
    SnapshotSpace,
    DropSnapshot(u8),
    Flush,
    Sync,
    Checkpoint,
    Gc,
    Defrag(u8, u32, u32),
    Close,
    Kill { flush: bool },
    Crash(u64, u8),
    ReadOnly,
}

/// Which crash.
pub fn crash_kind(index: u8) -> CrashKind {
    CrashKind::ALL[index as usize % CrashKind::ALL.len()]
}

/// `len` bytes that differ from each other and from other seeds'.
pub fn noise(seed: u8, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i as u8).wrapping_mul(7).wrapping_add((i >> 8) as u8 ^ seed) | 1).collect()
}

/// Longest file of a run: a longer one is cut before it grows again.
pub const MAX_LEN: usize = if cfg!(feature = "small_limits") { 24 << 10 } else { 256 << 10 };

impl Edit {
    /// The action on a file with these bytes.
    pub fn resolve(&self, file: &Bytes) -> Action {
        let len = file.len();
        let place = |at: u32| at as usize % (len + 1);
        let inside = |at: u32| if len == 0 { 0 } else { at as usize % len };
        let rest = |at: usize, n: u16| (n as usize).min(len - at);
        if len > MAX_LEN {
            return Action::Truncate(len / 4);
        }
        match *self {
            Edit::Write { at, gap, len: n, seed } => {
                let at = if gap % 4 == 0 { len + gap as usize / 4 } else { place(at) };
                Action::Write(at, noise(seed, n as usize))
            }
            Edit::Append { len: n, seed } => Action::Insert(len, noise(seed, n as usize)),
            Edit::Insert { at, len: n, seed } => Action::Insert(place(at), noise(seed, n as usize)),
            Edit::InsertHole { at, len: n } => Action::InsertHole(place(at), n as usize),
            Edit::Collapse { at, len: n } => Action::Collapse(place(at), rest(place(at), n)),
            Edit::CollapseMost { at } => {
                let at = at as usize % (len / 8 + 1);
                Action::Collapse(at, len - at)
            }
            Edit::Update { at, old, len: n, seed } => {
                Action::Update(place(at), rest(place(at), old), noise(seed, n as usize))
            }
            Edit::Truncate { size } => Action::Truncate(size as usize % (len + len / 2 + 100)),
            Edit::Fallocate { at, len: n } => Action::Fallocate(place(at), n as usize),
            Edit::Punch { at, len: n } => Action::Punch(place(at), rest(place(at), n)),
            Edit::SetTag { at, tag } if len > 0 => Action::SetTag(inside(at), tag % 5),
            Edit::SetTag { .. } => Action::Insert(0, vec![1]),
        }
    }
}

fn size() -> impl Strategy<Value = u16> {
    prop_oneof![4 => 0..40u16, 3 => 0..700u16, 2 => 0..5000u16, 1 => 0..30_000u16]
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = any::<u32>;
    prop_oneof![
        6 => (at(), any::<u16>(), size(), any::<u8>()).prop_map(|(at, gap, len, seed)| Edit::Write { at, gap, len, seed }),
        3 => (size(), any::<u8>()).prop_map(|(len, seed)| Edit::Append { len, seed }),
        8 => (at(), size(), any::<u8>()).prop_map(|(at, len, seed)| Edit::Insert { at, len, seed }),
        2 => (at(), size()).prop_map(|(at, len)| Edit::InsertHole { at, len }),
        5 => (at(), size()).prop_map(|(at, len)| Edit::Collapse { at, len }),
        1 => any::<u16>().prop_map(|at| Edit::CollapseMost { at }),
        3 => (at(), size(), size(), any::<u8>()).prop_map(|(at, old, len, seed)| Edit::Update { at, old, len, seed }),
        1 => at().prop_map(|size| Edit::Truncate { size }),
        1 => (at(), size()).prop_map(|(at, len)| Edit::Fallocate { at, len }),
        2 => (at(), size()).prop_map(|(at, len)| Edit::Punch { at, len }),
        5 => (at(), any::<u16>()).prop_map(|(at, tag)| Edit::SetTag { at, tag }),
    ]
}

fn group() -> impl Strategy<Value = Op> {
    let files = proptest::collection::vec(any::<u8>(), 1..4);
    let edits = proptest::collection::vec((any::<u8>(), edit()), 0..8);
    (files, edits, any::<Option<u64>>(), any::<bool>()).prop_map(|(files, edits, word, commit)| Op::Group {
        files,
        edits,
        word,
        commit,
    })
}

/// Operations; `deaths`: with kills and crashes that may lose what was not flushed or synced.
pub fn ops(deaths: bool, len: usize) -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        4 => any::<u8>().prop_map(Op::Create),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(a, b)| Op::Rename(a, b)),
        1 => any::<u8>().prop_map(Op::Remove),
        40 => (any::<u8>(), edit()).prop_map(|(file, edit)| Op::Edit(file, edit)),
        5 => group(),
        10 => (any::<u8>(), any::<u32>(), size()).prop_map(|(file, at, len)| Op::Query(file, at, len)),
        2 => any::<u8>().prop_map(Op::Bad),
        3 => any::<u8>().prop_map(Op::SnapshotFile),
        1 => Just(Op::SnapshotSpace),
        3 => any::<u8>().prop_map(Op::DropSnapshot),
        2 => Just(Op::Flush),
        3 => Just(Op::Sync),
        2 => Just(Op::Checkpoint),
        2 => Just(Op::Gc),
        1 => (any::<u8>(), any::<u32>(), any::<u32>()).prop_map(|(file, at, len)| Op::Defrag(file, at, len)),
        1 => Just(Op::Close),
        1 => Just(Op::Kill { flush: true }),
        1 => Just(Op::ReadOnly),
        2 => Just(Op::Kill { flush: !deaths }),
        2 => (any::<u64>(), any::<u8>())
            .prop_map(move |(seed, kind)| if deaths { Op::Crash(seed, kind) } else { Op::Sync }),
    ];
    proptest::collection::vec(op, 1..len)
}
