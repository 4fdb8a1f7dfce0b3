//! One value of each message kind, every field with a value of its own, so that
//! two fields that change places are noticed.

use heaptop_protocol::VERSION;
use heaptop_protocol::callstack::{Callstack, End, Frame, Module};
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::event::{Alloc, Batch, Cause, Dealloc, Event, Moment, Promote};
use heaptop_protocol::ids::{BlockId, ModuleId, StackId, ThreadId};
use heaptop_protocol::message::*;
use heaptop_protocol::recording::{
    By, ConnectionLost, Ended, FrameNames, InRecording, Missing, Names, NewConnection, Recorded,
    SymbolName,
};
use heaptop_protocol::totals::{StackInUse, StackTotals, Total, Totals};

fn at(seq: u64) -> Moment {
    Moment { seq, time_ns: seq * 1_000_003, clock: seq << 20 }
}

fn interval() -> Interval {
    Interval::new(512 << 10).expect("512 KiB is an interval")
}

fn total(sizes: &[u64]) -> Total {
    let mut total = Total::default();
    for &size in sizes {
        total.add(&interval().weight(size));
    }
    total
}

fn totals() -> Totals {
    Totals {
        in_use: total(&[64]),
        allocated: total(&[16, 64, 1 << 20]),
        minor: total(&[16, 64]),
        promoted: total(&[16]),
    }
}

fn births_promotions_and_deaths() -> Batch {
    let birth = |seq, cause, young, replaces| {
        Event::Alloc(Alloc {
            at: at(seq),
            thread: ThreadId(3),
            stack: StackId(70_000),
            size: 1 << 20,
            n_samples: 2,
            interval: interval(),
            cause,
            address: 0x7f12_3456_7890,
            young,
            replaces,
        })
    };
    Batch::pack(&[
        birth(1000, Cause::Malloc, true, None),
        birth(1001, Cause::Calloc, false, None),
        birth(1002, Cause::Aligned, true, None),
        Event::Promote(Promote { at: at(1003), id: BlockId(1000) }),
        birth(1004, Cause::Realloc, false, Some(BlockId(1001))),
        Event::Dealloc(Dealloc {
            at: at(1005),
            id: BlockId(1002),
            thread: ThreadId(4),
            young: true,
        }),
        Event::Dealloc(Dealloc {
            at: at(1006),
            id: BlockId(12),
            thread: ThreadId(5),
            young: false,
        }),
    ])
}

/// All that an agent can say.
#[expect(clippy::too_many_lines, reason = "one list, which grows by a kind at a time")]
pub fn from_agent() -> Vec<FromAgent> {
    vec![
        Hello {
            magic: MAGIC,
            version: VERSION,
            agent_version: "0.1.0".into(),
            kind: AgentKind::Linked,
            name: "orders-api".into(),
            pid: 4711,
            uptime_ns: 11_520_000_000_000,
            started_unix_ns: 1_796_000_000_000_000_000,
            nursery_bytes: 2 << 20,
            phase_bytes: 77_777,
            max_young_bytes: 2048,
            track: Track::All,
            depth: 128,
            memory_bound_bytes: 64 << 20,
            notices: vec!["HEAPTOP_INTERVAL=lots is not a size: 512 KiB is used".into()],
        }
        .into(),
        Module {
            id: ModuleId(1),
            path: "/usr/bin/orders-api".into(),
            build_id: (1..=20).collect(),
            load_bias: 0x5555_5555_4000,
            range: (0x5555_5555_4000, 0x5555_5566_6000),
        }
        .into(),
        Thread { id: ThreadId(3), tid: 4715, name: "worker-1".into() }.into(),
        Callstack {
            id: StackId(70_000),
            frames: vec![
                Frame { module: ModuleId(1), offset: 0x1234 },
                Frame { module: ModuleId::UNKNOWN, offset: 0x7fff_ffff_f000 },
            ],
            end: End::Truncated,
        }
        .into(),
        births_promotions_and_deaths().into(),
        TotalsUpdate {
            at: at(1007),
            stacks: vec![StackTotals { stack: StackId(70_000), totals: totals() }],
        }
        .into(),
        Status {
            at: at(1008),
            cycle: 512,
            sampling: Sampling::Paused,
            interval: interval(),
            coarsest: Interval::DEFAULT,
            governed: true,
            gap: true,
            samples: 123_456,
            totals: totals(),
            live_blocks: 789,
            rss_bytes: Some(498 << 20),
            agent_bytes: 6 << 20,
            agent_cpu_ns: 34_000_000,
            process_cpu_ns: 11_000_000_000,
            losses: Losses { births: 1, stacks: 2, unsent: 3, thinned: 4 },
        }
        .into(),
        SnapshotBegin { at: at(1009) }.into(),
        SnapshotBlocks {
            blocks: vec![LiveBlock {
                id: BlockId(900),
                born_ns: 900_002_700,
                born_clock: 900 << 20,
                thread: ThreadId(3),
                stack: StackId(70_000),
                size: 640,
                n_samples: 1,
                interval: interval(),
                cause: Cause::Realloc,
                address: 0x7f12_0000_1000,
                young: false,
                born_young: true,
            }],
        }
        .into(),
        SnapshotEnd { at: at(1010), blocks: 1 }.into(),
        History {
            whole: true,
            points: vec![HistoryPoint {
                time_ns: 1_000_000_000,
                in_use_bytes: 1.5,
                allocated_bytes: 2.5,
                promoted_bytes: 0.25,
                rss_bytes: None,
            }],
        }
        .into(),
        Peak {
            time_ns: 5_000_000_000,
            in_use: total(&[64, 128]),
            stacks: vec![StackInUse { stack: StackId(70_000), in_use: total(&[128]) }],
            more: true,
        }
        .into(),
        Dropped { events: 300 }.into(),
        Stopped { reason: "the memory bound of 64 MiB is reached".into() }.into(),
        Mark { at: at(1011), label: "after warm-up".into() }.into(),
        Memory { fd: 100, tid: 4712, device: 1, inode: 4242 }.into(),
        Phase { at: at(1012), name: "startup".into() }.into(),
        Context { at: at(1013), label: "eu-west, shard 7".into() }.into(),
        FreeStacks { frees: vec![FreeStack { id: BlockId(1002), stack: StackId(3) }] }.into(),
    ]
}

/// All that a viewer can say.
pub fn from_viewer() -> Vec<FromViewer> {
    vec![
        ViewerHello { magic: MAGIC, version: VERSION, client: "heaptop 0.1.0".into() }.into(),
        SetInterval { interval: Some(interval()) }.into(),
        SetSampling { on: true }.into(),
        ProfileCommand::Discard.into(),
        SetMark { label: "before".into() }.into(),
        WantSnapshot {}.into(),
        WantFreeStacks { on: true }.into(),
    ]
}

/// All that only a recording says.
pub fn in_recording() -> Vec<InRecording> {
    let symbol = SymbolName {
        function: "alloc::vec::Vec<T>::push".into(),
        file: Some("src/main.rs".into()),
        line: Some(17),
    };
    let frame = Frame { module: ModuleId(3), offset: 0x1234 };
    vec![
        Recorded {
            by: By::Recorder,
            version: "0.1.0".into(),
            pid: 4711,
            started_unix_ns: 1_790_000_000_000_000_001,
            part: 2,
            sealed: true,
        }
        .into(),
        Names { names: vec![FrameNames { frame, symbols: vec![symbol] }] }.into(),
        ConnectionLost { why: "the agent closed the connection".into() }.into(),
        NewConnection {}.into(),
        Ended { how: "the target has exited".into(), target_lives: false }.into(),
        Missing { why: "a chunk's checksum did not match".into() }.into(),
    ]
}
