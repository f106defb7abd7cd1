//! Arguments that have no meaning: each has its code, and changes nothing (the comparison that follows shows it).

use crate::compare;
use crate::model::Model;
use flex_core::address::Tag;
use flex_core::file::{FlexFile, FlexSpace};
use flex_core::{ErrorKind, Result};

const TOO_FAR: u64 = 1 << 63;

fn refused<T>(kind: ErrorKind, what: &str, result: Result<T>) {
    match result {
        Ok(_) => panic!("{what} was accepted"),
        Err(error) => assert_eq!(error.kind(), kind, "{what}: {error}"),
    }
}

/// All of them, on the space, on one file, and on the handle of a removed one.
pub fn arguments(space: &FlexSpace, model: &Model, file: Option<(Vec<u8>, FlexFile)>, removed: Option<&FlexFile>) {
    use ErrorKind::{InvalidArgument, NotFound};
    refused(InvalidArgument, "an empty name", space.create_file(b""));
    refused(InvalidArgument, "a name of 256 bytes", space.create_file(&[b'x'; 256]));
    refused(InvalidArgument, "a zero in a name", space.create_file(b"x\0"));
    refused(NotFound, "opening nothing", space.open_file(b"nothing"));
    refused(NotFound, "removing nothing", space.remove_file(b"nothing"));
    refused(NotFound, "renaming nothing", space.rename_file(b"nothing", b"other"));
    if let Some((name, file)) = &file {
        on_file(file, model.files[name].len() as u64);
        in_group(space, file, model.files[name].len() as u64);
        refused(InvalidArgument, "an empty new name", space.rename_file(name, b""));
        refused(ErrorKind::AlreadyExists, "a second file of one name", space.create_file(name));
        refused(InvalidArgument, "a file twice in a group", space.group(&[file, file]));
        compare::whole(file, &model.files[name]);
    }
    if let Some(removed) = removed {
        refused(NotFound, "size of a removed file", removed.size());
        refused(NotFound, "reading a removed file", removed.read(0, &mut [0]));
        refused(NotFound, "writing a removed file", removed.write(0, b"x"));
        refused(NotFound, "a snapshot of a removed file", removed.snapshot());
        refused(NotFound, "a group of a removed file", space.group(&[removed]));
    }
}

fn on_file(file: &FlexFile, len: u64) {
    use ErrorKind::{OutOfRange, TooBig};
    refused(OutOfRange, "insert behind the end", file.insert(len + 1, b"x"));
    refused(OutOfRange, "insert at the largest offset", file.insert(u64::MAX, b"x"));
    refused(OutOfRange, "a hole behind the end", file.insert_hole(len + 1, 1));
    refused(OutOfRange, "collapse behind the end", file.collapse(len, 1));
    refused(OutOfRange, "collapse across the end", file.collapse(0, len + 1));
    refused(OutOfRange, "a collapse that overflows", file.collapse(1, u64::MAX));
    refused(OutOfRange, "a collapse far away", file.collapse(u64::MAX, 2));
    refused(OutOfRange, "an update across the end", file.update(len, 1, b"x"));
    refused(OutOfRange, "an update that overflows", file.update(u64::MAX, u64::MAX, b"x"));
    refused(OutOfRange, "a punch across the end", file.punch_hole(0, len + 1));
    refused(OutOfRange, "a tag at the end", file.set_tag(len, Tag(1)));
    refused(OutOfRange, "a tag far away", file.set_tag(u64::MAX, Tag(1)));
    refused(OutOfRange, "asking for a tag at the end", file.tag(len));
    refused(OutOfRange, "read_extent at the end", file.read_extent(len, &mut [0]));
    refused(TooBig, "a write that overflows", file.write(u64::MAX, b"xy"));
    refused(TooBig, "a write behind the largest size", file.write(TOO_FAR - 1, b"x"));
    refused(TooBig, "truncate above the largest size", file.truncate(TOO_FAR));
    refused(TooBig, "fallocate above the largest size", file.fallocate(TOO_FAR - 1, 1));
    refused(TooBig, "fallocate that overflows", file.fallocate(u64::MAX, 1));
    refused(TooBig, "a hole that overflows", file.insert_hole(len, u64::MAX));
    if len > 0 {
        refused(TooBig, "a hole above the largest size", file.insert_hole(0, TOO_FAR - 1));
    }
    assert_eq!(file.read(u64::MAX, &mut [0; 4]).unwrap(), 0);
    assert_eq!(file.read(len, &mut [0; 4]).unwrap(), 0);
    assert_eq!(file.next_data(u64::MAX).unwrap(), None);
    assert_eq!(file.next_hole(u64::MAX).unwrap(), None);
    assert_eq!(file.next_tagged(u64::MAX).unwrap(), None);
    assert_eq!(file.prev_tagged(u64::MAX).unwrap(), file.prev_tagged(len).unwrap());
    assert_eq!(file.cursor(u64::MAX).unwrap().current(), None);
    file.write(len + 9, b"").unwrap();
    file.insert(len, b"").unwrap();
    file.collapse(len, 0).unwrap();
    file.punch_hole(len, 0).unwrap();
    file.update(len, 0, b"").unwrap();
    assert_eq!(file.defrag(u64::MAX, u64::MAX).unwrap(), 0);
}

fn in_group(space: &FlexSpace, file: &FlexFile, len: u64) {
    use ErrorKind::{OutOfRange, TooBig};
    let mut group = space.group(&[file]).unwrap();
    refused(OutOfRange, "insert behind the end", group.insert(file, len + 1, b"x"));
    refused(OutOfRange, "collapse across the end", group.collapse(file, 1, len));
    refused(OutOfRange, "a collapse that overflows", group.collapse(file, u64::MAX, 2));
    refused(OutOfRange, "an update across the end", group.update(file, len, 1, b"x"));
    refused(OutOfRange, "a tag at the end", group.set_tag(file, len, Tag(1)));
    refused(OutOfRange, "asking for a tag at the end", group.tag(file, len));
    refused(TooBig, "a write that overflows", group.write(file, u64::MAX, b"xy"));
    refused(TooBig, "truncate above the largest size", group.truncate(file, TOO_FAR));
    refused(ErrorKind::Busy, "a second group of the same thread", space.group(&[file]));
    group.write(file, len + 9, b"").unwrap();
    assert_eq!(group.size(file).unwrap(), len);
    group.commit().unwrap();
}
