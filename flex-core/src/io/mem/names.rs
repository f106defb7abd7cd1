//! The directories of a file system in memory: the names programs see, those that are durable, the changes between.
//!
//! Directories are never removed, so a directory is its place in a list; the root is the first. A directory's names are
//! durable if *its* `sync_dir` came after them, and survive if the directory itself does.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{Error, Result};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::inode::Inode;

pub(super) const ROOT: usize = 0;

/// What a name stands for.
#[derive(Clone)]
pub(super) enum Node {
    File(Arc<Inode>),
    Dir(usize),
}

#[derive(Clone)]
pub(super) enum NameChange {
    Add(OsString, Node),
    Remove(OsString),
    Rename(OsString, OsString),
}

pub(super) type Entries = BTreeMap<OsString, Node>;

#[derive(Clone, Default)]
pub(super) struct Dir {
    pub(super) live: Entries,
    pub(super) durable: Entries,
    pub(super) pending: Vec<NameChange>,
}

impl Dir {
    /// A directory all of whose names are durable.
    pub(super) fn durable(entries: Entries) -> Dir {
        Dir { live: entries.clone(), durable: entries, pending: Vec::new() }
    }

    fn change(&mut self, change: NameChange) {
        change.apply(&mut self.live);
        self.pending.push(change);
    }

    pub(super) fn sync(&mut self) {
        for change in self.pending.drain(..) {
            change.apply(&mut self.durable);
        }
    }
}

impl NameChange {
    pub(super) fn apply(&self, entries: &mut Entries) {
        match self {
            NameChange::Add(name, node) => {
                entries.insert(name.clone(), node.clone());
            }
            NameChange::Remove(name) => {
                entries.remove(name);
            }
            NameChange::Rename(from, to) => {
                if let Some(node) = entries.remove(from) {
                    entries.insert(to.clone(), node);
                }
            }
        }
    }
}

pub(super) struct Names {
    pub(super) dirs: Vec<Dir>,
}

impl Names {
    pub(super) fn new() -> Names {
        Names { dirs: vec![Dir::default()] }
    }

    pub(super) fn file(&self, path: &Path) -> Result<Arc<Inode>> {
        match self.node(path)? {
            Node::File(inode) => Ok(inode),
            Node::Dir(_) => Err(errno(libc::EISDIR)),
        }
    }

    pub(super) fn dir(&self, path: &Path) -> Result<usize> {
        match self.node(path)? {
            Node::Dir(dir) => Ok(dir),
            Node::File(_) => Err(errno(libc::ENOTDIR)),
        }
    }

    /// Adds a name that must be free.
    pub(super) fn add_file(&mut self, path: &Path, inode: Arc<Inode>) -> Result<()> {
        let (dir, name) = self.free_place(path)?;
        self.dirs[dir].change(NameChange::Add(name, Node::File(inode)));
        Ok(())
    }

    pub(super) fn add_dir(&mut self, path: &Path) -> Result<()> {
        let (dir, name) = self.free_place(path)?;
        let new = self.dirs.len();
        self.dirs.push(Dir::default());
        self.dirs[dir].change(NameChange::Add(name, Node::Dir(new)));
        Ok(())
    }

    pub(super) fn remove_file(&mut self, path: &Path) -> Result<()> {
        self.file(path)?;
        let (dir, name) = self.place(path)?;
        self.dirs[dir].change(NameChange::Remove(name));
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> Result<()> {
        self.file(from)?;
        let (dir, old) = self.place(from)?;
        let (target, new) = self.place(to)?;
        if dir != target {
            return Err(errno(libc::EXDEV));
        }
        if let Some(Node::Dir(_)) = self.dirs[dir].live.get(&new) {
            return Err(errno(libc::EISDIR));
        }
        if old != new {
            self.dirs[dir].change(NameChange::Rename(old, new));
        }
        Ok(())
    }

    fn node(&self, path: &Path) -> Result<Node> {
        let mut node = Node::Dir(ROOT);
        for name in components(path)? {
            let Node::Dir(dir) = node else { return Err(errno(libc::ENOTDIR)) };
            node = self.dirs[dir].live.get(name).cloned().ok_or_else(|| errno(libc::ENOENT))?;
        }
        Ok(node)
    }

    /// The directory that a path lies in, and its name there.
    fn place(&self, path: &Path) -> Result<(usize, OsString)> {
        let mut names = components(path)?;
        let name = names.pop().ok_or_else(|| errno(libc::EEXIST))?;
        let parent: PathBuf = names.iter().collect();
        Ok((self.dir(&parent)?, name.to_owned()))
    }

    fn free_place(&self, path: &Path) -> Result<(usize, OsString)> {
        let (dir, name) = self.place(path)?;
        if self.dirs[dir].live.contains_key(&name) { Err(errno(libc::EEXIST)) } else { Ok((dir, name)) }
    }
}

/// Relative and absolute paths mean the same; `..` is not supported.
fn components(path: &Path) -> Result<Vec<&OsStr>> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => return Err(errno(libc::EINVAL)),
        }
    }
    Ok(names)
}

pub(super) fn errno(number: i32) -> Error {
    Error::from_raw_os_error(number)
}
