//! The lives that are over of one callsite, as long as it is looked at closely.
//!
//! Details are made anew all the time, and a callsite has few of all lives that there are. So
//! they are looked for once; from then on those that have ended since are looked at alone.
//! Where there are more than [`MOST`] nothing is kept.

use super::Session;
use crate::session::lives::{Life, Place};
use std::cell::Ref;

/// See the module: 6 MB.
const MOST: usize = 1 << 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Key {
    group: u32,
    regrouped: u64,
    /// A group may get more callstacks.
    stacks: usize,
    rewritten: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Kept {
    key: Option<Key>,
    until: Place,
    lives: Vec<Life>,
}

impl Session {
    /// The lives that are over of a group, in order of their ends as all are. `None` where
    /// there are too many.
    pub(crate) fn lives_of(&self, group: u32) -> Option<Ref<'_, [Life]>> {
        let mut kept = self.then.closely.borrow_mut();
        let key = Key {
            group,
            regrouped: self.book.regrouped(),
            stacks: self.book.groups().group(group).stacks().len(),
            rewritten: self.lives.rewritten(),
        };
        if kept.key != Some(key) {
            *kept = Kept { key: Some(key), ..Kept::default() };
        }
        let group_of = self.book.group_of();
        let mine = |stack: u32| group_of.get(stack as usize) == Some(&group);
        while kept.lives.len() <= MOST {
            let (lives, end) = self.lives.of_from_place(kept.until, mine);
            if end == kept.until {
                break;
            }
            kept.lives.extend(lives);
            kept.until = end;
        }
        if kept.lives.len() > MOST {
            // What was found of them says that there are too many, no more.
            return None;
        }
        drop(kept);
        Some(Ref::map(self.then.closely.borrow(), |kept| &kept.lives[..]))
    }
}
