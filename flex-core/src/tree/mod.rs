//! FlexTree.
