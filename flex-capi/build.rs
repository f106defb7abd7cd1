//! Gives the shared library its SONAME. What is exported needs no script of its own: rustc passes the linker one that
//! exports the `no_mangle` functions and hides the rest; tests/symbols.sh compares the result with symbols.txt.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libflexfile.so.0");
}
