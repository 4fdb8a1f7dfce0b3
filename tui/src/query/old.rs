//! Old and alive: what was born before the youngest tenth of the time that is known.

use super::filter::Selection;
use super::{Label, NodeKey, When};
use crate::session::estimate::survival::Table;
use crate::session::figures::{Estimate, Lifetime};
use crate::session::{Session, estimate};
use heaptop_protocol::totals::Total;

/// A callsite's old blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct OldRow {
    /// Which.
    pub key: NodeKey,
    /// Its name.
    pub label: Label,
    /// Bytes of them.
    pub bytes: Estimate,
    /// How many.
    pub objects: Estimate,
    /// Their median age, not their life: they all live.
    pub median_age: Lifetime,
}

/// The old blocks at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Old {
    /// Most bytes first.
    pub rows: Vec<OldRow>,
    /// Bytes of all rows.
    pub total: Estimate,
    /// The moment, in nanoseconds since the agent's start.
    pub at_ns: u64,
    /// They are at least so old, in nanoseconds.
    pub older_than_ns: u64,
}

/// Blocks alive at a moment and older than the youngest tenth of the span up to it
/// ([`Session::span`]), of the callsites that `filter` takes. `None` where the moment is
/// before the viewer came; of a range it is the end.
#[must_use]
pub fn old(session: &Session, when: When, filter: &str) -> Option<Old> {
    let when = match when {
        When::Now | When::Peak => When::At(session.now_ns()),
        When::Range { to_ns, .. } => When::At(to_ns),
        When::At(_) => when,
    };
    let selection = Selection::of(session, filter);
    let then = session.then_by(when, &selection.by_group());
    let then = then.filter(|then| session.knows_in_use() && then.knows_in_use())?;
    let (from_ns, at_ns) = (session.span()?.0, then.end_ns());
    let older_than_ns = at_ns.checked_sub(from_ns)? / 10;
    let groups = then.old(session, at_ns - older_than_ns);
    let sight = then.sight_of_in_use();
    let book = session.book();
    let taken = |&group: &u32| {
        groups.get(group as usize).is_some_and(|old| old.n > 0) && selection.takes_any_of(group)
    };
    let picked: Vec<u32> = book.groups().iter().map(|(group, _)| group).filter(taken).collect();
    let ages = then.old_ages(session, at_ns - older_than_ns, &picked);
    let (mut table, mut total, mut rows) = (Table::default(), Total::default(), Vec::new());
    for (&group, ages) in picked.iter().zip(&ages) {
        let old = &groups[group as usize];
        total.merge(old);
        table.clear();
        ages.add_to(&mut table);
        let node = &book.nodes()[book.groups().group(group).callsite() as usize];
        rows.push((
            old.bytes.sum,
            OldRow {
                key: node.key,
                label: node.label.clone(),
                bytes: estimate::bytes(old, sight),
                objects: estimate::objects(old, sight),
                median_age: table.median(),
            },
        ));
    }
    rows.sort_by(|(a, one), (b, other)| {
        let name = |row: &OldRow| (row.label.function.clone(), row.key);
        b.total_cmp(a).then_with(|| name(one).cmp(&name(other)))
    });
    let rows = rows.into_iter().map(|(_, row)| row).collect();
    Some(Old { rows, total: estimate::bytes(&total, sight), at_ns, older_than_ns })
}
