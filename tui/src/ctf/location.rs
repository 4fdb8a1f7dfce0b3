//! What codes in callstacks stand for, and the names in them.
//!
//! A location names its file and its function by their places in tables that reader
//! and writer keep alike: what was used last comes first, and what falls off the end is
//! forgotten. [`Table`] is such a table; a file's entry holds a table of functions.

use super::bytes::Bytes;
use super::error::{CtfError, Why};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Entries of a table, and the index that says "none of them".
pub(super) const ENTRIES: usize = 31;

/// Most codes and locations, 400 MB: a file can define one with 19 bytes, and no program
/// calls from so many places.
const MOST_PLACES: usize = 1 << 22;

/// Text of a trace: mostly UTF-8, but nothing holds it to that.
pub type Text = Arc<[u8]>;

/// A place in the source of an OCaml program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The file, as the compiler was given it.
    pub file: Text,
    /// The function: `Module.function`.
    pub function: Text,
    /// Line, 20 bits.
    pub line: u32,
    /// First column, 8 bits.
    pub start: u32,
    /// The column behind the last, from the start of the first line; 10 bits.
    pub end: u32,
}

/// Names in the order of their last use.
#[derive(Debug)]
pub(super) struct Table<T>(Vec<T>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Table<T> {
    /// Takes the entry at `index` to the front.
    pub fn use_at(&mut self, index: usize) -> Option<&mut T> {
        self.0.get_mut(..=index)?.rotate_right(1);
        self.0.first_mut()
    }

    /// Puts a new entry at the front. `make` is given the one that falls off, if one does.
    pub fn put(&mut self, make: impl FnOnce(Option<T>) -> T) -> &mut T {
        let fallen = if self.0.len() >= ENTRIES { self.0.pop() } else { None };
        self.0.insert(0, make(fallen));
        &mut self.0[0]
    }

    /// The first entry that is meant.
    pub fn find(&self, meant: impl FnMut(&T) -> bool) -> Option<usize> {
        self.0.iter().position(meant)
    }
}

/// A file with the functions named in it.
#[derive(Debug)]
struct File {
    name: Text,
    functions: Table<Text>,
}

/// The tables of one stream.
#[derive(Debug, Default)]
pub(super) struct Tables(Table<File>);

/// Every text once.
#[derive(Debug, Default)]
pub(super) struct Texts(FxHashSet<Text>);

impl Texts {
    fn keep(&mut self, text: &[u8]) -> Text {
        if let Some(kept) = self.0.get(text) {
            return kept.clone();
        }
        let kept: Text = text.into();
        self.0.insert(kept.clone());
        kept
    }
}

impl Tables {
    /// Reads a location.
    fn read(&mut self, bytes: &mut Bytes<'_>, texts: &mut Texts) -> Result<Location, CtfError> {
        let before = *bytes;
        let word = u64::from(bytes.u32()?) | u64::from(bytes.u16()?) << 32;
        let field = |shift: u32, bits: u32| (word >> shift) as u32 & ((1 << bits) - 1);
        let (file, function) = (field(38, 5) as usize, field(43, 5) as usize);
        let no_name = || before.error(Why::NoName);
        let file = if file < ENTRIES {
            self.0.use_at(file).ok_or_else(no_name)?
        } else {
            let name = texts.keep(bytes.text()?);
            // A writer of version 1 used the functions of the file that falls off again.
            // To later ones, which begin with none, the entries left over are the same
            // as none: what they name, they put in front of those.
            self.0.put(|fallen| File {
                name,
                functions: fallen.map(|file| file.functions).unwrap_or_default(),
            })
        };
        let function = if function < ENTRIES {
            file.functions.use_at(function).ok_or_else(no_name)?
        } else {
            let name = texts.keep(bytes.text()?);
            file.functions.put(|_| name)
        };
        Ok(Location {
            function: function.clone(),
            file: file.name.clone(),
            line: field(0, 20),
            start: field(20, 8),
            end: field(28, 10),
        })
    }
}

/// All codes that were defined, by any domain.
#[derive(Debug, Default)]
pub struct Locations {
    by_code: FxHashMap<u64, Box<[Location]>>,
    texts: Texts,
    /// Of all codes together.
    places: usize,
}

impl Locations {
    /// Reads a definition; its code.
    pub(super) fn read(
        &mut self,
        tables: &mut Tables,
        bytes: &mut Bytes<'_>,
    ) -> Result<u64, CtfError> {
        let before = *bytes;
        let code = bytes.u64()?;
        let count = bytes.u8()?;
        let locations: Box<[Location]> =
            (0..count).map(|_| tables.read(bytes, &mut self.texts)).collect::<Result<_, _>>()?;
        match self.by_code.get(&code) {
            Some(known) if *known != locations => return Err(before.error(Why::Redefined)),
            Some(_) => {}
            None => {
                self.places += 1 + locations.len();
                if self.places > MOST_PLACES {
                    return Err(before.error(Why::Places));
                }
                self.by_code.insert(code, locations);
            }
        }
        Ok(code)
    }

    /// How many codes are defined.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_code.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_code.is_empty()
    }

    /// Where a code lies, outermost function first, those inlined into it behind it;
    /// empty for code without debug information; `None` if it was not defined (yet).
    #[must_use]
    pub fn get(&self, code: u64) -> Option<&[Location]> {
        self.by_code.get(&code).map(|locations| &**locations)
    }
}
