//! The C ABI of FlexFile.
