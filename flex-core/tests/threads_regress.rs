//! Named regressions of defects between threads: each forces the one order of events that showed the defect.
//!
//! `Gated` holds back syncs of chosen files until the test lets them go, so that the order needs no luck and no sleeping.

mod threads_support;

use flex_core::file::{FlexSpace, SpaceOptions};
use flex_core::io::FileSystem;
use flex_core::io::mem::MemFileSystem;
use std::path::Path;
use std::sync::Arc;
use threads_support::{Gated, options, sound, within};

fn gated() -> (Arc<Gated>, FlexSpace) {
    let fs = Arc::new(Gated::new(Arc::new(MemFileSystem::new())));
    let options = SpaceOptions { background: false, ..options() };
    let space = FlexSpace::open_with(fs.clone() as Arc<dyn FileSystem>, Path::new("/space"), &options).unwrap();
    (fs, space)
}

/// A checkpoint and a sync that waited for `DATA` at the same time both took the same bytes off the count of what waits,
/// so that bytes written meanwhile were taken for synced: the next sync left `DATA` out.
#[test]
fn overlapping_syncs_do_not_hide_bytes_written_meanwhile() {
    let (fs, space) = gated();
    let file = space.create_file(b"a").unwrap();
    file.append(&[1; 10_000]).unwrap();
    within(20, || {
        std::thread::scope(|scope| {
            fs.hold("DATA");
            scope.spawn(|| space.checkpoint().unwrap());
            fs.wait_for_held(1);
            scope.spawn(|| space.sync().unwrap());
            fs.wait_for_held(2);
            file.append(&[2; 9_000]).unwrap();
            space.flush().unwrap();
            fs.release();
        });
    });
    let before = fs.syncs("DATA");
    space.sync().unwrap();
    assert!(fs.syncs("DATA") > before, "a sync with data waiting syncs DATA");
    sound(&space);
    space.close().unwrap();
}
