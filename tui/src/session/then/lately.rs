//! The present as the past is made, once a second, one pass after the other.

use super::bounds::Bounds;
use super::by::{By, Cut};
use super::totals::Sets;
use super::trend::Trend;
use super::{KEPT, Session, Then, When};
use crate::session::Connection;
use crate::session::lifetimes::Ages;
use std::sync::{Arc, Mutex, OnceLock};

/// What costs a pass and is asked for with every drawing is made anew so often at most, in
/// nanoseconds of the target's time.
const LATELY_NS: u64 = 1_000_000_000;
/// What else of it costs a pass, lifetimes and then trends, follows so much later each: one
/// pass after the other, each with a drawing of its own. Until then those of the answer
/// before stand.
const PART_NS: u64 = 200_000_000;
const PARTS: u64 = 2;

/// An answer up to the present that may be a little old.
#[derive(Debug, Clone)]
pub struct Lately {
    from_ns: Option<u64>,
    cut: Cut,
    classes: [u64; 2],
    made_ns: u64,
    ended: bool,
    /// How many of its [`PARTS`] are its own.
    own: u64,
}

/// It, and what it is.
pub type Known = (Lately, Arc<Then>);

impl Session {
    /// The numbers of the present, or what is in use and by how much it grew from `from_ns`
    /// on, and nothing else: made anew once a second, since each time costs a pass over all
    /// that lives.
    #[must_use]
    pub fn lately(&self, from_ns: Option<u64>, cut: &Cut) -> Arc<Then> {
        let now_ns = self.now_ns;
        let classes = self.cut_revision(cut);
        // There may be no other look at a target that is gone.
        let gone = matches!(self.connection, Connection::Lost(_) | Connection::Ended(_));
        let same = |known: &Lately| known.from_ns == from_ns && known.cut == *cut;
        let mut kept = self.then.lately.borrow_mut();
        let good = |known: &Lately| {
            let again = known.made_ns.saturating_add(if gone { 1 } else { LATELY_NS });
            let as_is = known.classes == classes && known.ended == self.has_ended();
            same(known) && as_is && (known.made_ns..again).contains(&now_ns)
        };
        if let Some((known, then)) = kept.iter_mut().find(|(known, _)| good(known)) {
            let passed = (now_ns - known.made_ns) / PART_NS;
            let due = if gone { PARTS } else { passed.min(PARTS) };
            if known.own < due {
                *then = Arc::new(then.with_parts(|part| part < known.own || due <= part));
                known.own = due;
            }
            return Arc::clone(then);
        }
        let kept_up = from_ns.is_none().then(|| self.present(cut)).flatten();
        let in_parts = kept_up.is_none() && !gone;
        let mut then = match from_ns {
            Some(from_ns) => Then::since(self, from_ns.min(now_ns), cut.clone()),
            None => kept_up.unwrap_or_else(|| Then::now(self, cut.clone())),
        };
        let mut own = PARTS;
        let before = kept.iter().find(|(known, _)| same(known) && known.classes == classes);
        if let Some((_, before)) = before.filter(|(known, _)| known.own == PARTS && in_parts) {
            (then.lives, then.trend) = (before.lives.clone(), before.trend.clone());
            own = 0;
        }
        let then = Arc::new(then);
        kept.retain(|(known, _)| !same(known));
        kept.truncate(KEPT - 1);
        let ended = self.has_ended();
        let known = Lately { from_ns, cut: cut.clone(), classes, made_ns: now_ns, ended, own };
        kept.insert(0, (known, Arc::clone(&then)));
        then
    }
}

impl Then {
    /// The present, by a pass over all blocks.
    pub(super) fn now(session: &Session, cut: Cut) -> Self {
        let mut bounds = Bounds::new(session, When::At(session.now_ns));
        if matches!(cut.by, By::Size | By::Thread) {
            bounds = bounds.on_grid();
        }
        let sets = Sets::of(session, &bounds, &cut);
        Self::made(bounds, sets, cut)
    }

    /// All that is asked for was made.
    pub(super) fn whole_of(
        cut: Cut,
        bounds: Bounds,
        sets: Sets,
        lives: Vec<Ages>,
        trend: Trend,
    ) -> Self {
        let mut then = Self::made(bounds, sets, cut);
        (then.lives, then.trend) = (Arc::new(lives).into(), Arc::new(trend).into());
        then
    }

    /// What is in use, and by how much it grew from a moment on; all else is unknown.
    fn since(session: &Session, from_ns: u64, cut: Cut) -> Self {
        let when = When::Range { from_ns, to_ns: session.now_ns };
        let mut bounds = Bounds::new(session, when);
        (bounds.allocated, bounds.rate_seconds) = (false, None);
        let sets = Sets::since(session, &bounds, &cut);
        Self::made(bounds, sets, cut)
    }

    /// The same, with those of its parts that are kept; others are made when they are asked
    /// for, as of the same moment.
    fn with_parts(&self, keep: impl Fn(u64) -> bool) -> Self {
        let (lives, trend) = (self.lives.clone(), self.trend.clone());
        // They are of the same moment, and each would cost a pass over all that is over.
        let (old, born) = (kept(&self.old), kept(&self.born));
        Self {
            cut: self.cut.clone(),
            bounds: self.bounds,
            sets: Arc::clone(&self.sets),
            lives: if keep(0) { lives } else { OnceLock::new() },
            trend: if keep(1) { trend } else { OnceLock::new() },
            holding: self.holding.clone(),
            grew: self.grew.clone(),
            old,
            born,
            together: Mutex::new(None),
            lived: Mutex::default(),
        }
    }
}

/// What is kept of an answer, for another of the same moment.
fn kept<T: Clone>(of: &Mutex<Option<T>>) -> Mutex<Option<T>> {
    Mutex::new(of.lock().ok().and_then(|kept| kept.clone()))
}
