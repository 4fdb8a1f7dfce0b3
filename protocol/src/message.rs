//! The messages, with their kinds.
//!
//! **Order.** The agent speaks first, with [`Hello`]; the viewer answers with
//! [`ViewerHello`]; each checks the other's version before it says more. Then
//! the agent sends definitions, a snapshot, and events. Ids are defined before
//! they are used.
//!
//! **Absolute values.** [`TotalsUpdate`] and [`Status`] replace what was known:
//! a lost one is repaired by the next. A callstack that is absent from an
//! update is unchanged.
//!
//! **The snapshot is fuzzy.** [`SnapshotBegin`] … [`SnapshotEnd`] enclose lists
//! of live blocks; events may come in between and are applied as ever. A death
//! wins over a block that is listed later. Blocks that were known before and
//! are neither listed nor born since the beginning are gone: their deaths were
//! lost. After `SnapshotEnd` all totals stand as of its moment.
//!
//! **Evolution.** The layout of a kind never changes once released (golden
//! bytes hold it); new content gets a new kind; unknown kinds are skipped and
//! counted. Numbers are never used twice.

use crate::Version;
use crate::callstack::{Callstack, Module};
use crate::codec::{CodecError, Decode, Encode};
use crate::estimate::Interval;
use crate::event::{Alloc, Batch, Cause, Moment};
use crate::ids::{BlockId, StackId, ThreadId};
use crate::totals::{StackInUse, StackTotals, Total, Totals};

/// Opens every conversation, so that a stranger is told from a peer.
pub const MAGIC: [u8; 8] = *b"heaptop\0";

/// What kind of program the agent sits in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum AgentKind {
    /// Linked into a Rust program.
    Linked,
    /// Preloaded.
    Preloaded,
    /// OCaml's own `Gc.Memprof`.
    Ocaml,
}

/// Which sampled blocks the agent's books are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub enum Track {
    /// All, from birth to death.
    #[default]
    All,
    /// Major ones, and young ones from their promotion on: in use and promoted are of
    /// these, allocated and minor are nothing.
    Promoted,
    /// All, at their birth alone: allocated is known, and nothing else. Each birth is
    /// followed by a death at the same moment, which says nothing.
    Allocations,
}

/// The agent's first message.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Hello {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// The protocol it speaks.
    pub version: Version,
    /// Version of the agent's package.
    pub agent_version: String,
    /// Kind of agent.
    pub kind: AgentKind,
    /// The target's name: its executable's, or the one set.
    pub name: String,
    /// Its pid as it sees itself. Trust the socket's credentials instead.
    pub pid: u32,
    /// Nanoseconds since the agent started.
    pub uptime_ns: u64,
    /// Wall clock at the agent's start, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// N, the nursery's size in bytes.
    pub nursery_bytes: u64,
    /// φ, where in a cycle the clock began, in bytes.
    pub phase_bytes: u64,
    /// Largest block that is born young, in bytes.
    pub max_young_bytes: u64,
    /// Which blocks all that follows is of.
    pub track: Track,
    /// Most frames of a callstack.
    pub depth: u32,
    /// Bound of the agent's memory, in bytes.
    pub memory_bound_bytes: u64,
    /// What was wrong with the configuration: a sentence each.
    pub notices: Vec<String>,
}

/// A thread got a name.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Thread {
    /// Its id.
    pub id: ThreadId,
    /// The kernel's number, in the target's own namespace; 0 where the id is of many threads.
    pub tid: u32,
    /// Its name; empty where it could not be read.
    pub name: String,
}

/// Whether blocks are being sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Sampling {
    /// Sampling.
    On,
    /// λ = 0 by the user's wish. Deaths of known blocks go on.
    Paused,
    /// Stopped for good, with the reason in [`Stopped`].
    Stopped,
}

/// What was lost, ever since the agent's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct Losses {
    /// Births that found no room: in no figure.
    pub births: u64,
    /// Births charged to `(other stacks)`.
    pub stacks: u64,
    /// Events not sent to this viewer, which was too slow; totals hold them.
    pub unsent: u64,
    /// How often R was doubled because the memory bound was reached.
    pub thinned: u32,
}

/// The target as a whole, a few times a second.
#[derive(Debug, Clone, Copy, PartialEq, Encode, Decode)]
pub struct Status {
    /// As of when.
    pub at: Moment,
    /// Minor cycles that have ended.
    pub cycle: u64,
    /// Whether it samples.
    pub sampling: Sampling,
    /// R in force.
    pub interval: Interval,
    /// The coarsest R that blocks in the totals may have been sampled with.
    pub coarsest: Interval,
    /// Whether the agent's governor moves R.
    pub governed: bool,
    /// Whether sampling was off for a part of the profile's time: what was born then
    /// is in no total.
    pub gap: bool,
    /// Samples taken, ever.
    pub samples: u64,
    /// Totals over all callstacks.
    pub totals: Totals,
    /// Live sampled blocks.
    pub live_blocks: u64,
    /// Resident memory of the target in bytes; `None` where it cannot be read.
    pub rss_bytes: Option<u64>,
    /// Memory in use by the agent, in bytes.
    pub agent_bytes: u64,
    /// CPU time of the agent: helper thread and sampled paths, in nanoseconds.
    pub agent_cpu_ns: u64,
    /// CPU time of the whole process, in nanoseconds.
    pub process_cpu_ns: u64,
    /// What was lost.
    pub losses: Losses,
}

/// Changed totals.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct TotalsUpdate {
    /// As of when.
    pub at: Moment,
    /// Absolute values.
    pub stacks: Vec<StackTotals>,
}

/// A snapshot begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct SnapshotBegin {
    /// When.
    pub at: Moment,
}

/// A live sampled block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct LiveBlock {
    /// Which.
    pub id: BlockId,
    /// Nanoseconds since the agent's start at its birth.
    pub born_ns: u64,
    /// G before it.
    pub born_clock: u64,
    /// The thread that allocated it.
    pub thread: ThreadId,
    /// Where.
    pub stack: StackId,
    /// Bytes asked for.
    pub size: u64,
    /// Samples in it.
    pub n_samples: u64,
    /// R at its birth.
    pub interval: Interval,
    /// How.
    pub cause: Cause,
    /// Where it lies.
    pub address: u64,
    /// Whether it is still young.
    pub young: bool,
    /// Whether it was born young.
    pub born_young: bool,
}

impl From<&Alloc> for LiveBlock {
    fn from(e: &Alloc) -> Self {
        Self {
            id: e.id(),
            born_ns: e.at.time_ns,
            born_clock: e.at.clock,
            thread: e.thread,
            stack: e.stack,
            size: e.size,
            n_samples: e.n_samples,
            interval: e.interval,
            cause: e.cause,
            address: e.address,
            young: e.young,
            born_young: e.young,
        }
    }
}

/// Some of the live blocks.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SnapshotBlocks {
    /// In no order.
    pub blocks: Vec<LiveBlock>,
}

/// A snapshot ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct SnapshotEnd {
    /// When.
    pub at: Moment,
    /// Blocks listed in all.
    pub blocks: u64,
}

/// One point of the curve since start.
#[derive(Debug, Clone, Copy, PartialEq, Encode, Decode)]
pub struct HistoryPoint {
    /// Nanoseconds since the agent's start.
    pub time_ns: u64,
    /// Estimated bytes in use.
    pub in_use_bytes: f64,
    /// Estimated bytes ever allocated.
    pub allocated_bytes: f64,
    /// Estimated bytes ever promoted.
    pub promoted_bytes: f64,
    /// Resident memory; `None` where it cannot be read.
    pub rss_bytes: Option<u64>,
}

/// The curve: whole at attach, then point by point.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct History {
    /// Whether it replaces what is known, or goes on from it.
    pub whole: bool,
    /// In order of time.
    pub points: Vec<HistoryPoint>,
}

/// The moment of the highest in-use estimate.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct Peak {
    /// When.
    pub time_ns: u64,
    /// All of it.
    pub in_use: Total,
    /// By callstack: the whole table, or one part of several.
    pub stacks: Vec<StackInUse>,
    /// Whether more parts follow.
    pub more: bool,
}

/// Events were lost on the way to this viewer. A snapshot follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Dropped {
    /// How many.
    pub events: u64,
}

/// Sampling stopped for good; the program goes on.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Stopped {
    /// A sentence.
    pub reason: String,
}

/// A moment with a name.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Mark {
    /// When.
    pub at: Moment,
    /// Its name.
    pub label: String,
}

/// A phase of the program begins, by the program's own word: it ends where the next
/// one begins. Phases that began before the viewer came are told again, the oldest of
/// very many excepted.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Phase {
    /// When.
    pub at: Moment,
    /// Its name; empty: the program is in no phase from here on.
    pub name: String,
}

/// What the program says of itself as a whole, such as what it works on: replaces what
/// it said before.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Context {
    /// When it was said.
    pub at: Moment,
    /// In a few words; empty: nothing any more.
    pub label: String,
}

/// Who freed some blocks. Stands before their deaths, and only where it was wanted.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FreeStacks {
    /// Block by block.
    pub frees: Vec<FreeStack>,
}

/// Where a block was freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct FreeStack {
    /// Which.
    pub id: BlockId,
    /// The callstack of the free, or of the reallocation.
    pub stack: StackId,
}

/// Where the agent's memory can be opened, by who may look into the target: it
/// outlives the target, and [`crate::remains`] says how it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Memory {
    /// The target's descriptor of it.
    pub fd: u32,
    /// The thread whose descriptor it is in any case, by its number in the target's own
    /// namespace.
    pub tid: u32,
    /// The file's device, by which it is known.
    pub device: u64,
    /// The file's inode.
    pub inode: u64,
}

/// The viewer's first message.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ViewerHello {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// The protocol it speaks.
    pub version: Version,
    /// What it is, for people: "heaptop 0.1.0".
    pub client: String,
}

/// Wanted: another sampling interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct SetInterval {
    /// R; `None`: as the agent's governor thinks fit.
    pub interval: Option<Interval>,
}

/// Wanted: sampling on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct SetSampling {
    /// On.
    pub on: bool,
}

/// Wanted: an end of the profile's states, see DESIGN's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum ProfileCommand {
    /// A new profile: totals, peak and history start anew.
    Start,
    /// No more births; promotions and deaths go on.
    Stop,
    /// Forget all blocks and totals.
    Discard,
}

/// Wanted: a mark, told to all viewers.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SetMark {
    /// Its name.
    pub label: String,
}

/// Wanted: [`FreeStacks`], from now on or no more. Each sampled block costs a second
/// callstack while they are, so they are when a viewer shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct WantFreeStacks {
    /// On.
    pub on: bool,
}

/// Wanted: a snapshot of everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct WantSnapshot {}

/// A message that does not decode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageError {
    /// The frame's kind.
    pub kind: u16,
    /// What is wrong.
    pub why: CodecError,
}

impl std::fmt::Display for MessageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a message of kind {} is damaged: {}", self.kind, self.why)
    }
}

impl std::error::Error for MessageError {}

macro_rules! messages {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $kind:literal $variant:ident($payload:ty),)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        // A status is large, comes a few times a second, and is not kept in bulk.
        #[allow(clippy::large_enum_variant)]
        pub enum $name {
            $($(#[$variant_doc])* $variant($payload),)*
        }

        impl $name {
            /// The frame kind.
            #[must_use]
            pub const fn kind(&self) -> u16 {
                match self { $(Self::$variant(_) => $kind,)* }
            }

            /// Appends the message's frame to `out`; `false`, and nothing, if
            /// it is larger than a frame may be.
            #[must_use]
            pub fn write(&self, out: &mut Vec<u8>) -> bool {
                $crate::frame::write(out, self.kind(), |out| match self {
                    $(Self::$variant(payload) => $crate::codec::encode_into(payload, out),)*
                })
            }

            /// Reads a frame; `None` for a kind that this version does not know.
            pub fn read(
                frame: &$crate::frame::Frame<'_>,
            ) -> Result<Option<Self>, $crate::message::MessageError> {
                fn payload<T: $crate::codec::Payload>(
                    frame: &$crate::frame::Frame<'_>,
                ) -> Result<T, $crate::message::MessageError> {
                    $crate::codec::decode(frame.payload)
                        .map_err(|why| $crate::message::MessageError { kind: frame.kind, why })
                }
                Ok(match frame.kind {
                    $($kind => Some(Self::$variant(payload(frame)?)),)*
                    _ => None,
                })
            }
        }

        $(impl From<$payload> for $name {
            fn from(payload: $payload) -> Self {
                Self::$variant(payload)
            }
        })*
    };
}

// What a recording has beside these is made in the same way.
pub(crate) use messages;

messages! {
    /// From the agent to the viewer. Kinds 1 to 999.
    FromAgent {
        /// First of all.
        1 Hello(Hello),
        /// Defines a module.
        2 Module(Module),
        /// Defines a thread, or renames it.
        3 Thread(Thread),
        /// Defines a callstack.
        4 Stack(Callstack),
        /// Births, promotions, deaths.
        5 Events(Batch),
        /// Changed totals.
        6 Totals(TotalsUpdate),
        /// The target as a whole.
        7 Status(Status),
        /// A snapshot begins.
        8 SnapshotBegin(SnapshotBegin),
        /// Some of its blocks.
        9 SnapshotBlocks(SnapshotBlocks),
        /// It ends.
        10 SnapshotEnd(SnapshotEnd),
        /// The curve since start.
        11 History(History),
        /// The highest moment.
        12 Peak(Peak),
        /// Events lost for this viewer.
        13 Dropped(Dropped),
        /// Sampling is over.
        14 Stopped(Stopped),
        /// A named moment.
        15 Mark(Mark),
        /// Where the agent's memory is.
        16 Memory(Memory),
        /// A phase begins.
        17 Phase(Phase),
        /// What the program says of itself.
        18 Context(Context),
        /// Who freed blocks.
        19 FreeStacks(FreeStacks),
    }
}

messages! {
    /// From the viewer to the agent. Kinds from 1,000 on.
    FromViewer {
        /// First of all.
        1000 Hello(ViewerHello),
        /// Another interval.
        1001 SetInterval(SetInterval),
        /// Sampling on or off.
        1002 SetSampling(SetSampling),
        /// The profile's states.
        1003 Profile(ProfileCommand),
        /// A mark.
        1004 SetMark(SetMark),
        /// A snapshot.
        1005 WantSnapshot(WantSnapshot),
        /// Callstacks of frees.
        1006 WantFreeStacks(WantFreeStacks),
    }
}

/// Why two peers cannot talk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandshakeError {
    /// No heaptop at the other end.
    Stranger,
    /// Another major version.
    Version {
        /// The peer's.
        theirs: Version,
    },
}

impl std::fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stranger => {
                f.write_str("the peer is no heaptop: its first message is not a greeting")
            }
            Self::Version { theirs } => write!(
                f,
                "the peer speaks protocol {theirs} and this is {}: use viewer and agent of the same release",
                crate::VERSION
            ),
        }
    }
}

impl std::error::Error for HandshakeError {}

/// Whether a peer with this greeting can be talked to.
pub fn check_greeting(magic: [u8; 8], version: Version) -> Result<(), HandshakeError> {
    if magic != MAGIC {
        return Err(HandshakeError::Stranger);
    }
    if version.major != crate::VERSION.major {
        return Err(HandshakeError::Version { theirs: version });
    }
    Ok(())
}
