//! The bytes of a node in a page of `TREE`. The page's own header and checksum belong to the file layer.
//!
//! Little-endian, without padding:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 1 | level: 0 for a leaf |
//! | 1 | 1 | reserved, 0 |
//! | 2 | 2 | n: extents or children, at least 1 |
//! | 4 | 4 | reserved, 0 |
//! | 8 | 8 | span, bytes of address space |
//!
//! A leaf goes on with
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 16 | 4 n | starts, ascending from 0, below the span |
//! | 16 + 4 n | 8 n | 48-bit physical offset, 16-bit tag above it |
//!
//! and an internal node with
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 16 | 16 | bit i: there is a tag below child i |
//! | 32 | 8 n | offsets of the children, ascending from 0, below the span |
//! | 32 + 8 n | 8 n | pages, or 0 for a hole |
//! | 32 + 16 n | 8 n | extents below each child, at least 1; 1 for a hole |
//!
//! A decoder believes nothing: counts are checked against the input before anything is read, and what does not hold
//! together is CORRUPTION. Anything longer than the node needs is refused too.

use super::extent::{Piece, address_of, tag_of};
use super::internal::Internal;
use super::leaf::Leaf;
use super::limits::{BIG_HOLE, INTERNAL_CAPACITY, LEAF_CAPACITY, LEAF_SPAN_LIMIT, MAX_HEIGHT, MAX_LEN};
use super::link::{Link, View};
use super::node::{Body, Entry, Node};
use crate::address::{PageId, PhysicalOffset};
use crate::{Error, ErrorKind, Result};

/// Largest payload of a node.
pub const MAX_PAYLOAD_BYTES: usize = PAGE_BYTES - PAGE_HEADER_BYTES;
const PAGE_BYTES: usize = 4096;
const PAGE_HEADER_BYTES: usize = 64;

const LEVEL: usize = 0;
const COUNT: usize = LEVEL + 2;
const SPAN: usize = COUNT + 6;
const BODY: usize = SPAN + 8;
const TAG_BITS: usize = BODY;
const CHILDREN: usize = TAG_BITS + 16;
const LEAF_ENTRY_BYTES: usize = 12;
const INTERNAL_ENTRY_BYTES: usize = 24;

const _: () = assert!(BODY + LEAF_CAPACITY * LEAF_ENTRY_BYTES <= MAX_PAYLOAD_BYTES);
const _: () = assert!(CHILDREN + INTERNAL_CAPACITY * INTERNAL_ENTRY_BYTES <= MAX_PAYLOAD_BYTES);
const _: () = assert!(INTERNAL_CAPACITY <= 128, "the tag bits of a node are one 128-bit word");

/// Where stored nodes come from. Called from any thread that reads the tree.
pub trait NodeSource {
    /// Reads, verifies and decodes the node in `page`.
    fn load(&self, page: PageId) -> Result<NodeImage>;
}

/// Where nodes are stored.
pub trait PageSink {
    /// Stores a node of the given level and says in which page. The page must not be one that any tree still names.
    fn store(&mut self, kind_level: u8, payload: &[u8]) -> Result<PageId>;
}

/// The source of a tree of which nothing is stored.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoPages;

impl NodeSource for NoPages {
    fn load(&self, page: PageId) -> Result<NodeImage> {
        Err(Error::new(ErrorKind::InvalidArgument, format!("no source of pages was given to load page {}", page.0)))
    }
}

/// A decoded node.
pub struct NodeImage(Body);

impl NodeImage {
    pub(super) fn into_node(self, page: PageId) -> Node {
        Node::stored(self.0, page)
    }

    /// The pages that the node links to.
    pub fn child_pages(&self) -> Vec<PageId> {
        let Body::Internal(internal) = &self.0 else { return Vec::new() };
        let page = |link: &Link| if let View::Page(page) = link.view() { Some(page) } else { None };
        internal.links().iter().filter_map(page).collect()
    }
}

/// Appends the bytes of `node`, whose children all have pages, to `to`.
pub(super) fn encode(node: &Node, to: &mut Vec<u8>) -> Result<()> {
    let n = match &node.body {
        Body::Leaf(leaf) => leaf.len(),
        Body::Internal(internal) => internal.len(),
    };
    to.extend([node.level() as u8, 0]);
    to.extend((n as u16).to_le_bytes());
    to.extend([0; 4]);
    to.extend(node.span().to_le_bytes());
    match &node.body {
        Body::Leaf(leaf) => {
            let (starts, packed) = leaf.raw();
            starts.iter().for_each(|start| to.extend(start.to_le_bytes()));
            packed.iter().for_each(|word| to.extend(word.to_le_bytes()));
        }
        Body::Internal(internal) => {
            let (counts, tags) = internal.counts_and_tags();
            to.extend(tags.to_le_bytes());
            (0..n).for_each(|i| to.extend(internal.offset(i).to_le_bytes()));
            for link in internal.links() {
                to.extend(page_word(link)?.to_le_bytes());
            }
            counts.iter().for_each(|count| to.extend(count.to_le_bytes()));
        }
    }
    Ok(())
}

fn page_word(link: &Link) -> Result<u64> {
    match link.view() {
        View::Hole => Ok(0),
        View::Page(page) => Ok(page.0),
        View::Node(node) => match node.page() {
            Some(page) => Ok(page.0),
            None => Err(Error::invalid("a tree node is to be stored before its child")),
        },
    }
}

fn word<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N]> {
    match bytes.get(at..at + N).and_then(|part| part.try_into().ok()) {
        Some(part) => Ok(part),
        None => Err(damaged("is cut off")),
    }
}

fn damaged(what: &str) -> Error {
    Error::corruption(format!("a tree node {what}"))
}

/// Decodes a node.
pub fn decode(bytes: &[u8]) -> Result<NodeImage> {
    let level = u32::from(word::<1>(bytes, LEVEL)?[0]);
    let n = usize::from(u16::from_le_bytes(word(bytes, COUNT)?));
    let span = u64::from_le_bytes(word(bytes, SPAN)?);
    if word::<1>(bytes, LEVEL + 1)? != [0] || word::<4>(bytes, COUNT + 2)? != [0; 4] {
        return Err(damaged("has reserved bytes that are not 0"));
    }
    let (capacity, size) = match level {
        0 => (LEAF_CAPACITY, BODY + n * LEAF_ENTRY_BYTES),
        _ => (INTERNAL_CAPACITY, CHILDREN + n * INTERNAL_ENTRY_BYTES),
    };
    if level >= MAX_HEIGHT || n == 0 || n > capacity || bytes.len() != size {
        return Err(damaged("has a level, count or length that can't be"));
    }
    if level == 0 { decode_leaf(bytes, n, span) } else { decode_internal(bytes, level, n, span) }
}

fn decode_leaf(bytes: &[u8], n: usize, span: u64) -> Result<NodeImage> {
    if span >= LEAF_SPAN_LIMIT {
        return Err(damaged("has a leaf's level and a larger span"));
    }
    let start = |i: usize| -> Result<u64> {
        Ok(if i < n { u64::from(u32::from_le_bytes(word(bytes, BODY + 4 * i)?)) } else { span })
    };
    let mut pieces = Vec::with_capacity(n);
    for i in 0..n {
        let (from, to) = (start(i)?, start(i + 1)?);
        let packed = u64::from_le_bytes(word(bytes, BODY + 4 * n + 8 * i)?);
        if from >= to || (i == 0 && from != 0) {
            return Err(damaged("has extents out of order"));
        }
        let (len, address) = (to - from, address_of(packed));
        let longest_hole = if tag_of(packed).is_some() { 1 } else { BIG_HOLE - 1 };
        if if address.is_hole() { len > longest_hole } else { address.0 + len > PhysicalOffset::HOLE.0 } {
            return Err(damaged("has an extent that is too long"));
        }
        pieces.push(Piece::new(len, address, tag_of(packed)));
    }
    Ok(NodeImage(Body::Leaf(Leaf::from_pieces(&pieces))))
}

fn decode_internal(bytes: &[u8], level: u32, n: usize, span: u64) -> Result<NodeImage> {
    let tags = u128::from_le_bytes(word(bytes, TAG_BITS)?);
    if span > MAX_LEN || (n < 128 && tags >> n != 0) {
        return Err(damaged("has a span or tag bits that can't be"));
    }
    let field = |array: usize, i: usize| -> Result<u64> {
        Ok(u64::from_le_bytes(word(bytes, CHILDREN + 8 * (array * n + i))?))
    };
    let mut node = Internal::new(level);
    for i in 0..n {
        let from = field(0, i)?;
        let to = if i + 1 < n { field(0, i + 1)? } else { span };
        let (page, count, tagged) = (field(1, i)?, field(2, i)?, tags >> i & 1 == 1);
        if from >= to || (i == 0 && from != 0) {
            return Err(damaged("has children out of order"));
        }
        let hole_is_sound = level == 1 && to - from >= BIG_HOLE && count == 1 && !tagged;
        if count == 0 || count > to - from || page > u64::MAX >> 1 || (page == 0 && !hole_is_sound) {
            return Err(damaged("has a child that can't be"));
        }
        let link = if page == 0 { Link::hole() } else { Link::page(PageId(page)) };
        node.push(Entry { link, span: to - from, count, tagged });
    }
    Ok(NodeImage(Body::Internal(node)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Tag;

    fn leaf_bytes() -> Vec<u8> {
        let pieces = [
            Piece::new(7, PhysicalOffset(100), Tag(3)),
            Piece::new(9, PhysicalOffset::HOLE, Tag::NONE),
            Piece::new(1, PhysicalOffset(5), Tag::NONE),
        ];
        let mut bytes = Vec::new();
        encode(&Node::leaf(Leaf::from_pieces(&pieces), 0), &mut bytes).unwrap();
        bytes
    }

    fn internal_bytes() -> Vec<u8> {
        let child = |page, span, count, tagged| Entry { link: Link::page(PageId(page)), span, count, tagged };
        let entries = [child(9, 100, 3, true), Entry::hole(BIG_HOLE), child(11, 5, 5, false)];
        let node = Internal::from_entries(1, entries.into_iter());
        let mut bytes = Vec::new();
        encode(&Node::internal(node, 0), &mut bytes).unwrap();
        bytes
    }

    fn encoded(image: NodeImage) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(&image.into_node(PageId(1)), &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_is_encoded_decodes_to_itself() {
        for bytes in [leaf_bytes(), internal_bytes()] {
            assert_eq!(encoded(decode(&bytes).unwrap()), bytes);
        }
        assert_eq!(decode(&internal_bytes()).unwrap().child_pages(), [PageId(9), PageId(11)]);
    }

    #[test]
    fn the_bytes_of_a_leaf_are_pinned() {
        let expected = [
            &[0, 0, 3, 0, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0][..],
            &[0, 0, 0, 0, 7, 0, 0, 0, 16, 0, 0, 0],
            &[100, 0, 0, 0, 0, 0, 3, 0, 255, 255, 255, 255, 255, 255, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(leaf_bytes(), expected.concat());
    }

    #[test]
    fn every_cut_and_every_extension_is_refused() {
        for bytes in [leaf_bytes(), internal_bytes()] {
            for n in 0..bytes.len() {
                assert!(decode(&bytes[..n]).is_err(), "cut to {n}");
            }
            assert!(decode(&[&bytes[..], &[0]].concat()).is_err());
        }
    }

    #[test]
    fn a_flipped_bit_gives_an_error_or_another_sound_node() {
        for bytes in [leaf_bytes(), internal_bytes()] {
            for bit in 0..bytes.len() * 8 {
                let mut bytes = bytes.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                if let Ok(image) = decode(&bytes) {
                    assert_eq!(encoded(image), bytes);
                }
            }
        }
    }
}
