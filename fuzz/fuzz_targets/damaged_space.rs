//! A sound space whose files are overwritten here and there, with checksums of superblocks put right half of the time: opening,
//! reading, checking and writing may fail, but not panic, and sound reads give what was written.
#![no_main]

use arbitrary::Arbitrary;
use flex_core::file::{FlexSpace, SpaceOptions};
use flex_core::io::mem::MemFileSystem;
use flex_core::io::{FileSystem, OpenMode};
use libfuzzer_sys::fuzz_target;
use std::io::IoSlice;
use std::path::Path;
use std::sync::{Arc, OnceLock};

#[derive(Arbitrary, Debug)]
struct Damage {
    file: u8,
    at: u16,
    bytes: Vec<u8>,
}

#[derive(Arbitrary, Debug)]
struct Input {
    closed: bool,
    read_only: bool,
    reseal: bool,
    damages: Vec<Damage>,
}

const NAMES: [&str; 4] = ["TREE", "LOG.0", "LOG.1", "DATA"];

fn options(read_only: bool) -> SpaceOptions {
    SpaceOptions { background: false, read_only, ..SpaceOptions::default() }
}

/// The same space every time: one that was closed, and one that was killed with a log to replay.
fn sound(closed: bool) -> MemFileSystem {
    static SPACES: OnceLock<[MemFileSystem; 2]> = OnceLock::new();
    let make = |closed: bool| {
        let fs = MemFileSystem::new();
        let space = FlexSpace::open_with(Arc::new(fs.clone()) as Arc<dyn FileSystem>, Path::new("/s"), &options(false))
            .unwrap();
        let file = space.create_file(b"a").unwrap();
        for number in 0..60u64 {
            file.insert(number * 7 % (number * 50 + 1), &[number as u8; 100]).unwrap();
        }
        space.checkpoint().unwrap();
        for number in 0..40u64 {
            file.write(number * 100, &[number as u8; 90]).unwrap();
        }
        space.sync().unwrap();
        if closed {
            space.close().unwrap();
        }
        fs.deep_copy()
    };
    SPACES.get_or_init(|| [make(false), make(true)])[usize::from(closed)].deep_copy()
}

fn reseal(page: &mut [u8]) {
    let crc = crc32fast::hash(&page[12..]);
    page[8..12].copy_from_slice(&crc.to_le_bytes());
}

fuzz_target!(|input: Input| {
    let fs = sound(input.closed);
    for damage in input.damages.iter().take(8) {
        let name = NAMES[damage.file as usize % NAMES.len()];
        let file = fs.open(&Path::new("/s").join(name), OpenMode::ReadWrite).unwrap();
        let len = file.len().unwrap();
        if len > 0 && !damage.bytes.is_empty() {
            file.write_at(&[IoSlice::new(&damage.bytes)], u64::from(damage.at) % len).unwrap();
        }
        if name == "TREE" && input.reseal {
            for slot in 0..2 {
                let mut page = vec![0; 4096];
                if file.read_at(&mut page, slot * 4096).unwrap() == page.len() {
                    reseal(&mut page);
                    file.write_at(&[IoSlice::new(&page)], slot * 4096).unwrap();
                }
            }
        }
    }
    let fs: Arc<dyn FileSystem> = Arc::new(fs);
    let Ok(space) = FlexSpace::open_with(fs, Path::new("/s"), &options(input.read_only)) else { return };
    let _ = space.check(&mut |_| true);
    if let Ok(file) = space.open_file(b"a") {
        let mut buf = vec![0; 20_000];
        let _ = file.read(0, &mut buf);
        let _ = file.insert(0, b"more");
        let _ = file.collapse(0, 1000);
        let _ = file.defrag(0, 1 << 20);
        let _ = file.cursor(0).and_then(|mut cursor| cursor.next());
    }
    let _ = space.gc();
    let _ = space.snapshot();
    let _ = space.close();
});
