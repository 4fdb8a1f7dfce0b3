//! heaptop's viewer.
//!
//! ```text
//! source ─► session ─► query ─► view      symbols: names for frames, in the background
//!                        ▲                app: state, keys, effects
//!   terminal: the loop ─ app              export: SVG     report: tables as text
//!   cli: the command line      proof: estimates beside the truth      ctf: memtrace's traces
//!   record: what comes from a source, into a file      config: what the user has chosen for good
//! ```

// One system call that no library has: see `source::process`.
#![deny(unsafe_code)]

pub mod app;
pub mod calendar;
pub mod cli;
pub mod config;
pub mod ctf;
pub mod export;
pub mod proof;
pub mod query;
pub mod record;
pub mod report;
pub mod session;
mod size;
pub mod source;
pub mod symbols;
pub mod system;
pub mod terminal;
mod times;
pub mod view;
