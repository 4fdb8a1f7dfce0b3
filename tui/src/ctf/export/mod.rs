//! Traces made of other things: [`convert`] of a trace, [`from_told`] of whatever can be
//! told.
//!
//! Of one stream a trace is written again event by event, so that it stays what it was.
//! Several streams (version 3) become one: sorted by time, objects numbered anew in that
//! order; the domain's number is lost.

mod convert;
mod native;
mod record;
mod thin;

pub use convert::{Converted, convert};
pub use native::{ExportError, Exported, from_told};
