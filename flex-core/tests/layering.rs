//! The arrows of the design: `file` -> `tree` -> { `codec`, `io`, `error` }, read off the sources.
//!
//! Unit tests inside the sources may use more; everything from `#[cfg(test)]` on is left out.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(layer: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut dirs = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(layer)];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") && !path.to_string_lossy().ends_with("_tests.rs")
            {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text.split("#[cfg(test)]").next().unwrap_or_default().to_owned()));
            }
        }
    }
    assert!(found.len() > 3, "layer {layer} has moved");
    found
}

/// No line of code of the layer names one of these paths.
fn names_none_of(layer: &str, forbidden: &[&str]) {
    for (path, text) in sources(layer) {
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for word in forbidden {
                assert!(!code.contains(word), "{}:{} names {word}: {line}", path.display(), number + 1);
            }
        }
    }
}

#[test]
fn tree_is_pure() {
    names_none_of("tree", &["crate::file", "crate::io", "crate::db", "std::fs", "std::io", "std::time", "std::thread"]);
    names_none_of("tree", &["Mutex", "RwLock", "Condvar", "parking_lot"]);
}

#[test]
fn file_reaches_the_disk_through_io_only() {
    names_none_of("file", &["crate::db", "std::fs", "std::os::fd", "std::net"]);
}

#[test]
fn the_bottom_knows_nothing_above() {
    names_none_of("codec", &["crate::file", "crate::tree", "crate::io", "crate::db", "std::fs", "std::time"]);
    names_none_of("io", &["crate::file", "crate::tree", "crate::db"]);
}
