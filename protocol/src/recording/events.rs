//! Shape [`super::CODED`]: batches of events, which are most of a recording, are
//! taken out of the frames and coded number by number, each by what is likely where it
//! stands. What comes out is the same to the byte; a batch that would not is left as
//! it is.
//!
//! ```text
//! stored: │ skeleton's length 4 │ stored skeleton's length 4 │ skeleton │ coded events │
//! skeleton: for each frame │ kind 2 │ length 4 │ payload │
//!           for a coded batch │ 5 │ 0xffffffff │
//! ```
//!
//! The skeleton is compressed by the chunk's codec; checksums of frames are not in it,
//! and made anew.
//!
//! **What is likely.** An event follows the one before it: a death that of a block born
//! lately by the same thread, a birth one at the same callstack. Times and the
//! allocation clock are coded as differences, by the kinds of the two events and whether
//! they are of one thread; sizes and addresses by callstack. Tables are of fixed
//! size, and what finds no room in them is another's: it costs bytes, nothing else.
//!
//! **What is learnt** in one chunk serves the next: a chunk has some hundred events,
//! too few to learn from. So the chunks of a file are opened in order, from one that
//! begins anew ([`super::CODED_ANEW`]).

use super::coder::{Bit, Coder, Decoder, Encoder, Number};
use crate::codec;
use crate::estimate::Interval;
use crate::event::{Alloc, Batch, Cause, Dealloc, Event, Moment, Promote};
use crate::frame;
use crate::ids::{BlockId, StackId, ThreadId};

/// Kind of the frames that are coded.
const EVENTS: u16 = 5;
/// Length that says that a batch is coded.
const IN_CODE: u32 = u32::MAX;
/// Times are often multiples of so many nanoseconds, as a power of two.
const TICK_BITS: u32 = 8;
/// Addresses are multiples of so many bytes, as a power of two.
const ALIGNED_BITS: u32 = 4;

const ALLOC: usize = 0;
const PROMOTE: usize = 1;
const DEALLOC: usize = 2;

/// A birth that is remembered.
#[derive(Debug, Clone, Copy, Default)]
struct Born {
    id: u64,
    thread: u32,
    young: bool,
}

/// What was learnt so far.
pub struct Learnt {
    last: Moment,
    kind: usize,
    thread: u32,
    interval: u32,
    promoted: u64,
    births: Vec<Born>,
    addresses: [u64; 64],
    threads: [u32; 256],
    kinds: [[Bit; 4]; 256],
    counts: Number,
    seqs: [Number; 3],
    ids: [Number; 3],
    promotes: Number,
    stacks: Vec<Number>,
    same_thread: [Bit; 256],
    other_threads: Number,
    sizes: Vec<Number>,
    samples: Number,
    same_interval: Bit,
    intervals: Number,
    causes: [[Bit; 4]; 64],
    aligned: Bit,
    places: Vec<Number>,
    young: [Bit; 64],
    replaces: [Bit; 4],
    replaced: Number,
    freed_here: [Bit; 4],
    died_young: [Bit; 3],
    ticks: [Bit; 3],
    times: Vec<Number>,
    odd_times: Number,
    clocks: Vec<Number>,
}

impl Default for Learnt {
    fn default() -> Self {
        Self {
            last: Moment { seq: 0, time_ns: 0, clock: 0 },
            kind: ALLOC,
            thread: 0,
            interval: 0,
            promoted: 0,
            births: vec![Born::default(); 4096],
            addresses: [0; 64],
            threads: [0; 256],
            kinds: [[Bit::NEW; 4]; 256],
            counts: Number::NEW,
            seqs: [Number::NEW; 3],
            ids: [Number::NEW; 3],
            promotes: Number::NEW,
            stacks: vec![Number::NEW; 16],
            same_thread: [Bit::NEW; 256],
            other_threads: Number::NEW,
            sizes: vec![Number::NEW; 64],
            samples: Number::NEW,
            same_interval: Bit::NEW,
            intervals: Number::NEW,
            causes: [[Bit::NEW; 4]; 64],
            aligned: Bit::NEW,
            places: vec![Number::NEW; 64],
            young: [Bit::NEW; 64],
            replaces: [Bit::NEW; 4],
            replaced: Number::NEW,
            freed_here: [Bit::NEW; 4],
            died_young: [Bit::NEW; 3],
            ticks: [Bit::NEW; 3],
            times: vec![Number::NEW; 18],
            odd_times: Number::NEW,
            clocks: vec![Number::NEW; 18],
        }
    }
}

/// What is wrong with coded events: they are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotEvents;

/// Where the differences of the last event to one of this kind and thread are learnt.
fn context(learnt: &Learnt, kind: usize, thread: u32) -> usize {
    (kind * 3 + learnt.kind) * 2 + usize::from(thread == learnt.thread)
}

impl Learnt {
    /// Codes one event, or hears one: a decoder is given any, and gives what it heard.
    fn event(&mut self, coder: &mut impl Coder, event: &Event) -> Result<Event, NotEvents> {
        let kind = match event {
            Event::Alloc(_) => ALLOC,
            Event::Promote(_) => PROMOTE,
            Event::Dealloc(_) => DEALLOC,
        };
        let before = self.kind << 6 | (self.thread & 63) as usize;
        let kind = coder.tree(kind as u64, 2, &mut self.kinds[before]) as usize;
        if kind > DEALLOC {
            return Err(NotEvents);
        }
        let at = event.at();
        // Births and deaths are numbered through.
        let expected = self.last.seq.wrapping_add(u64::from(self.kind != PROMOTE));
        let ahead = at.seq.wrapping_sub(expected).cast_signed();
        let seq = expected.wrapping_add_signed(coder.signed(ahead, &mut self.seqs[kind]));
        match kind {
            ALLOC => {
                let default = || Alloc {
                    at,
                    thread: ThreadId(0),
                    stack: StackId(0),
                    size: 0,
                    n_samples: 0,
                    interval: Interval::EXACT,
                    cause: Cause::Malloc,
                    address: 0,
                    young: false,
                    replaces: None,
                };
                let told = if let Event::Alloc(e) = event { *e } else { default() };
                self.alloc(coder, &told, seq).map(Event::Alloc)
            }
            PROMOTE => {
                let told = if let Event::Promote(e) = event { e.id.0 } else { 0 };
                let further = told.wrapping_sub(self.promoted).cast_signed();
                let further = coder.signed(further, &mut self.promotes);
                let id = self.promoted.wrapping_add_signed(further);
                self.promoted = id;
                let at = self.moment(coder, at, seq, kind, self.thread);
                Ok(Event::Promote(Promote { at, id: BlockId(id) }))
            }
            _ => {
                let none = Dealloc { at, id: BlockId(0), thread: ThreadId(0), young: false };
                let told = if let Event::Dealloc(e) = event { *e } else { none };
                Ok(Event::Dealloc(self.dealloc(coder, &told, seq)))
            }
        }
    }

    fn alloc(&mut self, coder: &mut impl Coder, e: &Alloc, seq: u64) -> Result<Alloc, NotEvents> {
        let models = &mut self.stacks[(self.thread & 15) as usize];
        let stack = narrow(coder.number(u64::from(e.stack.0), models))?;
        let (few, many) = (stack as usize & 63, stack as usize & 255);
        let thread = self.thread(coder, e.thread.0, self.threads[many], many)?;
        self.threads[many] = thread;
        let size = coder.number(e.size, &mut self.sizes[few]);
        let n_samples = coder.number(e.n_samples, &mut self.samples);
        let same = e.interval.bytes() == self.interval;
        if !coder.bit(same, &mut self.same_interval) {
            let bytes = coder.number(u64::from(e.interval.bytes()), &mut self.intervals);
            self.interval = narrow(bytes)?;
        }
        let interval = Interval::new(u64::from(self.interval)).ok_or(NotEvents)?;
        let cause = coder.tree(cause_number(e.cause), 2, &mut self.causes[few]);
        let cause =
            [Cause::Malloc, Cause::Calloc, Cause::Realloc, Cause::Aligned][cause as usize & 3];
        let address = self.address(coder, e.address, few);
        let young = coder.bit(e.young, &mut self.young[few]);
        let with = cause_number(cause) as usize;
        let replaces = if coder.bit(e.replaces.is_some(), &mut self.replaces[with]) {
            let back = seq.wrapping_sub(e.replaces.map_or(0, |id| id.0));
            Some(BlockId(seq.wrapping_sub(coder.number(back, &mut self.replaced))))
        } else {
            None
        };
        let at = self.moment(coder, e.at, seq, ALLOC, thread);
        let place = (self.births.len() - 1) & seq as usize;
        self.births[place] = Born { id: seq, thread, young };
        Ok(Alloc {
            at,
            thread: ThreadId(thread),
            stack: StackId(stack),
            size,
            n_samples,
            interval,
            cause,
            address,
            young,
            replaces,
        })
    }

    fn dealloc(&mut self, coder: &mut impl Coder, e: &Dealloc, seq: u64) -> Dealloc {
        let back = seq.wrapping_sub(e.id.0);
        let id = seq.wrapping_sub(coder.number(back, &mut self.ids[self.kind]));
        let born = self.births[(self.births.len() - 1) & id as usize];
        let known = born.id == id;
        let likely = if known { born.thread } else { self.thread };
        let how = usize::from(known) * 2;
        let thread = if coder.bit(e.thread.0 == likely, &mut self.freed_here[how]) {
            likely
        } else {
            // No thread has a greater number than this holds.
            coder.number(u64::from(e.thread.0), &mut self.other_threads) as u32
        };
        let as_born = match (known, born.young) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => 2,
        };
        let young = coder.bit(e.young, &mut self.died_young[as_born]);
        let at = self.moment(coder, e.at, seq, DEALLOC, thread);
        Dealloc { at, id: BlockId(id), thread: ThreadId(thread), young }
    }

    fn thread(
        &mut self,
        coder: &mut impl Coder,
        thread: u32,
        likely: u32,
        of: usize,
    ) -> Result<u32, NotEvents> {
        if coder.bit(thread == likely, &mut self.same_thread[of]) {
            return Ok(likely);
        }
        narrow(coder.number(u64::from(thread), &mut self.other_threads))
    }

    fn address(&mut self, coder: &mut impl Coder, address: u64, few: usize) -> u64 {
        let last = &mut self.addresses[few];
        let low = address & ((1 << ALIGNED_BITS) - 1);
        let low =
            if coder.bit(low == 0, &mut self.aligned) { 0 } else { coder.raw(low, ALIGNED_BITS) };
        // Both shifted, so that a difference has no sign to lose.
        let further = (address >> ALIGNED_BITS).wrapping_sub(*last).cast_signed();
        let further = coder.signed(further, &mut self.places[few]);
        *last = last.wrapping_add_signed(further) & (u64::MAX >> ALIGNED_BITS);
        *last << ALIGNED_BITS | low
    }

    fn moment(
        &mut self,
        coder: &mut impl Coder,
        at: Moment,
        seq: u64,
        kind: usize,
        thread: u32,
    ) -> Moment {
        let context = context(self, kind, thread);
        let later = at.time_ns.wrapping_sub(self.last.time_ns).cast_signed();
        let tick = (1 << TICK_BITS) - 1;
        let later = if coder.bit(later & tick == 0, &mut self.ticks[kind]) {
            coder.signed(later >> TICK_BITS, &mut self.times[context]) << TICK_BITS
        } else {
            coder.signed(later, &mut self.odd_times)
        };
        let further = at.clock.wrapping_sub(self.last.clock).cast_signed();
        let further = coder.signed(further, &mut self.clocks[context]);
        self.last = Moment {
            seq,
            time_ns: self.last.time_ns.wrapping_add_signed(later),
            clock: self.last.clock.wrapping_add_signed(further),
        };
        (self.kind, self.thread) = (kind, thread);
        self.last
    }

    fn batch(&mut self, coder: &mut impl Coder, events: &[Event]) {
        coder.number(events.len() as u64, &mut self.counts);
        for event in events {
            let told = self.event(coder, event);
            debug_assert_eq!(told, Ok(*event), "an encoder gives back what it takes");
        }
    }

    /// Takes whole `frames` apart: the skeleton, and the coded events.
    pub fn encode(&mut self, frames: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let (mut skeleton, mut encoder) = (Vec::new(), Encoder::new());
        let mut rest = frames;
        let mut again = Vec::new();
        while let Ok(Some((frame, length))) = frame::first(rest) {
            rest = &rest[length..];
            skeleton.extend(frame.kind.to_le_bytes());
            if frame.kind == EVENTS
                && let Ok(batch) = codec::decode::<Batch>(frame.payload)
                && batch.len() <= Batch::MOST
            {
                let events: Vec<Event> = batch.iter().collect();
                again.clear();
                codec::encode_into(&Batch::pack(&events), &mut again);
                if again == frame.payload {
                    skeleton.extend(IN_CODE.to_le_bytes());
                    self.batch(&mut encoder, &events);
                    continue;
                }
            }
            skeleton.extend((frame.payload.len() as u32).to_le_bytes());
            skeleton.extend_from_slice(frame.payload);
        }
        debug_assert!(rest.is_empty(), "a chunk holds whole frames");
        (skeleton, encoder.finish())
    }

    /// Puts frames together again, and appends them to `out`; at most `most` bytes of
    /// them.
    pub fn decode(
        &mut self,
        skeleton: &[u8],
        coded: &[u8],
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), NotEvents> {
        let end = out.len() + most;
        let mut decoder = Decoder::new(coded);
        let mut rest = skeleton;
        let mut events = Vec::new();
        while let Some((head, more)) = rest.split_first_chunk::<6>() {
            let kind = u16::from_le_bytes([head[0], head[1]]);
            let length = u32::from_le_bytes([head[2], head[3], head[4], head[5]]);
            if (kind, length) == (EVENTS, IN_CODE) {
                rest = more;
                self.hear(&mut decoder, &mut events)?;
                let batch = Batch::pack(&events);
                if !frame::write(out, kind, |out| codec::encode_into(&batch, out)) {
                    return Err(NotEvents);
                }
            } else {
                let (payload, more) = more.split_at_checked(length as usize).ok_or(NotEvents)?;
                rest = more;
                if !frame::write(out, kind, |out| out.extend_from_slice(payload)) {
                    return Err(NotEvents);
                }
            }
            if out.len() > end {
                return Err(NotEvents);
            }
        }
        if rest.is_empty() { Ok(()) } else { Err(NotEvents) }
    }

    fn hear(&mut self, coder: &mut impl Coder, events: &mut Vec<Event>) -> Result<(), NotEvents> {
        events.clear();
        let count = coder.number(0, &mut self.counts);
        if count > Batch::MOST as u64 {
            return Err(NotEvents);
        }
        let none = Moment { seq: 0, time_ns: 0, clock: 0 };
        let any = Event::Promote(Promote { at: none, id: BlockId(0) });
        for _ in 0..count {
            events.push(self.event(coder, &any)?);
        }
        Ok(())
    }
}

fn narrow(number: u64) -> Result<u32, NotEvents> {
    u32::try_from(number).map_err(|_| NotEvents)
}

const fn cause_number(cause: Cause) -> u64 {
    match cause {
        Cause::Malloc => 0,
        Cause::Calloc => 1,
        Cause::Realloc => 2,
        Cause::Aligned => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::tests::events;
    use crate::message::{Dropped, FromAgent};
    use proptest::prelude::*;

    fn frames(batches: &[Vec<Event>]) -> Vec<u8> {
        let mut out = Vec::new();
        for batch in batches {
            assert!(FromAgent::from(Batch::pack(batch)).write(&mut out));
            assert!(FromAgent::from(Dropped { events: batch.len() as u64 }).write(&mut out));
        }
        out
    }

    proptest! {
        #[test]
        fn frames_come_out_as_they_went_in(
            chunks in proptest::collection::vec(proptest::collection::vec(
                proptest::collection::vec(events(), 0..30), 0..4), 1..4),
        ) {
            let (mut writer, mut reader) = (Learnt::default(), Learnt::default());
            for chunk in chunks {
                let frames = frames(&chunk);
                let (skeleton, coded) = writer.encode(&frames);
                let mut out = vec![1];
                let decoded = reader.decode(&skeleton, &coded, frames.len(), &mut out);
                prop_assert_eq!(decoded, Ok(()));
                prop_assert_eq!(&out[1..], &frames[..]);
            }
        }

        #[test]
        fn garbage_is_bounded(
            skeleton in proptest::collection::vec(
                prop_oneof![Just([5, 0, 255, 255, 255, 255]), any::<[u8; 6]>()], 0..40),
            coded in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut out = Vec::new();
            let _ = Learnt::default().decode(&skeleton.concat(), &coded, 10_000, &mut out);
            prop_assert!(out.len() < 10_000 + frame::MAX_PAYLOAD);
        }
    }

    #[test]
    fn a_batch_that_is_written_otherwise_stays_as_it_is() {
        let event =
            Event::Promote(Promote { at: Moment { seq: 7, time_ns: 7, clock: 7 }, id: BlockId(3) });
        let mut payload = Vec::new();
        codec::encode_into(&Batch::pack(&[event]), &mut payload);
        // A base other than the first event's, with the difference in the event.
        payload[0] = 6;
        payload[5] = 2;
        let batch = codec::decode::<Batch>(&payload).unwrap();
        assert_eq!(batch.iter().next().map(|e| e.at()), Some(event.at()));
        let mut frames = Vec::new();
        assert!(frame::write(&mut frames, EVENTS, |out| out.extend_from_slice(&payload)));
        let (skeleton, coded) = Learnt::default().encode(&frames);
        let mut out = Vec::new();
        Learnt::default().decode(&skeleton, &coded, frames.len(), &mut out).unwrap();
        assert_eq!(out, frames);
    }
}
