//! What blocks stand for, remembered.

pub use heaptop_protocol::weights::Weights;
