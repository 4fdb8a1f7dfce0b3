//! heaptop's viewer.
//!
//! ```text
//! source ─► session ─► query ─► view      symbols: names for frames, in the background
//!                        ▲                app: state, keys, effects
//!                       app               export: SVG
//! ```

pub mod app;
pub mod export;
pub mod query;
pub mod session;
pub mod view;
