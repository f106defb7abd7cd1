//! What a frame of the logical log says: the records of one operation.
//!
//! A record is a kind byte and fields; integers are LEB128 varints unless a size is given.
//!
//! | kind | name | fields |
//! |---|---|---|
//! | 1 | Insert | file, offset, n, n x (address, length) |
//! | 2 | InsertHole | file, offset, length |
//! | 3 | Collapse | file, offset, length |
//! | 4 | Replace | file, offset, n, n x (address, length) |
//! | 5 | ReplaceHole | file, offset, length |
//! | 6 | SetTag | file, offset, tag (0 clears) |
//! | 7 | Create | file, name length, name |
//! | 8 | Rename | file, name length, name |
//! | 9 | Remove | file |
//! | 10 | CommitWord | word |
//! | 11 | Annotation | length, bytes: of the caller, about the record before it (not written yet; at most 128 KiB) |
//! | 12 | Blocks | head, segment, first block, n, n x CRC-32 (4 bytes little-endian each) |
//! | 13 | EndOfLog | the log goes on in the other file |
//! | 14 | Batch | everything before this frame was handed over together |
//! | 15 | Move | reserved: file, offset, length, file, offset |
//! | 16 | Payload | reserved: bytes that `DATA` does not hold yet |
//!
//! Frames that were handed to the kernel together form a batch; its last frame holds the `Blocks` of the data that went
//! before it, and ends in `Batch` or `EndOfLog`.

use super::change::{Change, Piece, Pieces};
use crate::address::{PhysicalOffset, Tag};
use crate::codec::reader::Reader;
use crate::codec::varint::put as put_varint;
use crate::{Error, Result};

const INSERT: u8 = 1;
const INSERT_HOLE: u8 = 2;
const COLLAPSE: u8 = 3;
const REPLACE: u8 = 4;
const REPLACE_HOLE: u8 = 5;
const SET_TAG: u8 = 6;
const CREATE: u8 = 7;
const RENAME: u8 = 8;
const REMOVE: u8 = 9;
const COMMIT_WORD: u8 = 10;
const ANNOTATION: u8 = 11;
const BLOCKS: u8 = 12;
const END_OF_LOG: u8 = 13;
const BATCH: u8 = 14;

/// The number of a file in its space; never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileId(pub u64);

/// One record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record<'a> {
    /// A file's address space changed.
    Change(FileId, Change),
    /// A file came into being.
    Create(FileId, &'a [u8]),
    /// A file got another name.
    Rename(FileId, &'a [u8]),
    /// A file went.
    Remove(FileId),
    /// A group left a word.
    CommitWord(u64),
    /// What the caller said about the record before.
    Annotation(&'a [u8]),
    /// Data blocks that were handed to the kernel before this frame.
    Blocks(BlockRun),
    /// The other log file goes on from here.
    EndOfLog,
    /// The batch ends here.
    Batch,
}

/// Consecutive completed blocks of a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockRun {
    /// Which append head wrote them.
    pub head: u8,
    /// Their segment.
    pub segment: u32,
    /// The first of them.
    pub first_block: u32,
    /// The CRC-32 of each.
    pub checksums: Vec<u32>,
}

impl Record<'_> {
    /// Appends the record's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Record::Change(file, change) => put_change(out, *file, change),
            Record::Create(file, name) => put_name(out, CREATE, *file, name),
            Record::Rename(file, name) => put_name(out, RENAME, *file, name),
            Record::Remove(file) => {
                out.push(REMOVE);
                put_varint(out, file.0);
            }
            Record::CommitWord(word) => {
                out.push(COMMIT_WORD);
                put_varint(out, *word);
            }
            Record::Annotation(bytes) => {
                out.push(ANNOTATION);
                put_varint(out, bytes.len() as u64);
                out.extend_from_slice(bytes);
            }
            Record::Blocks(run) => {
                out.extend_from_slice(&[BLOCKS, run.head]);
                put_varint(out, run.segment as u64);
                put_varint(out, run.first_block as u64);
                put_varint(out, run.checksums.len() as u64);
                for checksum in &run.checksums {
                    out.extend_from_slice(&checksum.to_le_bytes());
                }
            }
            Record::EndOfLog => out.push(END_OF_LOG),
            Record::Batch => out.push(BATCH),
        }
    }

    /// Reads one record; `None` at the end of the payload.
    pub fn decode<'a>(reader: &mut Reader<'a>) -> Result<Option<Record<'a>>> {
        if reader.is_empty() {
            return Ok(None);
        }
        let kind = reader.u8()?;
        let record = match kind {
            INSERT..=SET_TAG => {
                let file = FileId(reader.varint()?);
                Record::Change(file, read_change(kind, reader)?)
            }
            CREATE => Record::Create(FileId(reader.varint()?), sized(reader)?),
            RENAME => Record::Rename(FileId(reader.varint()?), sized(reader)?),
            REMOVE => Record::Remove(FileId(reader.varint()?)),
            COMMIT_WORD => Record::CommitWord(reader.varint()?),
            ANNOTATION => Record::Annotation(sized(reader)?),
            BLOCKS => Record::Blocks(blocks(reader)?),
            END_OF_LOG => Record::EndOfLog,
            BATCH => Record::Batch,
            other => return Err(Error::corruption(format!("log record of unknown kind {other}"))),
        };
        Ok(Some(record))
    }
}

fn put_range(out: &mut Vec<u8>, kind: u8, file: FileId, offset: u64, len: u64) {
    out.push(kind);
    put_varint(out, file.0);
    put_varint(out, offset);
    put_varint(out, len);
}

/// Appends the bytes of a change record.
pub fn put_change(out: &mut Vec<u8>, file: FileId, change: &Change) {
    match change {
        Change::Insert { offset, pieces } => put_pieces(out, INSERT, file, *offset, pieces),
        Change::InsertHole { offset, len } => put_range(out, INSERT_HOLE, file, *offset, *len),
        Change::Collapse { offset, len } => put_range(out, COLLAPSE, file, *offset, *len),
        Change::Replace { offset, pieces } => put_pieces(out, REPLACE, file, *offset, pieces),
        Change::ReplaceHole { offset, len } => put_range(out, REPLACE_HOLE, file, *offset, *len),
        Change::SetTag { offset, tag } => put_range(out, SET_TAG, file, *offset, tag.0 as u64),
    }
}

fn put_pieces(out: &mut Vec<u8>, kind: u8, file: FileId, offset: u64, pieces: &[Piece]) {
    put_range(out, kind, file, offset, pieces.len() as u64);
    for piece in pieces {
        put_varint(out, piece.address.0);
        put_varint(out, piece.len as u64);
    }
}

fn put_name(out: &mut Vec<u8>, kind: u8, file: FileId, name: &[u8]) {
    out.push(kind);
    put_varint(out, file.0);
    put_varint(out, name.len() as u64);
    out.extend_from_slice(name);
}

fn narrow<T: TryFrom<u64>>(value: u64, what: &str) -> Result<T> {
    T::try_from(value).map_err(|_| Error::corruption(format!("log record: {what} {value} is out of range")))
}

fn sized<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8]> {
    let len: usize = narrow(reader.varint()?, "length")?;
    reader.bytes(len)
}

fn read_change(kind: u8, reader: &mut Reader<'_>) -> Result<Change> {
    let (offset, value) = (reader.varint()?, reader.varint()?);
    Ok(match kind {
        INSERT => Change::Insert { offset, pieces: read_pieces(value, reader)? },
        REPLACE => Change::Replace { offset, pieces: read_pieces(value, reader)? },
        INSERT_HOLE => Change::InsertHole { offset, len: value },
        COLLAPSE => Change::Collapse { offset, len: value },
        REPLACE_HOLE => Change::ReplaceHole { offset, len: value },
        _ => Change::SetTag { offset, tag: Tag(narrow(value, "tag")?) },
    })
}

fn read_pieces(count: u64, reader: &mut Reader<'_>) -> Result<Pieces> {
    // A piece takes two bytes or more, so that a damaged count can't make us allocate beyond the input.
    let mut pieces = Pieces::with_capacity(count.min(reader.remaining() as u64 / 2) as usize);
    for _ in 0..count {
        let (address, len) = (reader.varint()?, narrow(reader.varint()?, "piece length")?);
        if address >= PhysicalOffset::HOLE.0 || len == 0 {
            return Err(Error::corruption(format!("log record: piece of {len} bytes at address {address}")));
        }
        pieces.push(Piece { address: PhysicalOffset(address), len });
    }
    Ok(pieces)
}

fn blocks(reader: &mut Reader<'_>) -> Result<BlockRun> {
    let head = reader.u8()?;
    let segment = narrow(reader.varint()?, "segment")?;
    let first_block = narrow(reader.varint()?, "block")?;
    let count: usize = narrow(reader.varint()?, "number of blocks")?;
    let bytes = reader.bytes(count.saturating_mul(4))?;
    let checksums = bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
    Ok(BlockRun { head, segment, first_block, checksums })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_of_each() -> Vec<(Record<'static>, &'static [u8])> {
        let piece = |address, len| Piece { address: PhysicalOffset(address), len };
        let run = BlockRun { head: 1, segment: 300, first_block: 2, checksums: vec![0x0403_0201, 0xffff_ffff] };
        let two = Pieces::from_slice(&[piece(3, 4), piece(128, 5)]);
        let change = |change| Record::Change(FileId(1), change);
        vec![
            (change(Change::Insert { offset: 2, pieces: two }), &[1, 1, 2, 2, 3, 4, 128, 1, 5]),
            (change(Change::InsertHole { offset: 2, len: 300 }), &[2, 1, 2, 172, 2]),
            (change(Change::Collapse { offset: 2, len: 3 }), &[3, 1, 2, 3]),
            (change(Change::Replace { offset: 2, pieces: Pieces::from_slice(&[piece(3, 4)]) }), &[4, 1, 2, 1, 3, 4]),
            (change(Change::ReplaceHole { offset: 2, len: 3 }), &[5, 1, 2, 3]),
            (change(Change::SetTag { offset: 2, tag: Tag(65535) }), &[6, 1, 2, 255, 255, 3]),
            (Record::Create(FileId(9), b"ab"), &[7, 9, 2, b'a', b'b']),
            (Record::Rename(FileId(9), b"c"), &[8, 9, 1, b'c']),
            (Record::Remove(FileId(9)), &[9, 9]),
            (Record::CommitWord(128), &[10, 128, 1]),
            (Record::Annotation(b"xyz"), &[11, 3, b'x', b'y', b'z']),
            (Record::Blocks(run), &[12, 1, 172, 2, 2, 2, 1, 2, 3, 4, 255, 255, 255, 255]),
            (Record::EndOfLog, &[13]),
            (Record::Batch, &[14]),
        ]
    }

    #[test]
    fn golden_bytes_of_every_kind() {
        for (record, golden) in one_of_each() {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            assert_eq!(bytes, golden, "{record:?}");
            let mut reader = Reader::new(&bytes);
            assert_eq!(Record::decode(&mut reader).unwrap(), Some(record));
            assert_eq!(Record::decode(&mut reader).unwrap(), None);
        }
    }

    #[test]
    fn every_cut_is_an_error() {
        for (record, golden) in one_of_each() {
            for len in 1..golden.len() {
                let mut reader = Reader::new(&golden[..len]);
                assert!(Record::decode(&mut reader).is_err(), "{record:?} cut to {len}");
            }
        }
    }
}
