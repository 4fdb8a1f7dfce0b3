//! Where keys, signals and wakes go: the inbox of what is shown, which changes when another
//! target is attached to. What nobody has taken by then goes along: no key is lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::source::inbox::{Event, Inbox};

/// See the module.
pub struct Outlet(Mutex<Arc<Inbox>>);

impl Outlet {
    /// It leads to `inbox`.
    #[must_use]
    pub fn new(inbox: &Arc<Inbox>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Arc::clone(inbox))))
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Inbox>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts what must not wait.
    pub fn put(&self, event: Event) {
        self.lock().put_urgent(event);
    }

    /// Where it leads to.
    #[must_use]
    pub fn inbox(&self) -> Arc<Inbox> {
        Arc::clone(&self.lock())
    }

    /// It leads to another inbox from now on.
    pub(super) fn lead_to(&self, inbox: &Arc<Inbox>) {
        // Held meanwhile, so that what comes now stands behind what came before.
        let mut now = self.lock();
        for event in now.take_urgent() {
            inbox.put_urgent(event);
        }
        *now = Arc::clone(inbox);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::inbox::Signal;

    #[test]
    fn what_waits_goes_along_in_order() {
        let [first, second] = [(); 2].map(|()| Arc::new(Inbox::default()));
        let outlet = Outlet::new(&first);
        outlet.put(Event::Signal(Signal::Resize));
        outlet.put(Event::Wake);
        outlet.lead_to(&second);
        outlet.put(Event::Signal(Signal::Continue));
        assert!(first.take(Some(std::time::Instant::now())).is_none());
        let take = || second.take(Some(std::time::Instant::now()));
        assert!(matches!(take(), Some(Event::Signal(Signal::Resize))));
        assert!(matches!(take(), Some(Event::Wake)));
        assert!(matches!(take(), Some(Event::Signal(Signal::Continue))));
        assert!(Arc::ptr_eq(&outlet.inbox(), &second));
    }
}
