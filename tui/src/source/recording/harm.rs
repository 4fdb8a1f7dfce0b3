//! Damaged places of a recording, while it is read: one after the other, each with what could
//! not be read for it.

use std::collections::VecDeque;

use heaptop_protocol::recording::RecordingError;

use crate::session::{Damage, Missing};

/// Most places that are told one by one; how many there are more is told at the end.
const MOST: usize = 20;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Harm {
    /// Where the place begins whose end is not known yet, and what is wrong with it.
    open: Option<(u64, String)>,
    /// What is to be told.
    told: VecDeque<Damage>,
    places: usize,
    lost_bytes: u64,
}

impl Harm {
    /// From this byte on nothing can be opened.
    pub(super) fn begins(&mut self, at: u64, why: &dyn std::fmt::Display) {
        self.open.get_or_insert_with(|| (at, why.to_string()));
    }

    /// What is wrong, as long as nothing behind it could be opened.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// From this byte on it goes on, or the file is over.
    pub(super) fn ends(&mut self, at: u64) {
        let Some((from, why)) = self.open.take() else { return };
        let bytes = at.saturating_sub(from);
        self.lost_bytes += bytes;
        let how = format!("{why}; {bytes} bytes from there on cannot be read");
        self.put(how, Missing::Between);
    }

    /// A bit was set right in this byte.
    pub(super) fn mended(&mut self, at: u64) {
        let how = format!(
            "the recording was damaged at byte {at}: one bit had turned over, and was set right"
        );
        self.put(how, Missing::Nothing);
    }

    /// A part of a chunk that is sound in itself makes no sense.
    pub(super) fn senseless(&mut self, why: String) {
        self.put(why, Missing::Between);
    }

    /// A copy says what was missing in what it is a copy of.
    pub(super) fn was(&mut self, why: String) {
        self.put(why, Missing::Between);
    }

    /// The last chunk is torn off.
    pub(super) fn torn(&mut self, why: &str) {
        self.told.push_back(Damage { how: why.to_owned(), missing: Missing::End });
    }

    fn put(&mut self, how: String, missing: Missing) {
        self.places += 1;
        if self.places <= MOST {
            self.told.push_back(Damage { how, missing });
        } else if self.places == MOST + 1 {
            let how = "the recording is damaged in more places, which are counted alone".into();
            self.told.push_back(Damage { how, missing: Missing::Between });
        }
    }

    /// The next that is to be told.
    pub(super) fn take(&mut self) -> Option<Damage> {
        self.told.pop_front()
    }

    /// What of the whole file is to be said of it.
    pub(super) fn sum(&self) -> Option<String> {
        match (self.places, self.lost_bytes) {
            (0, _) => None,
            (places, 0) => Some(format!("damaged in {places} place{}", plural(places))),
            (places, bytes) => Some(format!(
                "damaged in {places} place{}, {bytes} bytes cannot be read",
                plural(places)
            )),
        }
    }
}

const fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

/// Whether what comes behind such an error may be read all the same.
pub(super) const fn can_be_passed(error: RecordingError) -> bool {
    match error {
        RecordingError::ChunkHeader { .. }
        | RecordingError::TooLong { .. }
        | RecordingError::Checksum { .. }
        | RecordingError::Content { .. } => true,
        RecordingError::Foreign
        | RecordingError::Header
        | RecordingError::Newer { .. }
        | RecordingError::Unknown { .. } => false,
    }
}
