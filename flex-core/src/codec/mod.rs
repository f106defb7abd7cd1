//! Byte formats shared by the layers above.
