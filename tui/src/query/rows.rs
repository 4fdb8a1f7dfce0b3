//! What the rows of the first screen are: callsites, or callsites put together, or blocks
//! put together by size or thread.
//!
//! A row is a number, and has *members*: the groups of callstacks that its figures are
//! added up from. Of blocks the row is its own member, since their numbers are made by
//! class to begin with ([`By`]).

use super::filter::Selection;
use super::{Grouping, Label, NodeKey, Question};
use crate::session::Session;
use crate::session::partition::{Partition, Together};
use crate::session::then::by::{By, SIZES};
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub struct Rows<'a> {
    session: &'a Session,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Sites,
    Classes(Together, Arc<Partition>),
    Blocks(Vec<(NodeKey, Label)>),
}

impl Grouping {
    /// How callsites are put together; `None` where rows are callsites, or blocks.
    #[must_use]
    pub const fn together(self) -> Option<Together> {
        match self {
            Self::Function => Some(Together::Function),
            Self::File => Some(Together::File),
            Self::Crate => Some(Together::Crate),
            Self::Callsite | Self::Size | Self::Thread => None,
        }
    }

    /// What blocks are put together by.
    #[must_use]
    pub const fn by(self) -> By {
        match self {
            Self::Size => By::Size,
            Self::Thread => By::Thread,
            Self::Callsite | Self::Function | Self::File | Self::Crate => By::Group,
        }
    }
}

impl<'a> Rows<'a> {
    pub fn of(session: &'a Session, grouping: Grouping) -> Self {
        let kind = match (grouping.together(), grouping.by()) {
            (Some(together), _) => Kind::Classes(together, session.book().partition(together)),
            (None, By::Group | By::Stack) => Kind::Sites,
            (None, By::Size) => Kind::Blocks((0..SIZES).map(size).collect()),
            (None, By::Thread) => Kind::Blocks(threads(session)),
        };
        Self { session, kind }
    }

    /// The rows that there are before a filter, and of those the ones that a question
    /// takes, with what its filter means.
    pub fn taken(&self, question: &Question, selection: &Selection) -> (usize, Vec<u32>) {
        let book = self.session.book();
        let groups = book.groups();
        let has = |group: u32| selection.takes_any_of(group);
        match &self.kind {
            Kind::Sites => {
                let within = question.within.map(|(together, key)| {
                    let partition = book.partition(together);
                    let class = partition.classes.iter().find(|class| class.key == key);
                    class.map_or_else(Vec::new, |class| class.groups.clone())
                });
                let taken = match &within {
                    Some(groups) => groups.iter().copied().filter(|&group| has(group)).collect(),
                    None => groups.iter().map(|(at, _)| at).filter(|&at| has(at)).collect(),
                };
                (groups.count(), taken)
            }
            Kind::Classes(_, partition) => {
                let through = |row: u32| {
                    self.functions().is_some_and(|functions| {
                        functions.through(book, row).iter().any(|&stack| selection.takes(stack))
                    })
                };
                let taken = (0..).zip(&partition.classes).filter(|(row, class)| {
                    !selection.chooses_stacks()
                        || class.groups.iter().any(|&group| has(group))
                        || through(*row)
                });
                (partition.classes.len(), taken.map(|(row, _)| row).collect())
            }
            Kind::Blocks(labels) => (labels.len(), (0..labels.len() as u32).collect()),
        }
    }

    /// How many rows there are before a filter, of blocks with those that nothing is in.
    pub fn count(&self) -> usize {
        match &self.kind {
            Kind::Sites => self.session.book().groups().count(),
            Kind::Classes(_, partition) => partition.classes.len(),
            Kind::Blocks(labels) => labels.len(),
        }
    }

    /// The members of a row.
    pub fn members<'r>(&'r self, row: &'r u32) -> &'r [u32] {
        match &self.kind {
            Kind::Sites | Kind::Blocks(_) => std::slice::from_ref(row),
            Kind::Classes(_, partition) => &partition.classes[*row as usize].groups,
        }
    }

    pub fn key(&self, row: u32) -> NodeKey {
        match &self.kind {
            Kind::Sites => self.site(row).0,
            Kind::Classes(_, partition) => partition.classes[row as usize].key,
            Kind::Blocks(labels) => labels[row as usize].0,
        }
    }

    pub fn label(&self, row: u32) -> &Label {
        match &self.kind {
            Kind::Sites => self.site(row).1,
            Kind::Classes(_, partition) => &partition.classes[row as usize].label,
            Kind::Blocks(labels) => &labels[row as usize].1,
        }
    }

    /// Whether rows without anything are left out: classes that nothing is in.
    pub const fn leaves_out_empty(&self) -> bool {
        matches!(self.kind, Kind::Blocks(_))
    }

    /// The row of a key.
    pub fn find(&self, key: NodeKey) -> Option<u32> {
        let place = |at: usize| at as u32;
        match &self.kind {
            Kind::Sites => {
                let book = self.session.book();
                book.groups().at(book.node(key)?)
            }
            Kind::Classes(_, partition) => {
                partition.classes.iter().position(|class| class.key == key).map(place)
            }
            Kind::Blocks(labels) => labels.iter().position(|(k, _)| *k == key).map(place),
        }
    }

    /// The functions that callstacks go through, where rows are functions.
    pub const fn functions(&self) -> Option<&Arc<Partition>> {
        match &self.kind {
            Kind::Classes(Together::Function, partition) => Some(partition),
            _ => None,
        }
    }

    /// How callsites are put together, where they are.
    pub const fn partition(&self) -> Option<&Arc<Partition>> {
        match &self.kind {
            Kind::Classes(_, partition) => Some(partition),
            Kind::Sites | Kind::Blocks(_) => None,
        }
    }

    /// Whether a row is one group, whose lives are kept with it.
    pub const fn are_groups(&self) -> bool {
        matches!(self.kind, Kind::Sites)
    }

    fn site(&self, group: u32) -> (NodeKey, &Label) {
        let book = self.session.book();
        let node = &book.nodes()[book.groups().group(group).callsite() as usize];
        (node.key, &node.label)
    }
}

/// Class `k` of sizes.
fn size(class: u32) -> (NodeKey, Label) {
    let binary = |exponent: u32| {
        let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        format!("{} {}", 1u64 << (exponent % 10), units[exponent as usize / 10])
    };
    let function = match class {
        0 => "1 B".to_owned(),
        1 => "2 B".to_owned(),
        64 => format!("> {}", binary(63)),
        _ => format!("> {} to {}", binary(class - 1), binary(class)),
    };
    let label = Label { function: function.into(), location: "".into(), named: true };
    (NodeKey(0x5123_0000 + u64::from(class)), label)
}

/// The threads by class.
fn threads(session: &Session) -> Vec<(NodeKey, Label)> {
    let of = |id: u64, function: String, location: String| {
        let label = Label { function: function.into(), location: location.into(), named: true };
        (NodeKey(0x7423_0000_0000 + id), label)
    };
    let mut labels: Vec<_> = session
        .thread_classes()
        .into_iter()
        .map(|id| {
            let thread = session.threads().get(&id);
            let name = thread.map_or("", |thread| thread.name.as_str());
            let name = if name.is_empty() { format!("(thread {})", id.0) } else { name.to_owned() };
            // Those that share a number have none of the kernel's.
            let tid = thread.filter(|thread| thread.tid != 0);
            let tid = tid.map_or_else(String::new, |thread| format!("tid {}", thread.tid));
            of(u64::from(id.0), name, tid)
        })
        .collect();
    labels.push(of(u64::from(u32::MAX), "(other threads)".to_owned(), String::new()));
    labels
}
