//! What groups of callstacks allocated, and by how much they grew, step by step of the
//! windows that rates and trends look back over.
//!
//! Former values are kept by callstack ([`super::window`]). Rows of many callstacks would
//! have to look at each that changed in two minutes with every drawing. But what happened in
//! a step that is over stays so: it is put together by group when somebody first asks, and
//! of the step that goes on alone callstacks are looked at.

use super::Session;
use super::window::{Changes, Lately, Steps};
use heaptop_protocol::totals::Total;
use std::cell::RefCell;
use std::collections::VecDeque;

/// Steps that are over, put together by group.
#[derive(Debug)]
struct Over<T> {
    /// The first step that is not here.
    next: u32,
    /// Number of the step, and what happened in it by group, in no order.
    steps: VecDeque<(u32, Vec<(u32, T)>)>,
}

impl<T> Default for Over<T> {
    fn default() -> Self {
        Self { next: 0, steps: VecDeque::new() }
    }
}

/// As long as callstacks stay in their groups.
#[derive(Debug, Default)]
struct State {
    regrouped: u64,
    born: Over<Total>,
    grown: Over<f64>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Kept(RefCell<State>);

impl<T: Copy> Over<T> {
    /// Takes in the steps that are over by now. `changes` tells of a callstack its group and
    /// what happened in each step from one on, newest first.
    fn go_on(
        &mut self,
        steps: &Steps,
        lately: &Lately,
        changes: impl Fn(u32, u32, &mut dyn FnMut(u32, T)) -> u32,
        merge: impl Fn(&mut T, T),
    ) {
        let (oldest, current) = (steps.oldest(), steps.current());
        while self.steps.front().is_some_and(|(step, _)| *step < oldest) {
            self.steps.pop_front();
        }
        let first = self.next.max(oldest);
        if first >= current {
            return;
        }
        let mut made: Vec<Vec<(u32, T)>> = Vec::new();
        made.resize_with((current - first) as usize, Vec::new);
        // By step and group, its place in `made`.
        let mut places: Vec<Vec<u32>> = vec![Vec::new(); made.len()];
        let mut of_stack = Vec::new();
        for stack in lately.since(first) {
            of_stack.clear();
            let group = changes(stack, first, &mut |step, change| of_stack.push((step, change)));
            for &(step, change) in of_stack.iter().filter(|(step, _)| *step < current) {
                let at = (step - first) as usize;
                let (made, places) = (&mut made[at], &mut places[at]);
                if places.len() <= group as usize {
                    places.resize(group as usize + 1, u32::MAX);
                }
                let place = &mut places[group as usize];
                if let Some((_, known)) = made.get_mut(*place as usize) {
                    merge(known, change);
                } else {
                    *place = made.len() as u32;
                    made.push((group, change));
                }
            }
        }
        self.steps.extend((first..).zip(made));
        self.next = current;
    }
}

impl Session {
    fn recent(&self) -> std::cell::RefMut<'_, State> {
        let mut state = self.recent.0.borrow_mut();
        if state.regrouped != self.book.regrouped() {
            *state = State { regrouped: self.book.regrouped(), ..State::default() };
        }
        state
    }

    fn group_of(&self, stack: u32) -> u32 {
        self.book.stacks()[stack as usize].group()
    }

    /// Tells what was allocated within the window of rates: group and total, each group
    /// several times.
    pub(crate) fn born_by_group(&self, mut each: impl FnMut(u32, &Total)) {
        let (steps, lately) = (self.course.rate_steps(), &self.everything.allocated);
        let changes = |stack: u32, from: u32, one: &mut dyn FnMut(u32, Total)| {
            let numbers = &self.numbers[stack as usize];
            let now = numbers.totals.allocated;
            newest_first(&numbers.allocated, now, from, |step, before, after| {
                one(step, after.since(&before));
            });
            self.group_of(stack)
        };
        let mut state = self.recent();
        state.born.go_on(steps, lately, changes, |known, total| known.merge(&total));
        for (_, groups) in &state.born.steps {
            for (group, total) in groups {
                each(*group, total);
            }
        }
        for stack in lately.since(steps.current()) {
            let group = self.group_of(stack);
            changes(stack, steps.current(), &mut |_, total| each(group, &total));
        }
    }

    /// Tells by how much more was in use within the window of trends: the place of the
    /// step, oldest first, group and bytes, each group several times.
    pub(crate) fn grown_by_group(&self, mut each: impl FnMut(usize, u32, f64)) {
        let (steps, lately) = (self.course.trend_steps(), &self.everything.in_use);
        let changes = |stack: u32, from: u32, one: &mut dyn FnMut(u32, f64)| {
            let numbers = &self.numbers[stack as usize];
            let now = numbers.totals.in_use.bytes.sum;
            newest_first(&numbers.in_use, now, from, |step, before, after| {
                one(step, after - before);
            });
            self.group_of(stack)
        };
        let mut state = self.recent();
        state.grown.go_on(steps, lately, changes, |known, bytes| *known += bytes);
        let place = |step: u32| (step - steps.oldest()) as usize;
        for (step, groups) in &state.grown.steps {
            for (group, bytes) in groups {
                each(place(*step), *group, *bytes);
            }
        }
        for stack in lately.since(steps.current()) {
            let group = self.group_of(stack);
            changes(stack, steps.current(), &mut |step, bytes| each(place(step), group, bytes));
        }
    }
}

/// Tells of each step from `from` on in which a value changed what it was before and after.
fn newest_first<T: Copy>(changes: &Changes<T>, now: T, from: u32, mut one: impl FnMut(u32, T, T)) {
    let mut after = now;
    for (step, before) in changes.iter().rev().take_while(|(step, _)| *step >= from) {
        one(step, before, after);
        after = before;
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;

    /// What is kept of steps that are over is what callstacks say of themselves, at every
    /// moment, also after names have moved them to other groups.
    #[test]
    fn steps_that_are_kept_are_those_of_the_callstacks() {
        let mut f = Fixture::new(1);
        let stacks: Vec<_> =
            (0..12).map(|i| f.stack(&["main", &format!("site{}", i % 4)])).collect();
        f.pass(1.0);
        let mut living = Vec::new();
        for i in 0..400u64 {
            let id = f.alloc(stacks[(i * i % 12) as usize], 1 + i % 100);
            living.push(id);
            if i % 3 == 0 {
                f.free(living.swap_remove((i * 5) as usize % living.len()));
            }
            f.pass([0.1, 0.7, 3.0][i as usize % 3]);
            if i == 200 {
                let more = f.stack(&["main", "site1", "more"]);
                f.alloc(more, 7);
            }
            // Not asked all the time.
            if i % 7 > 2 {
                continue;
            }
            let session = &f.session;
            let groups = session.book.groups().numbers();
            let (rates, trends) = (session.course.rate_steps(), session.course.trend_steps());
            let mut born = vec![0.0; groups];
            session.born_by_group(|group, total| born[group as usize] += total.bytes.sum);
            let mut grown = vec![vec![0.0; trends.count()]; groups];
            session.grown_by_group(|step, group, by| grown[group as usize][step] += by);
            let (mut want_born, mut want_grown) = (vec![0.0; groups], vec![0.0; groups]);
            for (stack, numbers) in (0..).zip(&session.numbers) {
                let group = session.group_of(stack) as usize;
                let now = numbers.totals.allocated;
                want_born[group] +=
                    now.bytes.sum - numbers.allocated.at(rates.oldest(), now).bytes.sum;
                let now = numbers.totals.in_use.bytes.sum;
                want_grown[group] += now - numbers.in_use.at(trends.oldest(), now);
            }
            assert_eq!(born, want_born, "after {i}");
            let sums: Vec<f64> = grown.iter().map(|steps| steps.iter().sum()).collect();
            assert_eq!(sums, want_grown, "after {i}");
            let whole: Vec<f64> = session.everything.growth.iter(trends).collect();
            let of_step = |step: usize| grown.iter().map(|steps| steps[step]).sum::<f64>();
            assert_eq!((0..whole.len()).map(of_step).collect::<Vec<_>>(), whole, "after {i}");
        }
        assert!(f.session.recent().grown.steps.len() > 20);
    }
}
