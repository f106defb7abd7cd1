//! The first things a user does, on the real disk and in memory.

use flex_core::file::{FlexSpace, SpaceOptions};
use flex_core::io::FileSystem;
use flex_core::io::mem::MemFileSystem;
use std::path::Path;
use std::sync::Arc;

fn options() -> SpaceOptions {
    SpaceOptions { background: false, ..SpaceOptions::default() }
}

fn sound(space: &FlexSpace) {
    let report = space.check(&mut |_| true).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[test]
fn bytes_come_back_after_reopening() {
    let fs = Arc::new(MemFileSystem::new());
    let path = Path::new("/space");
    let mut model = Vec::new();
    for round in 0..4u32 {
        let space = FlexSpace::open_with(fs.clone() as Arc<dyn FileSystem>, path, &options()).unwrap();
        let file = if round == 0 { space.create_file(b"a") } else { space.open_file(b"a") }.unwrap();
        for i in 0..2000u32 {
            let text = format!("<{round}.{i}>");
            let at = (i as usize * 7919) % (model.len() + 1);
            file.insert(at as u64, text.as_bytes()).unwrap();
            model.splice(at..at, text.bytes());
            if i % 3 == 0 {
                let len = model.len().min(5);
                let at = (i as usize * 104_729) % (model.len() - len + 1);
                file.collapse(at as u64, len as u64).unwrap();
                model.drain(at..at + len);
            }
        }
        let mut found = vec![0; model.len() + 10];
        let len = file.read(0, &mut found).unwrap();
        assert_eq!(found[..len], model);
        sound(&space);
        if round % 2 == 0 {
            space.close().unwrap();
        } else {
            space.flush().unwrap();
        }
    }
}
