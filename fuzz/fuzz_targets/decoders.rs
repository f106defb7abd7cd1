//! Raw bytes to every decoder; the first byte says which. None may panic or take more memory than the input accounts for.
#![no_main]

use flex_core::file::fuzzing::decode;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some((decoder, bytes)) = bytes.split_first() {
        decode(*decoder as usize, bytes);
    }
});
