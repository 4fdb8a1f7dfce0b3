//! Definitions of codes, as they are written: see [`crate::ctf::location`].

use super::numbers::{text, up_to_nul};
use crate::ctf::location::{ENTRIES, Location, Table, Text};

/// Most bytes of an event with locations: memtrace's own bound.
const MOST_BYTES: usize = 4096;

/// The tables as the reader will have them.
#[derive(Debug, Default)]
pub(super) struct Tables(Table<(Text, Table<Text>)>);

impl Tables {
    /// Appends what stands behind the event's word: the code and its locations. What is
    /// too long for an event becomes one location without a name, as memtrace does it.
    pub fn write(&mut self, out: &mut Vec<u8>, code: u64, locations: &[Location]) {
        let text_bytes = |l: &Location| up_to_nul(&l.file).len() + up_to_nul(&l.function).len();
        let bytes = 9 + locations.iter().map(|l| 8 + text_bytes(l)).sum::<usize>();
        out.extend(code.to_le_bytes());
        if let (Ok(count), true) = (u8::try_from(locations.len()), bytes <= MOST_BYTES) {
            out.push(count);
            for location in locations {
                self.one(out, location);
            }
            return;
        }
        let (file, function) = (b"<unknown>"[..].into(), b"??"[..].into());
        out.push(1);
        self.one(out, &Location { file, function, line: 1, start: 1, end: 1 });
    }

    fn one(&mut self, out: &mut Vec<u8>, l: &Location) {
        let (file, function) = (up_to_nul(&l.file), up_to_nul(&l.function));
        let known_file = self.0.find(|(name, _)| **name == *file);
        let entry = match known_file {
            Some(index) => self.0.use_at(index),
            None => Some(self.0.put(|_| (file.into(), Table::default()))),
        };
        let Some((_, functions)) = entry else { return };
        let known_function = functions.find(|name| **name == *function);
        match known_function {
            Some(index) => {
                functions.use_at(index);
            }
            None => {
                functions.put(|_| function.into());
            }
        }
        let field = |value: u64, most: u64, shift: u32| value.min(most) << shift;
        let index = |known: Option<usize>| known.unwrap_or(ENTRIES) as u64;
        let word = field(l.line.into(), 0xF_FFFF, 0)
            | field(l.start.into(), 0xFF, 20)
            | field(l.end.into(), 0x3FF, 28)
            | index(known_file) << 38
            | index(known_function) << 43;
        out.extend_from_slice(&word.to_le_bytes()[..6]);
        if known_file.is_none() {
            text(out, file);
        }
        if known_function.is_none() {
            text(out, function);
        }
    }
}
