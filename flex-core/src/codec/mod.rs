//! Byte formats shared by the layers above: integers of varying length, checksums, a checked reader, and the frame
//! that both logs consist of. Nothing here does I/O, and no decoder allocates or panics, whatever the bytes.

pub mod crc;
pub mod frame;
pub mod reader;
pub mod varint;
