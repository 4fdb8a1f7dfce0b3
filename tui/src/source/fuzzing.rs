//! What fuzz targets reach that programs do not.

use super::recording::{Names, Teller};
use super::remains::{Known, Remains};
use super::tell::Tell;
use heaptop_protocol::message::{FromAgent, Hello, Memory};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What a recording tells; an error where it is none, as a sentence.
pub fn recording(bytes: Vec<u8>) -> Result<Box<dyn Tell>, String> {
    let length = bytes.len() as u64;
    let file = Box::new(std::io::Cursor::new(bytes));
    match Teller::open(Path::new("fuzzed"), file, length, Names::Leave) {
        Ok(teller) => Ok(Box::new(teller)),
        Err(error) => Err(error.to_string()),
    }
}

/// Tells what `file` has left, as if it were a dead target's memory: an error where it
/// is none, as a sentence.
pub fn remains(
    file: &File,
    hello: &Hello,
    tell: &mut dyn FnMut(FromAgent) -> bool,
) -> Result<(), String> {
    let found = file.metadata().map_err(|e| e.to_string())?;
    let memory = Memory {
        fd: file.as_raw_fd().unsigned_abs(),
        tid: std::process::id(),
        device: found.dev(),
        inode: found.ino(),
    };
    let mut known = Known::default();
    known.see(&FromAgent::Hello(hello.clone()));
    let remains = Remains::open(std::process::id(), memory).ok_or("it is not there")?;
    let _ = remains.exit_code();
    remains.tell(&known, tell)
}
