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
//! | 11 | Annotation | length, bytes: of the caller, about the record before it |
//! | 12 | Blocks | head, segment, first block, n, n x CRC-32 (4 bytes little-endian each) |
//! | 13 | EndOfLog | the log goes on in the other file |
//! | 14 | Batch | everything before this frame was handed over together |
//! | 15 | Move | reserved: file, offset, length, file, offset |
//! | 16 | Payload | reserved: bytes that `DATA` does not hold yet |
//!
//! Frames that were handed to the kernel together form a batch; its last frame holds the `Blocks` of the data that went
//! before it, and ends in `Batch` or `EndOfLog`.

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

/// Bytes that lie together in `DATA`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Where.
    pub address: PhysicalOffset,
    /// How many.
    pub len: u32,
}

/// One record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record<'a> {
    /// Bytes came in; what was behind `offset` moved up.
    Insert(FileId, u64, Vec<Piece>),
    /// Zeros came in.
    InsertHole(FileId, u64, u64),
    /// Bytes went; what was behind them moved down.
    Collapse(FileId, u64, u64),
    /// Bytes were overwritten or moved in `DATA`.
    Replace(FileId, u64, Vec<Piece>),
    /// Bytes became zeros.
    ReplaceHole(FileId, u64, u64),
    /// A byte got or lost its tag.
    SetTag(FileId, u64, Tag),
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
            Record::Insert(file, offset, pieces) => put_pieces(out, INSERT, *file, *offset, pieces),
            Record::Replace(file, offset, pieces) => put_pieces(out, REPLACE, *file, *offset, pieces),
            Record::InsertHole(file, offset, len) => put_range(out, INSERT_HOLE, *file, *offset, *len),
            Record::Collapse(file, offset, len) => put_range(out, COLLAPSE, *file, *offset, *len),
            Record::ReplaceHole(file, offset, len) => put_range(out, REPLACE_HOLE, *file, *offset, *len),
            Record::SetTag(file, offset, tag) => put_range(out, SET_TAG, *file, *offset, tag.0 as u64),
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
            INSERT => {
                let (file, offset, pieces) = pieces(reader)?;
                Record::Insert(file, offset, pieces)
            }
            REPLACE => {
                let (file, offset, pieces) = pieces(reader)?;
                Record::Replace(file, offset, pieces)
            }
            INSERT_HOLE => Record::InsertHole(FileId(reader.varint()?), reader.varint()?, reader.varint()?),
            COLLAPSE => Record::Collapse(FileId(reader.varint()?), reader.varint()?, reader.varint()?),
            REPLACE_HOLE => Record::ReplaceHole(FileId(reader.varint()?), reader.varint()?, reader.varint()?),
            SET_TAG => {
                let (file, offset, tag) = (FileId(reader.varint()?), reader.varint()?, reader.varint()?);
                Record::SetTag(file, offset, Tag(narrow(tag, "tag")?))
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

fn pieces(reader: &mut Reader<'_>) -> Result<(FileId, u64, Vec<Piece>)> {
    let (file, offset, count) = (FileId(reader.varint()?), reader.varint()?, reader.varint()?);
    // A piece takes two bytes or more, so that a damaged count can't make us allocate beyond the input.
    let mut pieces = Vec::with_capacity(count.min(reader.remaining() as u64 / 2) as usize);
    for _ in 0..count {
        let (address, len) = (reader.varint()?, narrow(reader.varint()?, "piece length")?);
        if address >= PhysicalOffset::HOLE.0 || len == 0 {
            return Err(Error::corruption(format!("log record: piece of {len} bytes at address {address}")));
        }
        pieces.push(Piece { address: PhysicalOffset(address), len });
    }
    Ok((file, offset, pieces))
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
        vec![
            (Record::Insert(FileId(1), 2, vec![piece(3, 4), piece(128, 5)]), &[1, 1, 2, 2, 3, 4, 128, 1, 5]),
            (Record::InsertHole(FileId(1), 2, 300), &[2, 1, 2, 172, 2]),
            (Record::Collapse(FileId(1), 2, 3), &[3, 1, 2, 3]),
            (Record::Replace(FileId(1), 2, vec![piece(3, 4)]), &[4, 1, 2, 1, 3, 4]),
            (Record::ReplaceHole(FileId(1), 2, 3), &[5, 1, 2, 3]),
            (Record::SetTag(FileId(1), 2, Tag(65535)), &[6, 1, 2, 255, 255, 3]),
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
