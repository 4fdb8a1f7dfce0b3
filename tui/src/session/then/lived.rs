//! How long blocks of rows live, remembered: it is shown with every drawing.

use super::{Session, Then};
use crate::session::estimate::curve::Curve;
use crate::session::estimate::survival::Table;
use crate::session::figures::{Followed, Lifetime};
use rustc_hash::FxHashMap;
use std::sync::Mutex;

/// A row's key, and how many groups are in it.
type Row = (u64, usize);
/// Of all groups together.
const ALL: Row = (0, usize::MAX);
/// Most rows that it is remembered of.
const MOST: usize = 1 << 17;

/// By row, the median, and the mean where that was wanted.
pub type Kept = Mutex<FxHashMap<Row, (Lifetime, Option<Followed>)>>;

impl Then {
    /// The median lifetime of the groups of a row together, and the mean where it is wanted.
    /// It is remembered by the row's key.
    #[must_use]
    pub fn lived(
        &self,
        session: &Session,
        key: u64,
        groups: &[u32],
        table: &mut Table,
        with_mean: bool,
    ) -> (Lifetime, Followed) {
        let groups_of = || groups.iter().copied();
        self.remembered(session, (key, groups.len()), groups_of, table, with_mean)
    }

    /// The same of all groups together, with the mean.
    #[must_use]
    pub fn all_lived(&self, session: &Session, table: &mut Table) -> (Lifetime, Followed) {
        self.remembered(session, ALL, || 0..self.classes() as u32, table, true)
    }

    fn remembered<G: Iterator<Item = u32>>(
        &self,
        session: &Session,
        row: Row,
        groups: impl Fn() -> G,
        table: &mut Table,
        with_mean: bool,
    ) -> (Lifetime, Followed) {
        let known = self.lived.lock().ok().and_then(|lived| lived.get(&row).copied());
        if let Some((median, mean)) = known.filter(|(_, mean)| mean.is_some() || !with_mean) {
            return (median, mean.unwrap_or(Followed::Unknown));
        }
        self.ages_of(session, groups(), table);
        let median = table.median();
        let mean = with_mean.then(|| Curve::of(table).mean());
        if let Ok(mut lived) = self.lived.lock()
            && lived.len() < MOST
        {
            lived.insert(row, (median, mean));
        }
        (median, mean.unwrap_or(Followed::Unknown))
    }
}
