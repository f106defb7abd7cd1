//! Errors are values: what went wrong, where (path, offset), and what the system said (errno).
//!
//! One type for the whole engine. Callers branch on [`Error::kind`]; the text is for people.
//! The C layer maps each kind to a status number that is never reused.

use std::fmt;
use std::path::{Path, PathBuf};

/// The result of everything that may fail.
pub type Result<T> = std::result::Result<T, Error>;

/// What a caller can branch on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The named thing does not exist.
    NotFound,
    /// The named thing exists already.
    AlreadyExists,
    /// An offset or range lies outside the file.
    OutOfRange,
    /// The operating system refused a read, write or sync.
    Io,
    /// Bytes on disk fail their checksum or contradict each other.
    Corruption,
    /// An argument has no meaning.
    InvalidArgument,
    /// The disk is full; nothing was changed.
    NoSpace,
    /// Another process (or handle) holds what is asked for.
    Busy,
    /// An earlier write or sync failed; only reads go on until the space is reopened.
    Poisoned,
    /// The space was closed.
    Closed,
    /// The handle was inherited through `fork`.
    Forked,
    /// The directory was written by a version that this one can't read.
    Version,
    /// A length is above its limit.
    TooBig,
    /// The space was opened for reading only.
    ReadOnly,
}

/// An error with its context. One word wide, so that `Result` stays small.
pub struct Error(Box<Context>);

#[derive(Clone)]
struct Context {
    kind: ErrorKind,
    message: String,
    path: Option<PathBuf>,
    offset: Option<u64>,
    errno: Option<i32>,
}

impl Error {
    /// An error of `kind` with a text that says what, and what to do.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Box::new(Context { kind, message: message.into(), path: None, offset: None, errno: None }))
    }

    /// A failed system call: ENOSPC and EDQUOT become `NoSpace`, everything else `Io`.
    pub fn from_io(doing: &str, error: &std::io::Error) -> Error {
        let errno = error.raw_os_error();
        let kind = match errno {
            Some(libc::ENOSPC) | Some(libc::EDQUOT) => ErrorKind::NoSpace,
            Some(libc::ENOENT) => ErrorKind::NotFound,
            _ => ErrorKind::Io,
        };
        let mut it = Error::new(kind, format!("{doing}: {error}"));
        it.0.errno = errno;
        it
    }

    /// Damaged bytes: what was expected and what was found.
    pub fn corruption(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Corruption, message)
    }

    /// A meaningless argument.
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::InvalidArgument, message)
    }

    /// The same error, of another kind.
    pub fn with_kind(mut self, kind: ErrorKind) -> Error {
        self.0.kind = kind;
        self
    }

    /// The same error, at a file. The first path named wins.
    pub fn at_path(mut self, path: &Path) -> Error {
        self.0.path.get_or_insert_with(|| path.to_path_buf());
        self
    }

    /// The same error, at a byte offset of its file. The first offset named wins.
    pub fn at_offset(mut self, offset: u64) -> Error {
        self.0.offset.get_or_insert(offset);
        self
    }

    /// What to branch on.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The text without path, offset and errno.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The file it happened in, where there is one.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// The byte offset in that file, where there is one.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The system's error number, where there is one.
    pub fn errno(&self) -> Option<i32> {
        self.0.errno
    }
}

impl Clone for Error {
    fn clone(&self) -> Error {
        Error(self.0.clone())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(path) = &self.0.path {
            write!(f, " [{}", path.display())?;
            if let Some(offset) = self.0.offset {
                write!(f, " at byte {offset}")?;
            }
            f.write_str("]")?;
        } else if let Some(offset) = self.0.offset {
            write!(f, " [at byte {offset}]")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl std::error::Error for Error {}
