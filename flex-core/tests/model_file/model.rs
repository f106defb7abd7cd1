//! The model of a space: a vector of bytes a file, each with its tag and whether it lies in a hole.
//!
//! A clone is cheap (files are shared until they change), so that every state of a run can be kept and compared.

use std::collections::BTreeMap;
use std::sync::Arc;

/// One byte of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Byte {
    pub value: u8,
    pub hole: bool,
    pub tag: u16,
}

const HOLE: Byte = Byte { value: 0, hole: true, tag: 0 };

/// The bytes of one file.
pub type Bytes = Vec<Byte>;

/// All files of a space.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Model {
    pub files: BTreeMap<Vec<u8>, Arc<Bytes>>,
    pub commit_word: u64,
}

/// A change with its arguments worked out: it is legal on the file that it was made for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    Write(usize, Vec<u8>),
    Insert(usize, Vec<u8>),
    InsertHole(usize, usize),
    Collapse(usize, usize),
    Update(usize, usize, Vec<u8>),
    Truncate(usize),
    Fallocate(usize, usize),
    Punch(usize, usize),
    SetTag(usize, u16),
}

fn data(bytes: &[u8]) -> impl Iterator<Item = Byte> + '_ {
    bytes.iter().map(|value| Byte { value: *value, hole: false, tag: 0 })
}

/// What the action makes of the file.
pub fn apply(file: &mut Bytes, action: &Action) {
    match action {
        Action::Write(at, bytes) => {
            if bytes.is_empty() {
                return;
            }
            if file.len() < at + bytes.len() {
                file.resize(at + bytes.len(), HOLE);
            }
            for (byte, value) in file[*at..].iter_mut().zip(bytes) {
                *byte = Byte { value: *value, hole: false, tag: byte.tag };
            }
        }
        Action::Insert(at, bytes) => drop(file.splice(at..at, data(bytes))),
        Action::InsertHole(at, len) => drop(file.splice(at..at, std::iter::repeat_n(HOLE, *len))),
        Action::Collapse(at, len) => drop(file.drain(*at..at + len)),
        Action::Update(at, len, bytes) => {
            let tag = if *len > 0 { file[*at].tag } else { 0 };
            drop(file.splice(*at..at + len, data(bytes)));
            if *len > 0 && !bytes.is_empty() {
                file[*at].tag = tag;
            }
        }
        Action::Truncate(size) => file.resize(*size, HOLE),
        Action::Fallocate(at, len) => file.resize(file.len().max(at + len), HOLE),
        Action::Punch(at, len) => {
            file[*at..at + len].iter_mut().for_each(|byte| *byte = Byte { tag: byte.tag, ..HOLE })
        }
        Action::SetTag(at, tag) => file[*at].tag = *tag,
    }
}

impl Model {
    /// Changes one file.
    pub fn apply(&mut self, name: &[u8], action: &Action) {
        if let Some(file) = self.files.get_mut(name) {
            apply(Arc::make_mut(file), action);
        }
    }
}

/// The values of a range.
pub fn values(bytes: &[Byte]) -> Vec<u8> {
    bytes.iter().map(|byte| byte.value).collect()
}

/// The first position at or behind `from` that `wanted` accepts.
pub fn find(bytes: &[Byte], from: usize, wanted: impl Fn(&Byte) -> bool) -> Option<u64> {
    (from..bytes.len()).find(|at| wanted(&bytes[*at])).map(|at| at as u64)
}
