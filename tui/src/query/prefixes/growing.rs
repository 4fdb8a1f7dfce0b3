//! A tree that is grown from what is kept.

use super::super::grow::{Split, Wood};
use super::Prefixes;
use super::sums::Asked;
use crate::session::figures::Estimate;
use heaptop_protocol::totals::Total;

/// Prefixes, to grow a tree from.
pub struct Growing<'a> {
    pub prefixes: &'a mut Prefixes,
    pub asked: &'a Asked<'a>,
}

impl Wood for Growing<'_> {
    type Part = u32;

    fn goes_on(&self, part: &u32) -> bool {
        let prefix = &self.prefixes.all[*part as usize];
        !(prefix.stacks.is_empty() && prefix.children.is_empty())
    }

    fn divide(&mut self, part: &mut u32) -> Vec<Split<u32>> {
        self.prefixes.divide(*part, self.asked);
        let children = &self.prefixes.all[*part as usize].children;
        children.iter().map(|&child| self.prefixes.root(child)).collect()
    }

    fn estimates(
        &mut self,
        part: Option<&u32>,
        cum: &Total,
        flat: Option<&Total>,
    ) -> [Estimate; 2] {
        let estimate = |total: &Total| self.asked.measure.estimate(self.asked.numbers, total);
        let make = || [estimate(cum), flat.map_or(Estimate::Unknown, estimate)];
        match part {
            Some(&at) => *self.prefixes.all[at as usize].sums.shown.get_or_insert_with(make),
            None => make(),
        }
    }
}
