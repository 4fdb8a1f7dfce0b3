//! heaptop, end to end: real targets, a real agent, and the real viewer in a
//! pseudo-terminal. One binary, one module a promise.

mod agree;
mod columns;
mod damaged;
mod demo;
mod exact;
mod followed;
mod frees;
mod httpd;
mod manners;
mod near;
mod nurseries;
mod prove;
mod reallocs;
mod recordings;
mod report;
mod safety;
mod shown;
mod viewer;
mod viewer_commands;
mod viewer_config;
mod viewer_gone;
mod viewer_growth;
mod viewer_idle;
mod viewer_keys;
mod viewer_manners;
mod viewer_names;
mod viewer_peers;
mod viewer_screens;
mod viewer_sizes;
mod viewer_targets;
