//! The catalog: what a superblock points to. Files and their roots, segments, open segments' checksums, the page map.
//!
//! Bytes in consecutive pages of `TREE`, covered by one CRC-32 in the superblock; integers are varints unless a size
//! is given.
//!
//! | part | fields |
//! |---|---|
//! | files | n, n x { id, name length, name, root kind (1 byte: 0 empty, 1 page, 2 hole), page or 0, length, extents, height, has tags (1 byte) } |
//! | segments | n, n x { state (1 byte: 0 free, 1 open, 2 sealed; +128: its blocks were given back), and unless free: live bytes, birth, last write } |
//! | open segments | n, n x { head (1 byte), segment, m, m x CRC-32 (4 bytes little-endian) } |
//! | page map | pages, one bit a page, lowest first: in use |

use super::geometry::SegmentId;
use super::log_record::FileId;
use super::page_store::PageBitmap;
use super::segment_table::{SegmentEntry, SegmentState};
use super::segment_writer::{HEADS, OpenSegment};
use crate::address::PageId;
use crate::codec::reader::Reader;
use crate::codec::varint::put as put_varint;
use crate::limits::MAX_NAME_BYTES;
use crate::tree::{RootRef, StoredRoot};
use crate::{Error, Result};

const ROOT_EMPTY: u8 = 0;
const ROOT_PAGE: u8 = 1;
const ROOT_HOLE: u8 = 2;
const SEGMENT_FREE: u8 = 0;
const SEGMENT_OPEN: u8 = 1;
const SEGMENT_SEALED: u8 = 2;
const PUNCHED: u8 = 128;

/// One file.
#[derive(Clone, Debug)]
pub struct CatalogFile {
    /// Its id.
    pub id: FileId,
    /// Its name.
    pub name: Vec<u8>,
    /// Its tree.
    pub root: StoredRoot,
}

/// Everything a superblock points to.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// The files.
    pub files: Vec<CatalogFile>,
    /// The segments, in order.
    pub segments: Vec<SegmentEntry>,
    /// The segments being written.
    pub open: Vec<OpenSegment>,
    /// The used pages.
    pub pages: PageBitmap,
}

impl Catalog {
    /// The catalog's bytes, but for the page map: that is appended last, when its pages are known.
    pub fn encode_without_pages(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.files.len() as u64);
        for file in &self.files {
            put_varint(&mut out, file.id.0);
            put_varint(&mut out, file.name.len() as u64);
            out.extend_from_slice(&file.name);
            put_root(&mut out, &file.root);
        }
        put_varint(&mut out, self.segments.len() as u64);
        for segment in &self.segments {
            put_segment(&mut out, segment);
        }
        put_varint(&mut out, self.open.len() as u64);
        for open in &self.open {
            out.push(open.head);
            put_varint(&mut out, open.segment.0 as u64);
            put_varint(&mut out, open.checksums.len() as u64);
            for checksum in &open.checksums {
                out.extend_from_slice(&checksum.to_le_bytes());
            }
        }
        out
    }

    /// Appends the page map.
    pub fn encode_pages(pages: &PageBitmap, out: &mut Vec<u8>) {
        put_varint(out, pages.len());
        out.extend_from_slice(&pages.to_bytes());
    }

    /// Reads the bytes of a catalog. The checksum was compared before; contradictions are errors all the same.
    pub fn decode(bytes: &[u8]) -> Result<Catalog> {
        let mut reader = Reader::new(bytes);
        let mut catalog = Catalog::default();
        for _ in 0..reader.varint()? {
            catalog.files.push(read_file(&mut reader)?);
        }
        for _ in 0..reader.varint()? {
            catalog.segments.push(read_segment(&mut reader)?);
        }
        for _ in 0..reader.varint()? {
            catalog.open.push(read_open(&mut reader)?);
        }
        let pages = reader.varint()?;
        catalog.pages = PageBitmap::from_bytes(reader.bytes_u64(pages.div_ceil(8))?, pages)?;
        reader.expect_end()?;
        Ok(catalog)
    }
}

fn put_root(out: &mut Vec<u8>, root: &StoredRoot) {
    let (kind, page) = match root.root {
        RootRef::Empty => (ROOT_EMPTY, 0),
        RootRef::Page(page) => (ROOT_PAGE, page.0),
        RootRef::Hole(_) => (ROOT_HOLE, 0),
    };
    out.push(kind);
    put_varint(out, page);
    put_varint(out, root.len);
    put_varint(out, root.extent_count);
    put_varint(out, root.height as u64);
    out.push(root.has_tags as u8);
}

fn put_segment(out: &mut Vec<u8>, segment: &SegmentEntry) {
    let state = match segment.state {
        SegmentState::Free | SegmentState::Quarantined => SEGMENT_FREE,
        SegmentState::Open => SEGMENT_OPEN,
        SegmentState::Sealed => SEGMENT_SEALED,
    };
    out.push(state | if segment.punched { PUNCHED } else { 0 });
    if state != SEGMENT_FREE {
        put_varint(out, segment.live as u64);
        put_varint(out, segment.birth);
        put_varint(out, segment.written);
    }
}

fn narrow(value: u64, what: &str) -> Result<u32> {
    u32::try_from(value).map_err(|_| Error::corruption(format!("catalog: {what} {value} is out of range")))
}

fn read_file(reader: &mut Reader<'_>) -> Result<CatalogFile> {
    let id = FileId(reader.varint()?);
    let name_len = reader.varint()?;
    if name_len == 0 || name_len > MAX_NAME_BYTES as u64 {
        return Err(Error::corruption(format!("catalog: a name of {name_len} bytes")));
    }
    let name = reader.bytes_u64(name_len)?.to_vec();
    let (kind, page) = (reader.u8()?, reader.varint()?);
    let len = reader.varint()?;
    let root = match kind {
        ROOT_EMPTY => RootRef::Empty,
        ROOT_PAGE => RootRef::Page(PageId(page)),
        ROOT_HOLE => RootRef::Hole(len),
        other => return Err(Error::corruption(format!("catalog: root of unknown kind {other}"))),
    };
    let extent_count = reader.varint()?;
    let height = narrow(reader.varint()?, "height")?;
    let has_tags = reader.u8()? != 0;
    Ok(CatalogFile { id, name, root: StoredRoot { root, len, extent_count, height, has_tags } })
}

fn read_segment(reader: &mut Reader<'_>) -> Result<SegmentEntry> {
    let byte = reader.u8()?;
    let punched = byte & PUNCHED != 0;
    let state = match byte & !PUNCHED {
        SEGMENT_FREE => SegmentState::Free,
        SEGMENT_OPEN => SegmentState::Open,
        SEGMENT_SEALED => SegmentState::Sealed,
        other => return Err(Error::corruption(format!("catalog: segment in unknown state {other}"))),
    };
    if state == SegmentState::Free {
        return Ok(SegmentEntry { state, live: 0, staged: 0, birth: 0, written: 0, needed: 0, punched });
    }
    let live = narrow(reader.varint()?, "live bytes")?;
    let (birth, written) = (reader.varint()?, reader.varint()?);
    Ok(SegmentEntry { state, live, staged: 0, birth, written, needed: 0, punched })
}

fn read_open(reader: &mut Reader<'_>) -> Result<OpenSegment> {
    let head = reader.u8()?;
    if head as usize >= HEADS {
        return Err(Error::corruption(format!("catalog: unknown append head {head}")));
    }
    let segment = SegmentId(narrow(reader.varint()?, "segment")?);
    let count = reader.varint()?;
    let bytes = reader.bytes_u64(count.saturating_mul(4))?;
    let checksums = bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
    Ok(OpenSegment { head, segment, checksums })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Catalog {
        let root = |root, len| StoredRoot { root, len, extent_count: 3, height: 1, has_tags: true };
        let entry =
            |state, live| SegmentEntry { state, live, staged: 0, birth: 4, written: 5, needed: 0, punched: false };
        Catalog {
            files: vec![
                CatalogFile { id: FileId(1), name: b"a".to_vec(), root: root(RootRef::Page(PageId(9)), 77) },
                CatalogFile { id: FileId(3), name: vec![255; 255], root: root(RootRef::Hole(1 << 40), 1 << 40) },
                CatalogFile { id: FileId(4), name: b"e".to_vec(), root: root(RootRef::Empty, 0) },
            ],
            segments: vec![
                entry(SegmentState::Sealed, 100),
                SegmentEntry { birth: 0, written: 0, punched: true, ..entry(SegmentState::Free, 0) },
                entry(SegmentState::Open, 7),
            ],
            open: vec![OpenSegment { head: 1, segment: SegmentId(2), checksums: vec![1, u32::MAX] }],
            pages: PageBitmap::new(20),
        }
    }

    #[test]
    fn a_catalog_survives_and_every_cut_is_an_error() {
        let mut bytes = sample().encode_without_pages();
        Catalog::encode_pages(&sample().pages, &mut bytes);
        let found = Catalog::decode(&bytes).unwrap();
        assert_eq!(format!("{found:?}"), format!("{:?}", sample()));
        for len in 0..bytes.len() {
            assert!(Catalog::decode(&bytes[..len]).is_err(), "length {len}");
        }
        bytes.push(0);
        assert!(Catalog::decode(&bytes).is_err());
    }

    #[test]
    fn golden_bytes() {
        let mut bytes = sample().encode_without_pages();
        Catalog::encode_pages(&sample().pages, &mut bytes);
        assert_eq!(bytes[..11], [3, 1, 1, b'a', 1, 9, 77, 3, 1, 1, 3]);
        let segments = bytes.len() - 4 - 12 - 10;
        assert_eq!(bytes[segments..segments + 13], [3, 2, 100, 4, 5, 128, 1, 7, 4, 5, 1, 1, 2]);
        assert_eq!(bytes[bytes.len() - 4..], [20, 3, 0, 0]);
    }
}
