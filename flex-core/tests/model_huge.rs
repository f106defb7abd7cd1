//! Sizes at their limits: sparse files beyond 4 GiB and 1 TiB, one large write, ten thousand small files, long names.

use flex_core::ErrorKind;
use flex_core::address::Tag;
use flex_core::file::{FlexFile, FlexSpace, SpaceOptions};
use flex_core::io::FileSystem;
use flex_core::io::mem::MemFileSystem;
use flex_core::limits::MAX_FILE_SIZE_BYTES;
use std::path::Path;
use std::sync::Arc;

const SMALL: bool = cfg!(feature = "small_limits");

fn open(fs: &MemFileSystem) -> FlexSpace {
    let options = SpaceOptions { background: false, ..SpaceOptions::default() };
    FlexSpace::open_with(Arc::new(fs.clone()) as Arc<dyn FileSystem>, Path::new("/space"), &options).unwrap()
}

fn sound(space: &FlexSpace) {
    let report = space.check(&mut |_| true).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

fn at(file: &FlexFile, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0xee; len];
    assert_eq!(file.read(offset, &mut bytes).unwrap(), len);
    bytes
}

#[test]
fn a_sparse_file_beyond_a_tebibyte() {
    let fs = MemFileSystem::new();
    let space = open(&fs);
    let file = space.create_file(b"sparse").unwrap();
    let places: Vec<u64> = [31, 32, 33, 36, 40, 41, 45, 50].map(|bit| (1u64 << bit) - 3).to_vec();
    for (i, place) in places.iter().enumerate() {
        file.write(*place, &[i as u8 + 1; 6]).unwrap();
        file.set_tag(*place, Tag(i as u16 + 1)).unwrap();
    }
    let check = |file: &FlexFile, shift: u64| {
        assert_eq!(file.size().unwrap(), (1 << 50) + 3 + shift);
        let mut from = 0;
        for (i, place) in places.iter().enumerate() {
            let place = place + shift;
            assert_eq!(at(file, place - 1, 7), [&[0][..], &[i as u8 + 1; 6]].concat());
            assert_eq!(file.next_tagged(from).unwrap(), Some((place, Tag(i as u16 + 1))));
            assert_eq!(file.next_data(from).unwrap(), Some(place));
            assert_eq!(file.next_hole(place).unwrap(), Some(place + 6));
            from = place + 6;
        }
        assert_eq!(file.next_tagged(from).unwrap(), None);
    };
    check(&file, 0);
    file.insert(0, &[9; 1000]).unwrap();
    check_shifted(&file, 1000);
    file.collapse(0, 1000).unwrap();
    check(&file, 0);
    file.insert_hole(5, 1 << 40).unwrap();
    check(&file, 1 << 40);
    file.collapse(3, 1 << 40).unwrap();
    check(&file, 0);
    space.sync().unwrap();
    let killed = fs.deep_copy();
    let again = open(&killed);
    check(&again.open_file(b"sparse").unwrap(), 0);
    sound(&again);
    space.close().unwrap();
    let space = open(&fs);
    let file = space.open_file(b"sparse").unwrap();
    check(&file, 0);
    assert_eq!(file.insert_hole(0, MAX_FILE_SIZE_BYTES).unwrap_err().kind(), ErrorKind::TooBig);
    let rest = MAX_FILE_SIZE_BYTES - file.size().unwrap();
    file.insert_hole(0, rest).unwrap();
    assert_eq!(file.size().unwrap(), MAX_FILE_SIZE_BYTES);
    assert_eq!(file.append(b"x").unwrap_err().kind(), ErrorKind::TooBig);
    file.write(MAX_FILE_SIZE_BYTES - 1, b"x").unwrap();
    assert_eq!(at(&file, MAX_FILE_SIZE_BYTES - 2, 2).last(), Some(&b'x'));
    file.collapse(0, rest).unwrap();
    sound(&space);
    file.truncate(0).unwrap();
    sound(&space);
}

fn check_shifted(file: &FlexFile, shift: u64) {
    assert_eq!(at(file, (1 << 40) - 3 + shift, 6), [5; 6]);
    assert_eq!(file.tag((1 << 40) - 3 + shift).unwrap(), Tag(5));
}

#[test]
fn one_large_write() {
    let fs = MemFileSystem::new();
    let space = open(&fs);
    let file = space.create_file(b"large").unwrap();
    let len: usize = if SMALL { 4 << 20 } else { 64 << 20 };
    let word = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    let bytes: Vec<u8> = (0..len / 8).flat_map(word).collect();
    file.write(0, &bytes).unwrap();
    file.insert(12_345, b"between").unwrap();
    file.collapse(12_345, 7).unwrap();
    assert!(at(&file, 0, len) == bytes);
    space.close().unwrap();
    let space = open(&fs);
    let file = space.open_file(b"large").unwrap();
    assert!(at(&file, 0, len) == bytes);
    let longest = file.read_extent(0, &mut []).unwrap().0.len;
    assert!(longest <= space.stats().unwrap().allocated_bytes / 32);
    sound(&space);
}

#[test]
fn many_small_files() {
    let fs = MemFileSystem::new();
    let space = open(&fs);
    let count: u32 = if SMALL { 1500 } else { 10_000 };
    let name =
        |i: u32| if i.is_multiple_of(2) { format!("{i}").into_bytes() } else { format!("{i:0255}").into_bytes() };
    for i in 0..count {
        space.create_file(&name(i)).unwrap().write(0, &i.to_le_bytes()).unwrap();
    }
    for i in (0..count).step_by(3) {
        space.remove_file(&name(i)).unwrap();
    }
    let expect = |space: &FlexSpace| {
        assert_eq!(space.list_files().unwrap().len() as u32, count - count.div_ceil(3));
        for i in (0..count).filter(|i| i % 3 != 0) {
            assert_eq!(at(&space.open_file(&name(i)).unwrap(), 0, 4), i.to_le_bytes());
        }
        sound(space);
    };
    space.flush().unwrap();
    expect(&open(&fs.deep_copy()));
    space.close().unwrap();
    expect(&open(&fs));
}
