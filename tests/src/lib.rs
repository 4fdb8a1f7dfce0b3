//! The harness of heaptop's end-to-end tests.
//!
//! ```text
//! apart      fixtures that are crates of their own
//! binaries   where the programs under test lie, or a clear failure
//! deadline   waits for conditions; the only place that polls
//! run        a program run to its end, and the same unprofiled
//! target     a running target: its lines, its exit, its own socket directory
//! client     a viewer without a screen: the protocol, applied to totals
//! names      from callstacks to functions
//! truth      what targets print about themselves
//! terminal   the real viewer in a pseudo-terminal
//! impostor   a peer that is no agent
//! http       a bounded load for the HTTP server
//! usage      CPU time of a child
//! ratio      medians of many runs, and their interval
//! coverage   whether intervals hold the truth: simulated programs
//! ```
//!
//! Nothing here sleeps to let something happen: every wait has a condition and
//! a deadline, and says at its end what there was instead.

pub mod apart;
pub mod binaries;
pub mod client;
pub mod coverage;
pub mod deadline;
pub mod http;
pub mod impostor;
pub mod names;
pub mod ratio;
pub mod run;
pub mod target;
pub mod terminal;
pub mod truth;
pub mod usage;
