//! heaptop tests.
