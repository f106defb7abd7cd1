//! Damage: each byte of a small space flipped in turn, and its files cut at many lengths. The right bytes or an honest
//! error; never wrong bytes, never an older state, never a panic.
//!
//! Of a space that was killed, damage behind the last recorded durable offset of the log may also give the state before
//! the damaged frame: any state that the log went through since that offset, nothing older.

use flex_core::address::Tag;
use flex_core::file::{FlexSpace, SpaceOptions};
use flex_core::io::mem::MemFileSystem;
use flex_core::io::{FileSystem, OpenMode};
use flex_core::limits::MIN_SEGMENT_BYTES;
use flex_core::{ErrorKind, Result};
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

const DIR: &str = "/space";
const NAMES: [&str; 5] = ["TREE", "LOG.0", "LOG.1", "DATA", "LOCK"];

/// All that a space says: names, bytes, tags, holes.
type State = Vec<(Vec<u8>, Vec<u8>, Vec<(u64, u16)>, Option<u64>)>;

fn open(fs: &MemFileSystem, read_only: bool) -> Result<FlexSpace> {
    let options = SpaceOptions {
        background: false,
        create: !read_only,
        read_only,
        segment_size_bytes: MIN_SEGMENT_BYTES,
        ..SpaceOptions::default()
    };
    FlexSpace::open_with(Arc::new(fs.clone()) as Arc<dyn FileSystem>, Path::new(DIR), &options)
}

fn state(space: &FlexSpace) -> Result<State> {
    let mut state = State::new();
    for entry in space.list_files()? {
        let file = space.open_file(&entry.name)?;
        let mut bytes = vec![0; file.size()? as usize];
        file.read(0, &mut bytes)?;
        let mut tags = Vec::new();
        let mut at = 0;
        while let Some((offset, tag)) = file.next_tagged(at)? {
            tags.push((offset, tag.0));
            at = offset + 1;
        }
        state.push((entry.name, bytes, tags, file.next_hole(0)?));
    }
    Ok(state)
}

fn noise(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| ((i * 31 + seed * 17) ^ (i >> 7)) as u8 | 1).collect()
}

fn fill(space: &FlexSpace) -> Result<()> {
    let segment = MIN_SEGMENT_BYTES as usize;
    let a = space.create_file(b"a")?;
    let b = space.create_file(b"bb")?;
    let gone = space.create_file(b"gone")?;
    gone.write(0, &noise(9, 2 * segment))?;
    for i in 0..60 {
        a.insert((i * 7919 % (a.size()? as usize + 1)) as u64, &noise(i, 30 + i))?;
    }
    a.set_tag(17, Tag(5))?;
    a.set_tag(400, Tag(65535))?;
    b.write(3000, &noise(3, segment + 100))?;
    b.punch_hole(4000, 700)?;
    space.sync()?;
    space.remove_file(b"gone")?;
    space.gc()?;
    space.create_file(b"empty")?;
    Ok(())
}

fn closed_space() -> (MemFileSystem, State) {
    let fs = MemFileSystem::new();
    let space = open(&fs, false).unwrap();
    fill(&space).unwrap();
    let expected = state(&space).unwrap();
    space.close().unwrap();
    (fs, expected)
}

fn len_of(fs: &MemFileSystem, name: &str) -> u64 {
    fs.open(&Path::new(DIR).join(name), OpenMode::ReadOnly).unwrap().len().unwrap()
}

fn flip(fs: &MemFileSystem, name: &str, at: u64) {
    let file = fs.open(&Path::new(DIR).join(name), OpenMode::ReadWrite).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, at).unwrap();
    byte[0] ^= 1 << (at.wrapping_mul(0x9e37_79b9) >> 13 & 7);
    file.write_at(&[IoSlice::new(&byte)], at).unwrap();
}

fn cut(fs: &MemFileSystem, name: &str, len: u64) {
    fs.open(&Path::new(DIR).join(name), OpenMode::ReadWrite).unwrap().set_len(len).unwrap();
}

/// Opens what is left both ways: one of the expected states, or an error that names the damage. Returns whether it was
/// an error.
fn judge(fs: &MemFileSystem, expected: &[State], what: &str) -> bool {
    let mut damaged = false;
    for read_only in [true, false] {
        let copy = fs.deep_copy();
        match open(&copy, read_only).and_then(|space| state(&space)) {
            Ok(found) => assert!(expected.contains(&found), "{what}, read_only {read_only}: another state"),
            Err(error) => {
                let honest = matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Version);
                assert!(honest, "{what}, read_only {read_only}: {error:?}");
                damaged = true;
            }
        }
    }
    damaged
}

/// Every byte of headers and `TREE`, and every `step`-th of the rest.
fn places(len: u64, name: &str, step: u64) -> Vec<u64> {
    let dense = if name == "TREE" { len } else { len.min(600) };
    (0..dense).chain((dense..len).step_by(step as usize)).collect()
}

fn step() -> u64 {
    if std::env::var_os("FLEX_LONG").is_some() { 1 } else { 61 }
}

#[test]
fn every_flipped_byte_of_a_closed_space_is_harmless_or_found() {
    let (fs, expected) = closed_space();
    let expected = [expected];
    assert!(!judge(&fs, &expected, "undamaged"));
    for name in NAMES {
        let mut found = 0;
        for at in places(len_of(&fs, name), name, step()) {
            // Zero pages of TREE behind a page's used part cost time and show nothing new.
            if name == "TREE" && at >= 8192 && at % 4096 > 700 && at % 13 != 0 {
                continue;
            }
            let copy = fs.deep_copy();
            flip(&copy, name, at);
            found += judge(&copy, &expected, &format!("byte {at} of {name}")) as u64;
        }
        let must_be_found = matches!(name, "TREE" | "DATA" | "LOG.0" | "LOG.1");
        assert_eq!(found > 0, must_be_found, "{found} flips of {name} were found");
    }
}

#[test]
fn every_cut_of_a_closed_space_is_harmless_or_found() {
    let (fs, expected) = closed_space();
    let expected = [expected];
    for name in ["TREE", "LOG.0", "LOG.1", "DATA"] {
        let len = len_of(&fs, name);
        let lens = (0..len).step_by(509).chain([1, 511, 512, 4095, 4096, 4097, 8191, 8192, len.saturating_sub(1)]);
        for cut_to in lens.filter(|at| *at < len) {
            let copy = fs.deep_copy();
            cut(&copy, name, cut_to);
            judge(&copy, &expected, &format!("{name} cut to {cut_to}"));
        }
    }
}

#[test]
fn damage_of_a_killed_space_gives_at_most_the_state_before_the_damaged_frame() {
    let fs = MemFileSystem::new();
    let space = open(&fs, false).unwrap();
    fill(&space).unwrap();
    space.checkpoint().unwrap();
    let a = space.open_file(b"a").unwrap();
    // What is recorded as durable must not go; what came after it may.
    for i in 0..20 {
        a.insert(i * 3, &noise(i as usize, 9)).unwrap();
    }
    space.sync().unwrap();
    let mut states = Vec::new();
    for i in 0..12 {
        a.insert(i, &noise(i as usize + 50, 40)).unwrap();
        if i >= 1 {
            states.push(state(&space).unwrap());
        }
        space.flush().unwrap();
        if i == 0 {
            // The first of these frames records the sync, and this one makes itself durable.
            states.push(state(&space).unwrap());
        }
    }
    // Before the first of them is the synced state, which damage in the frame that records it may give.
    let fs = fs.deep_copy();
    assert!(!judge(&fs, &states[states.len() - 1..], "undamaged"));
    let synced = {
        let copy = fs.deep_copy();
        let space = open(&copy, false).unwrap();
        let a = space.open_file(b"a").unwrap();
        for i in (0..12).rev() {
            a.collapse(i, 40).unwrap();
        }
        state(&space).unwrap()
    };
    states.insert(0, synced);
    for name in ["LOG.0", "LOG.1", "TREE"] {
        for at in (0..len_of(&fs, name).min(16 << 10)).step_by(if step() == 1 { 1 } else { 3 }) {
            let copy = fs.deep_copy();
            flip(&copy, name, at);
            judge(&copy, &states, &format!("byte {at} of {name}, killed"));
        }
    }
}
