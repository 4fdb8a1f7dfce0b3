//! Our own unwinder, for ordinary frames on x86-64.
//!
//! What the tables say about a return address comes down to a **rule** of one
//! word: the caller's stack pointer is sp or rbp plus an offset, the return
//! address lies below it, and rbp is saved in a slot or is not. Rules are kept in
//! a cache for the whole process; a miss finds the module by `_dl_find_object`
//! (lock-free, glibc 2.35 and later), its table by binary search, and evaluates
//! one row, with all storage on a stack of our own ([`scratch`]). Of expressions those
//! are understood that compilers and linkers make ([`expression`]). Everything else in the
//! tables (other registers) gives no rule, and **ends the stack there**: libgcc would go on,
//! but reads whatever it is led to, and on a stack of the program's making that ends the
//! program; and it may wait for a lock that the program holds. A signal's frame,
//! which the tables describe by expressions too, is the kernel's and has a fixed
//! layout: the interrupted registers lie where [`signal`] says.
//!
//! **The cache** has two words a slot, the rule and the address xor-ed with it, and two
//! slots beside each other for an address: two that share a place and are in one stack
//! would otherwise be looked up by turns. Threads read and write them relaxed and
//! without order; a torn pair does not give the address back and counts as a miss.
//!
//! **Reads** are of memory that is known to be readable: [`Readable`]. So a rule
//! that is stale, of code that was unloaded and whose place was taken (until the
//! agent's thread notices and calls [`forget`]), and a stack that the program
//! switched to by means that the tables do not know, give wrong frames at worst, of
//! a number that is bounded; what cannot be read cuts the stack. A thread's own
//! stack ends where glibc has put its control block; the main thread's stack lies
//! above its control block and ends where the loader says.

mod expression;
mod program;

use super::readable::Readable;
use super::{End, Mark, Stack, scratch};
use crate::engine::sync::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
    scaled, shared,
};
use expression::Value;
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, NativeEndian, Pointer, ReaderOffset,
    Register, RegisterRule, UnwindContext, UnwindContextStorage, UnwindExpression, UnwindSection,
    UnwindTableRow, X86_64,
};

const SLOT_BITS: u32 = scaled(13, 1) as u32;
const SLOTS: usize = 1 << SLOT_BITS;

shared! {
    static CACHE: [Slot; SLOTS] = Slot { key: AtomicU64::new(0), rule: AtomicU64::new(0) };

    /// `_dl_find_object`, or what does its work; 0 before [`prime`] has looked for it, and
    /// [`NO_FIND`] where there is none.
    static FIND: AtomicUsize = AtomicUsize::new(0);
}

const NO_FIND: usize = 1;

/// The rule of an address, and the two xor-ed.
struct Slot {
    key: AtomicU64,
    rule: AtomicU64,
}

impl Slot {
    #[inline]
    fn of(&self, pc: usize) -> Option<Rule> {
        let rule = self.rule.load(Relaxed);
        (self.key.load(Relaxed) ^ rule == pc as u64).then_some(Rule(rule))
    }

    fn set(&self, key: u64, rule: u64) {
        self.rule.store(rule, Relaxed);
        self.key.store(key, Relaxed);
    }
}

/// What `_dl_find_object` tells: glibc's `struct dl_find_object`.
#[repr(C)]
struct Found {
    flags: u64,
    map_start: usize,
    map_end: usize,
    link_map: usize,
    /// The module's `.eh_frame_hdr`.
    eh_frame: usize,
    reserved: [u64; 7],
}

type Find = unsafe extern "C" fn(usize, *mut Found) -> i32;

/// How to go from a frame to its caller: bits 0–2 are flags, 8–31 the offset of
/// the caller's stack pointer, 32–55 that of rbp's slot from there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule(u64);

impl Rule {
    /// No rule: the stack ends there. (So it does by what an empty slot says of address 0.)
    const NONE: Self = Self(1);
    /// The thread's first function.
    pub const FIRST: Self = Self(2);
    /// The return of a signal handler: the stack pointer is at its `ucontext`.
    const SIGNAL: Self = Self(3);
    /// Code without tables: no unwinder goes on from here.
    pub const BLIND: Self = Self(32);
    const VALID: u64 = 4;
    const FROM_RBP: u64 = 8;
    const RBP_SAVED: u64 = 16;
    /// The caller's stack pointer is what lies at rbp plus the offset, and rbp's slot is
    /// relative to rbp.
    const REALIGNED: u64 = 128;
    /// The caller's address is where it goes on, not behind a call: frames that
    /// the tables mark as a signal's, as some coroutines' first ones are.
    const EXACT: u64 = 64;

    fn realigned(offset: i64, rbp_slot: Option<i64>) -> Self {
        let rule = Self::new(true, offset, rbp_slot);
        if rule == Self::NONE { rule } else { Self(rule.0 | Self::REALIGNED) }
    }

    fn new(from_rbp: bool, offset: i64, rbp_slot: Option<i64>) -> Self {
        let field = |value: i64| (value as u64) & 0xff_ffff;
        let fits = |value: i64| (-0x80_0000..0x80_0000).contains(&value);
        if !fits(offset) || !rbp_slot.is_none_or(fits) {
            return Self::NONE;
        }
        Self(
            Self::VALID
                | if from_rbp { Self::FROM_RBP } else { 0 }
                | if rbp_slot.is_some() { Self::RBP_SAVED } else { 0 }
                | field(offset) << 8
                | field(rbp_slot.unwrap_or(0)) << 32,
        )
    }

    #[inline(always)]
    pub const fn offset(self) -> isize {
        (((self.0 << 32).cast_signed()) >> 40) as isize
    }

    #[inline(always)]
    pub const fn rbp_slot(self) -> isize {
        (((self.0 << 8).cast_signed()) >> 40) as isize
    }

    const fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    /// Whether it is that of an ordinary frame, and no end.
    #[inline(always)]
    pub const fn is_plain(self) -> bool {
        const ALL: u64 = 3 | Rule::VALID | Rule::BLIND.0 | Rule::EXACT | Rule::REALIGNED;
        self.0 & ALL == Self::VALID
    }

    #[inline(always)]
    pub const fn is_from_rbp(self) -> bool {
        self.has(Self::FROM_RBP)
    }

    #[inline(always)]
    pub const fn is_rbp_saved(self) -> bool {
        self.has(Self::RBP_SAVED)
    }
}

/// The code that a handler returns to, which makes a frame a signal's:
/// `mov rax, 15; syscall`.
const SIGRETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];

/// Offsets of the interrupted registers in a `ucontext` of Linux on x86-64.
mod signal {
    pub const RBP: usize = 40 + 8 * 10;
    pub const RSP: usize = 40 + 8 * 15;
    pub const RIP: usize = 40 + 8 * 16;
}

/// Room for a row's rules: the callee-saved registers, the return address, rsp;
/// and for one row remembered beside the current and the initial one. What needs
/// more has no rule.
struct OnStack;

impl<T: ReaderOffset> UnwindContextStorage<T> for OnStack {
    type Rules = [(Register, RegisterRule<T>); 9];
    type Stack = [UnwindTableRow<T, Self>; 3];
}

/// What the tables say about `pc`.
#[cold]
#[inline(never)]
fn look_up(find: usize, pc: usize) -> Rule {
    // SAFETY: `find` is the address that `prime` found under that name.
    let find: Find = unsafe { std::mem::transmute::<usize, Find>(find) };
    let mut found =
        Found { flags: 0, map_start: 0, map_end: 0, link_map: 0, eh_frame: 0, reserved: [0; 7] };
    // SAFETY: any address may be asked for, and `found` is valid for writing.
    if unsafe { find(pc, &raw mut found) } != 0 || found.eh_frame == 0 {
        return Rule::BLIND;
    }
    let table = |at: usize| {
        let module = found.map_start..found.map_end;
        let end = if module.contains(&at) { module.end } else { program::end_of(at)? };
        let bytes = end.checked_sub(at)?;
        // SAFETY: the module of a frame that is being executed is mapped, and so is
        // its table; what is read lies between the table and the end of the module, or of
        // the program's segment with the table.
        Some(unsafe { std::slice::from_raw_parts(at as *const u8, bytes) })
    };
    (|| {
        let bases = BaseAddresses::default().set_eh_frame_hdr(found.eh_frame as u64);
        let header = EhFrameHdr::new(table(found.eh_frame)?, NativeEndian).parse(&bases, 8).ok()?;
        let Pointer::Direct(at) = header.eh_frame_ptr() else { return None };
        let bases = bases.set_eh_frame(at);
        let frames: EhFrame<EndianSlice<'_, NativeEndian>> =
            EhFrame::new(table(at as usize)?, NativeEndian);
        let mut context: UnwindContext<usize, OnStack> = UnwindContext::new_in();
        let fde = header
            .table()?
            .fde_for_address(&frames, &bases, pc as u64, EhFrame::cie_from_offset)
            .ok()?;
        let exact = fde.is_signal_trampoline();
        if exact && table(pc + 1).is_some_and(|code| code.starts_with(&SIGRETURN)) {
            return Some(Rule::SIGNAL);
        }
        let row = fde.unwind_info_for_address(&frames, &bases, &mut context, pc as u64).ok()?;
        let rule = rule_of(row, &frames, pc)?;
        let plain = rule == Rule::FIRST || rule == Rule::NONE;
        Some(if exact && !plain { Rule(rule.0 | Rule::EXACT) } else { rule })
    })()
    .unwrap_or(Rule::NONE)
}

fn rule_of(
    row: &UnwindTableRow<usize, OnStack>,
    frames: &EhFrame<EndianSlice<'_, NativeEndian>>,
    pc: usize,
) -> Option<Rule> {
    let value = |of: &UnwindExpression<usize>| expression::value(of.get(frames).ok()?, pc + 1);
    match row.register(X86_64::RA) {
        Some(RegisterRule::Undefined) => return Some(Rule::FIRST),
        Some(RegisterRule::Offset(-8)) => {}
        _ => return None,
    }
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register: X86_64::RSP, offset } => Value::Sp(*offset),
        CfaRule::RegisterAndOffset { register: X86_64::RBP, offset } => Value::Rbp(*offset),
        CfaRule::RegisterAndOffset { .. } => return None,
        CfaRule::Expression(expression) => value(expression)?,
    };
    let saved = match row.register(X86_64::RBP) {
        Some(RegisterRule::Offset(slot)) => Some(Saved::FromCaller(slot)),
        Some(RegisterRule::Expression(expression)) => match value(&expression)? {
            Value::Rbp(slot) => Some(Saved::FromRbp(slot)),
            _ => return None,
        },
        None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => None,
        Some(_) => return None,
    };
    let rule = match (cfa, saved) {
        (Value::Sp(offset), None) => Rule::new(false, offset, None),
        (Value::Sp(offset), Some(Saved::FromCaller(slot))) => Rule::new(false, offset, Some(slot)),
        (Value::Rbp(offset), None) => Rule::new(true, offset, None),
        (Value::Rbp(offset), Some(Saved::FromCaller(slot))) => Rule::new(true, offset, Some(slot)),
        (Value::Rbp(offset), Some(Saved::FromRbp(slot))) => {
            Rule::new(true, offset, slot.checked_sub(offset))
        }
        (Value::AtRbp(offset), None) => Rule::realigned(offset, None),
        (Value::AtRbp(offset), Some(Saved::FromRbp(slot))) => Rule::realigned(offset, Some(slot)),
        _ => return None,
    };
    Some(rule)
}

/// Where rbp was saved.
enum Saved {
    FromCaller(i64),
    FromRbp(i64),
}

#[inline]
const fn slot(pc: usize) -> usize {
    ((pc as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - SLOT_BITS)) as usize
}

/// The rule of `pc` from the cache, or what `look_up` says.
#[inline]
fn cached(pc: usize, look_up: impl FnOnce() -> Rule) -> Rule {
    let at = slot(pc);
    let (first, second) = (&CACHE[at], &CACHE[at ^ 1]);
    if let Some(rule) = first.of(pc) {
        return rule;
    }
    if let Some(rule) = second.of(pc) {
        return rule;
    }
    let rule = look_up();
    // What was there is perhaps wanted again soon.
    second.set(first.key.load(Relaxed), first.rule.load(Relaxed));
    first.set(pc as u64 ^ rule.0, rule.0);
    rule
}

/// The rule of `pc`. `find` is [`ready`]'s.
#[inline(always)]
pub fn rule(find: usize, pc: usize) -> Rule {
    cached(pc, || look_up_elsewhere(find, pc))
}

#[cold]
#[inline(never)]
fn look_up_elsewhere(find: usize, pc: usize) -> Rule {
    scratch::run(Rule::NONE, || look_up(find, pc))
}

/// Where the loader's function is, if there is one and [`prime`] has looked for it.
#[inline]
pub fn ready() -> Option<usize> {
    Some(FIND.load(Acquire)).filter(|&find| find > NO_FIND)
}

unsafe extern "C" {
    /// Where the main thread's stack ends: the loader's.
    static __libc_stack_end: usize;
}

/// The end of the stack that `sp` points into, on a stack of glibc's.
#[inline]
pub fn stack_end(sp: usize) -> usize {
    let control_block: usize;
    // SAFETY: the word at fs:0 is the address of the thread's control block.
    unsafe {
        std::arch::asm!("mov {}, fs:[0]", out(reg) control_block,
            options(nostack, preserves_flags, readonly));
    }
    if sp < control_block {
        return control_block;
    }
    // SAFETY: the loader wrote it before the program began.
    unsafe { __libc_stack_end }
}

/// Adds the calling thread's return addresses from `mark` on to `stack`, as
/// [`super::capture`] says; false where there is no way to find tables.
#[inline(never)]
pub fn walk(stack: &mut Stack, mark: &Mark, depth: usize) -> bool {
    let Some(find) = ready() else {
        // In a constructor that runs before ours.
        let early = FIND.load(Relaxed) == 0;
        if early {
            stack.ends_blind();
        }
        return early;
    };
    let mut readable = Readable::around(mark.sp);
    let end = stack_end(mark.sp);
    match frames(find, stack, mark, depth, &mut readable) {
        Ended::Root { pc, sp } if is_threads_root(pc, sp, end) => readable.remember(mark.sp, end),
        Ended::Root { .. } | Ended::Straight => readable.extend(mark.sp),
        Ended::Elsewhere => {}
    }
    true
}

/// How a walk ended.
enum Ended {
    /// At a first function, without a signal's frame on the way.
    Root { pc: usize, sp: usize },
    /// Somewhere, without a signal's frame on the way.
    Straight,
    /// On another stack, perhaps.
    Elsewhere,
}

shared! {
    /// The return address in the function that threads begin in; 0 while it is not known.
    static THREADS_ROOT: AtomicUsize = AtomicUsize::new(0);
}

/// The caller runs on a thread of glibc's making: where `stack` ends, all others do.
pub fn note_root(stack: &Stack) {
    if let (End::Complete, Some(&last)) = (stack.end(), stack.frames().last()) {
        THREADS_ROOT.store((last as usize).wrapping_sub(1), Relaxed);
    }
}

/// Whether a stack that ends so is one that glibc, or the kernel, made for the thread: a stack
/// of the program's own (a coroutine's) begins elsewhere, and may lie right below it.
fn is_threads_root(pc: usize, sp: usize, end: usize) -> bool {
    /// Where the loader's stack ends the program's first function is.
    const NEAR: usize = 256;
    // SAFETY: the loader wrote it before the program began.
    let main = end == unsafe { __libc_stack_end };
    if main { end.abs_diff(sp) < NEAR } else { pc == THREADS_ROOT.load(Relaxed) }
}

/// Frames beyond those that are asked for that a walk looks at, to learn that it is on the
/// thread's own stack: half a millisecond, a few times in a thread's life at most.
const BEYOND: u32 = 1 << 16;

/// The frames from these registers on.
#[inline]
fn frames(
    find: usize,
    stack: &mut Stack,
    mark: &Mark,
    depth: usize,
    readable: &mut Readable,
) -> Ended {
    let (mut pc, mut sp, mut rbp) = (mark.pc, mark.sp, mark.rbp);
    let (mut straight, mut beyond) = (true, 0);
    let ended = |straight| if straight { Ended::Straight } else { Ended::Elsewhere };
    let mut word = |at: usize| {
        let sound = at.is_multiple_of(8) && readable.has(at);
        // SAFETY: the word is aligned, and lies in memory that can be read.
        sound.then(|| unsafe { *(at as *const usize) })
    };
    loop {
        let rule = rule(find, pc);
        let next = match rule {
            Rule::FIRST if straight => return Ended::Root { pc, sp },
            Rule::FIRST => return Ended::Elsewhere,
            Rule::SIGNAL => {
                straight = false;
                let [at, base, top] =
                    [signal::RIP, signal::RBP, signal::RSP].map(|offset| word(sp + offset));
                // Where it was interrupted, on another stack perhaps: the program's own. As if
                // it were a return address: one is taken off again.
                at.zip(base).zip(top).map(|((at, base), top)| (at.wrapping_add(1), base, top))
            }
            // No tables, or nothing in them that is understood.
            _ if !rule.has(Rule::VALID) => None,
            _ => caller(rule, sp, rbp, &mut word),
        };
        let Some((address, caller_rbp, caller_sp)) = next else {
            if beyond == 0 {
                stack.ends_blind();
            }
            return ended(straight);
        };
        // A coroutine's first frame, perhaps: behind it lies another stack.
        straight &= !rule.has(Rule::EXACT);
        if address == 0 {
            return ended(straight);
        }
        (sp, rbp) = (caller_sp, caller_rbp);
        if beyond > 0 || !stack.push(address, depth) {
            let known = beyond > 0 || Readable::may_look_beyond(mark.sp);
            if !straight || !known || beyond == BEYOND || Readable::is_own(sp) {
                return ended(straight);
            }
            beyond += 1;
        }
        // It points behind the call, which may be the function's last instruction.
        pc = address.wrapping_sub(1);
    }
}

/// Return address, rbp and stack pointer of the caller, by a rule; `None` where they cannot be
/// read. The address is 0 where there is none.
#[inline(always)]
fn caller(
    rule: Rule,
    sp: usize,
    rbp: usize,
    word: &mut impl FnMut(usize) -> Option<usize>,
) -> Option<(usize, usize, usize)> {
    let from = if rule.has(Rule::FROM_RBP) { rbp } else { sp };
    // Where the program switches stacks it may be below: each frame counts, so that
    // their number is bounded.
    let mut caller_sp = from.wrapping_add_signed(rule.offset());
    let mut slot_from = caller_sp;
    if rule.has(Rule::REALIGNED) {
        (caller_sp, slot_from) = (word(caller_sp)?, rbp);
    }
    let return_address = word(caller_sp.wrapping_sub(8))?;
    let rbp = if rule.has(Rule::RBP_SAVED) {
        word(slot_from.wrapping_add_signed(rule.rbp_slot()))?
    } else {
        rbp
    };
    let exact = usize::from(rule.has(Rule::EXACT) && return_address != 0);
    Some((return_address.wrapping_add(exact), rbp, caller_sp))
}

/// Looks for the loader's function and the program's tables. May allocate.
pub fn prime() {
    program::prime();
    let find = if program::is_static() {
        program::find as *const () as usize
    } else {
        // SAFETY: the name ends with a zero byte.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) as usize }
    };
    // Partner: the Acquire in `walk`; the function itself is older than both.
    FIND.store(find.max(NO_FIND), Release);
}

/// Empties the cache. A walk that runs meanwhile may put an old rule back; the
/// next change of the loader's list empties it again.
pub fn forget() {
    for slot in &CACHE[..] {
        slot.key.store(0, Relaxed);
        slot.rule.store(0, Relaxed);
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_keep_their_offsets() {
        for (offset, slot) in [(16, Some(-16)), (8, None), (0x7f_ff00, Some(-0x7f_ff00))] {
            for from_rbp in [false, true] {
                let rule = Rule::new(from_rbp, offset, slot);
                assert_eq!(rule.offset() as i64, offset);
                assert_eq!(rule.rbp_slot() as i64, slot.unwrap_or(0));
                assert_eq!(rule.has(Rule::FROM_RBP), from_rbp);
                assert_eq!(rule.has(Rule::RBP_SAVED), slot.is_some());
                assert!(rule.has(Rule::VALID));
            }
        }
        assert_eq!(Rule::new(false, 1 << 23, None), Rule::NONE);
    }

    #[test]
    fn an_address_without_tables_is_an_end() {
        prime();
        assert_eq!(rule(FIND.load(Relaxed), 0x10), Rule::BLIND);
    }

    /// As glibc answers for a program with a free page between its segments: of its code
    /// alone.
    unsafe extern "C" fn code_alone(pc: usize, found: *mut Found) -> i32 {
        // SAFETY: `prime` has found the function under that name.
        let find: Find = unsafe { std::mem::transmute::<usize, Find>(FIND.load(Relaxed)) };
        // SAFETY: the caller's contract is passed on.
        let answer = unsafe { find(pc, found) };
        // SAFETY: valid, as the caller says.
        let found = unsafe { &mut *found };
        found.map_start = found.map_start.max(pc & !0xfff);
        answer
    }

    #[test]
    fn tables_are_found_that_lie_outside_of_the_range_of_the_code() {
        prime();
        let pc = tables_are_found_that_lie_outside_of_the_range_of_the_code as fn() as usize + 64;
        let usual = look_up(FIND.load(Relaxed), pc);
        assert!(usual.has(Rule::VALID));
        assert_eq!(look_up(code_alone as *const () as usize, pc), usual);
    }
}
