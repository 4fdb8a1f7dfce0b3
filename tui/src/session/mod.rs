//! The model of one target. See [`Session`].

pub mod figures;
pub mod names;
