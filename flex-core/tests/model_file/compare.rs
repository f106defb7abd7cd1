//! Comparing a file, a snapshot or a whole space with its model.

use crate::model::{Byte, Model, find, values};
use flex_core::ErrorKind;
use flex_core::address::Tag;
use flex_core::file::{ExtentInfo, FileSnapshot, FlexFile, FlexSpace};
use std::io::IoSliceMut;

/// What a file and a snapshot have in common.
pub trait Reads {
    fn size_now(&self) -> u64;
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> usize;
    fn read_parts(&self, offset: u64, bufs: &mut [IoSliceMut<'_>]) -> usize;
    fn tag_at(&self, offset: u64) -> Result<Tag, ErrorKind>;
    fn tagged_from(&self, offset: u64) -> Option<(u64, Tag)>;
    fn tagged_to(&self, offset: u64) -> Option<(u64, Tag)>;
    fn extent(&self, offset: u64, buf: &mut [u8]) -> Result<(ExtentInfo, usize), ErrorKind>;
    fn data_from(&self, offset: u64) -> Option<u64>;
    fn hole_from(&self, offset: u64) -> Option<u64>;
    fn extents(&self) -> Vec<ExtentInfo>;
}

macro_rules! reads {
    ($type:ty, $size:expr) => {
        impl Reads for $type {
            fn size_now(&self) -> u64 {
                $size(self)
            }
            fn read_at(&self, offset: u64, buf: &mut [u8]) -> usize {
                self.read(offset, buf).unwrap()
            }
            fn read_parts(&self, offset: u64, bufs: &mut [IoSliceMut<'_>]) -> usize {
                self.read_vectored(offset, bufs).unwrap()
            }
            fn tag_at(&self, offset: u64) -> Result<Tag, ErrorKind> {
                self.tag(offset).map_err(|e| e.kind())
            }
            fn tagged_from(&self, offset: u64) -> Option<(u64, Tag)> {
                self.next_tagged(offset).unwrap()
            }
            fn tagged_to(&self, offset: u64) -> Option<(u64, Tag)> {
                self.prev_tagged(offset).unwrap()
            }
            fn extent(&self, offset: u64, buf: &mut [u8]) -> Result<(ExtentInfo, usize), ErrorKind> {
                self.read_extent(offset, buf).map_err(|e| e.kind())
            }
            fn data_from(&self, offset: u64) -> Option<u64> {
                self.next_data(offset).unwrap()
            }
            fn hole_from(&self, offset: u64) -> Option<u64> {
                self.next_hole(offset).unwrap()
            }
            fn extents(&self) -> Vec<ExtentInfo> {
                let mut cursor = self.cursor(0).unwrap();
                let mut found = Vec::new();
                while let Some(extent) = cursor.current() {
                    found.push(extent);
                    cursor.next().unwrap();
                }
                let size = self.size_now();
                let mut back = Vec::new();
                cursor.seek(size.saturating_sub(1)).unwrap();
                while let Some(extent) = cursor.current() {
                    back.push(extent);
                    cursor.prev().unwrap();
                }
                back.reverse();
                assert_eq!(found, back, "the cursor shows other extents on its way back");
                found
            }
        }
    };
}

reads!(FlexFile, |file: &FlexFile| file.size().unwrap());
reads!(FileSnapshot, |file: &FileSnapshot| file.size());

/// Everything of a file.
pub fn whole(file: &impl Reads, model: &[Byte]) {
    assert_eq!(file.size_now(), model.len() as u64, "size");
    let mut found = vec![0xee; model.len() + 3];
    assert_eq!(file.read_at(0, &mut found), model.len());
    found.truncate(model.len());
    let expected = values(model);
    let differs = found.iter().zip(&expected).position(|(a, b)| a != b);
    assert!(differs.is_none(), "bytes differ from {differs:?} on, of {}", model.len());
    assert_eq!(tags_of(file), tags_in(model), "tags");
    let mut end = 0;
    for extent in file.extents() {
        assert_eq!(extent.offset, end, "the cursor leaves a gap");
        check_extent(&extent, model);
        end += extent.len;
    }
    assert_eq!(end, model.len() as u64, "the cursor stops early");
}

fn tags_of(file: &impl Reads) -> Vec<(u64, u16)> {
    let mut tagged = Vec::new();
    let mut at = 0;
    while let Some((offset, tag)) = file.tagged_from(at) {
        tagged.push((offset, tag.0));
        at = offset + 1;
    }
    tagged
}

fn tags_in(model: &[Byte]) -> Vec<(u64, u16)> {
    let numbered = model.iter().enumerate();
    numbered.filter(|(_, byte)| byte.tag != 0).map(|(at, byte)| (at as u64, byte.tag)).collect()
}

fn check_extent(extent: &ExtentInfo, model: &[Byte]) {
    assert!(extent.len > 0, "{extent:?}");
    let bytes = &model[extent.offset as usize..(extent.offset + extent.len) as usize];
    assert!(bytes.iter().all(|byte| byte.hole == extent.is_hole), "{extent:?} is both data and hole");
    assert_eq!(extent.tag.0, bytes[0].tag, "{extent:?}");
    assert!(bytes[1..].iter().all(|byte| byte.tag == 0), "{extent:?} has a tag inside");
}

/// What can be asked about one place.
pub fn place(file: &impl Reads, model: &[Byte], at: usize, len: usize) {
    let rest = model.get(at..).unwrap_or_default();
    let expected = values(&rest[..len.min(rest.len())]);
    let mut found = vec![0xee; len];
    assert_eq!(file.read_at(at as u64, &mut found), expected.len(), "read of {len} at {at} of {}", model.len());
    assert!(found[..expected.len()] == expected[..], "read of {len} at {at}");
    let (mut a, mut b, mut c) = (vec![0xee; len / 3], vec![], vec![0xee; len - len / 3]);
    let mut parts = [IoSliceMut::new(&mut a), IoSliceMut::new(&mut b), IoSliceMut::new(&mut c)];
    assert_eq!(file.read_parts(at as u64, &mut parts), expected.len());
    assert!([a, c].concat()[..expected.len()] == expected[..], "vectored read of {len} at {at}");
    let pair = |found: Option<(u64, Tag)>| found.map(|(at, tag)| (at, tag.0));
    let next = find(model, at, |byte| byte.tag != 0).map(|at| (at, model[at as usize].tag));
    assert_eq!(pair(file.tagged_from(at as u64)), next, "next tag from {at}");
    let before = model.len().min(at.saturating_add(1));
    let prev = (0..before).rev().find(|i| model[*i].tag != 0).map(|i| (i as u64, model[i].tag));
    assert_eq!(pair(file.tagged_to(at as u64)), prev, "previous tag from {at}");
    assert_eq!(file.data_from(at as u64), find(model, at, |byte| !byte.hole), "next data from {at}");
    let hole = (at < model.len()).then(|| find(model, at, |byte| byte.hole).unwrap_or(model.len() as u64));
    assert_eq!(file.hole_from(at as u64), hole, "next hole from {at}");
    let mut buf = vec![0xee; len];
    if at >= model.len() {
        assert_eq!(file.tag_at(at as u64), Err(ErrorKind::OutOfRange));
        assert_eq!(file.extent(at as u64, &mut buf).map(|_| ()), Err(ErrorKind::OutOfRange));
        return;
    }
    assert_eq!(file.tag_at(at as u64), Ok(Tag(model[at].tag)));
    let (extent, read) = file.extent(at as u64, &mut buf).unwrap();
    assert!((extent.offset..extent.offset + extent.len).contains(&(at as u64)), "{extent:?} does not cover {at}");
    check_extent(&extent, model);
    assert_eq!(read as u64, extent.len.min(len as u64));
    assert!(buf[..read] == values(&model[extent.offset as usize..extent.offset as usize + read])[..]);
}

/// All files of a space, by name.
pub fn space(space: &FlexSpace, model: &Model) {
    let names: Vec<(Vec<u8>, u64)> = space.list_files().unwrap().into_iter().map(|e| (e.name, e.size)).collect();
    let expected: Vec<_> = model.files.iter().map(|(name, bytes)| (name.clone(), bytes.len() as u64)).collect();
    assert_eq!(names, expected);
    assert_eq!(space.commit_word().unwrap(), model.commit_word);
    for (name, bytes) in &model.files {
        whole(&space.open_file(name).unwrap(), bytes);
    }
}

/// Whether a space is in this state (holes left out).
pub fn matches(space: &FlexSpace, model: &Model) -> bool {
    let entries = space.list_files().unwrap();
    space.commit_word().unwrap() == model.commit_word
        && entries.len() == model.files.len()
        && entries.iter().all(|entry| {
            model.files.get(&entry.name).is_some_and(|bytes| {
                let file = space.open_file(&entry.name).unwrap();
                let mut found = vec![0; entry.size as usize];
                bytes.len() as u64 == entry.size
                    && file.read(0, &mut found).unwrap() == bytes.len()
                    && found == values(bytes)
                    && tags_of(&file) == tags_in(bytes)
            })
        })
}

/// Every invariant.
pub fn sound(space: &FlexSpace) {
    let report = space.check(&mut |_| true).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}
