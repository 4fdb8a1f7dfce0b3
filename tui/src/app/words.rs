//! What the words on a screen mean that nobody knows before he has read of them: a line each,
//! in the help of the screen.

use super::keys::Place;

/// Words of one screen.
#[must_use]
pub const fn of(place: Place) -> &'static [(&'static str, &'static str)] {
    match place {
        Place::Promotion => PROMOTION,
        Place::Leaks => LEAKS,
        Place::Details => DETAILS,
        Place::Threads => THREADS,
        Place::Callers => CALLERS,
        Place::Source => SOURCE,
        Place::Timeline => TIMELINE,
        Place::Callsites
        | Place::Flame
        | Place::Log
        | Place::Columns
        | Place::Export
        | Place::Help
        | Place::Targets => &[],
    }
}

const PROMOTION: &[(&str, &str)] = &[
    ("born young", "bytes of small blocks, in nursery cycles that are over"),
    ("promoted", "those of them that were still in use when their cycle ended"),
    ("promoted/s", "the same per second, over ten seconds or over the range"),
    ("rate", "promoted, of what was born young"),
    ("outlive", "share of the bytes that live while so much is allocated"),
    ("measured", "what was promoted as the cycles really fell"),
    ("if 2 MiB", "what such a nursery would promote, by how long blocks live"),
    ("dies at", "after how much more allocation blocks die"),
    ("followed for", "watched while so much was allocated: bounds alone beyond it"),
];

const LEAKS: &[(&str, &str)] = &[
    ("old", "in use, and older than a tenth of the time that was watched"),
    ("age", "half of the old blocks are older"),
    ("grown first", "by growth where there is evidence of it (▲), else by old"),
    ("born before", "in use and born before the first of the other generations"),
    ("born 1 to 4", "in use, by birth: equal parts of the time that was watched"),
    ("≥ mark", "in use and born after that mark, before the next one"),
    ("reaches", "the nearest limit, and when it is reached if growth goes on"),
    ("RSS", "the target's resident memory, and what it is made of"),
    ("slack", "free memory that the allocator keeps; – where it tells none"),
    ("files, agent", "its code, libraries and mapped files; heaptop's own memory"),
    ("unexplained", "the rest of RSS: stacks, slack, memory of no allocator"),
];

const DETAILS: &[(&str, &str)] = &[
    ("births/s", "blocks that are allocated here, per second"),
    ("stay", "how long a block is in use, on average"),
    ("size", "bytes of a block, on average"),
    ("← moved", "what has changed from the first half to the last, for sure"),
    ("no evidence", "growth that may be chance"),
    ("of … freed", "of those bytes allocated here that were freed, the share"),
    ("steps a chain", "how often a block that grows by realloc is made larger"),
    ("copied", "bytes that those reallocs had to copy, at most"),
];

const THREADS: &[(&str, &str)] = &[
    ("freed by others", "bytes that this thread allocated and another one freed"),
    ("others free", "the share of them, of what it allocated and anyone freed"),
];

const CALLERS: &[(&str, &str)] = &[
    ("cum", "what of the focus goes through this frame"),
    ("share", "of the focus"),
    ("flat", "what is allocated at the frame itself; – where it only calls"),
    ("at … alone", "without what others allocate that are inlined into its line"),
];

const SOURCE: &[(&str, &str)] = &[
    ("cum", "all that is allocated at the line, or in what it calls"),
    ("flat", "allocated right at the line, wherever it is inlined"),
];

const TIMELINE: &[(&str, &str)] = &[
    ("'", "not told apart: before heaptop came, or filtered by block"),
    ("·", "other callsites, and with a filter what is not in it"),
];
