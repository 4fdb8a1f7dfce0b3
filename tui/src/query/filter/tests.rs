//! The language, and what it means, against truth by hand.
