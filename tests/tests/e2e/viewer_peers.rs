//! The viewer and peers that are no agents: one clear sentence, and nothing of what
//! was shown is lost.

use heaptop_protocol::estimate::Interval;
use heaptop_protocol::event::{Alloc, Batch, Cause, Dealloc, Event, Promote};
use heaptop_protocol::ids::{BlockId, StackId, ThreadId};
use heaptop_protocol::message::{
    FromAgent, Hello, LiveBlock, SnapshotBegin, SnapshotBlocks, SnapshotEnd, TotalsUpdate,
};
use heaptop_protocol::totals::{Moments, StackTotals, Total, Totals};
use heaptop_tests::impostor::{Impostor, bytes, hello, moment, status, story, totals};
use heaptop_tests::terminal::Terminal;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// What follows.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    Silence,
    HangUp,
    /// Once the viewer has greeted.
    HangUpLater,
}

use Then::{HangUp, HangUpLater, Silence};

/// A viewer at something that says `said`.
fn told(said: Vec<u8>, then: Then) -> (Impostor, Terminal) {
    let impostor = Impostor::start(move |number, stream| {
        // Whoever comes back hears nothing new.
        if number == 0 {
            let _ = stream.write_all(&said);
            if then == HangUpLater {
                let _ = stream.read(&mut [0; 4096]);
            }
            if then != Silence {
                let _ = stream.shutdown(std::net::Shutdown::Both);
            }
        }
    });
    let terminal = Terminal::viewer(impostor.directory(), &["attach", path(&impostor)]);
    (impostor, terminal)
}

fn path(impostor: &Impostor) -> &str {
    impostor.socket().to_str().expect("a plain path")
}

/// A frame with this header: length, kind, checksum.
fn header(length: u32, kind: u16, sum: u32) -> Vec<u8> {
    let parts =
        [&length.to_le_bytes()[..], &kind.to_le_bytes(), &[0, 0], &sum.to_le_bytes()].concat();
    assert_eq!(parts.len(), 12);
    parts
}

#[test]
fn who_does_not_greet_is_a_sentence_and_exit_code_2() {
    let whole = bytes(&[hello("x").into()]);
    let foreign = Hello { magic: *b"nonsense", ..hello("x") };
    let mut newer = hello("x");
    newer.version.major += 1;
    let other_first = bytes(&[status(1, Totals::default()).into()]);
    let viewers = [
        (told(Vec::new(), Silence), "does not answer within 5 s"),
        (told(whole[..whole.len() / 2].to_vec(), Silence), "does not answer within 5 s"),
        (told(Vec::new(), HangUp), "hung up before it greeted"),
        (told(whole[..whole.len() / 2].to_vec(), HangUp), "hung up before it greeted"),
        (told(b"HTTP/1.1 400 Bad Request\r\n\r\n".repeat(9), Silence), "the peer is no heaptop"),
        (told(header(u32::MAX, 1, 0), Silence), "the peer is no heaptop"),
        (told(bytes(&[foreign.into()]), Silence), "the peer is no heaptop"),
        (told(other_first, Silence), "the peer is no heaptop"),
        (told(bytes(&[newer.into()]), Silence), "use viewer and agent of the same release"),
    ];
    for ((_impostor, mut terminal), sentence) in viewers {
        terminal.wait_for("heaptop: ");
        assert_eq!(terminal.wait(), 2, "{sentence}");
        let shown = terminal.contents().replace('\n', "");
        assert!(shown.starts_with("heaptop: ") && shown.contains(sentence), "{shown}");
        assert!(!terminal.in_alternate_screen());
    }
}

#[test]
fn a_byte_now_and_then_does_not_keep_it() {
    let whole = bytes(&[hello("x").into()]);
    let impostor = Impostor::start(move |_, stream| {
        for byte in whole.iter().cycle() {
            // The pace is the point: each byte comes long before the deadline.
            std::thread::sleep(Duration::from_millis(400));
            if stream.write_all(&[*byte]).is_err() {
                return;
            }
        }
    });
    let mut terminal = Terminal::viewer(impostor.directory(), &["attach", path(&impostor)]);
    terminal.wait_for("does not answer within 5 s");
    assert_eq!(terminal.wait(), 2);
}

#[test]
fn what_breaks_off_leaves_what_was_shown() {
    let damaged = {
        let mut frame = bytes(&[status(3, totals(100)).into()]);
        let last = frame.len() - 1;
        frame[last] ^= 1;
        frame
    };
    let half = bytes(&[status(3, totals(100)).into()])[..40].to_vec();
    let nonsense = {
        let mut out = Vec::new();
        assert!(heaptop_protocol::frame::write(&mut out, 7, |out| out.extend([0xff; 30])));
        out
    };
    let cases = [
        (header(u32::MAX, 7, 0), Silence, "ENDED", "claims 4294967295 bytes"),
        (damaged, Silence, "ENDED", "its checksum does not match"),
        (nonsense, Silence, "ENDED", "a message of kind 7 is damaged"),
        (b"\x1b[2Jgarbage, and not a little of it".to_vec(), Silence, "ENDED", "of no more use"),
        (half.clone(), HangUpLater, "LOST", "broke off within a message"),
        (Vec::new(), HangUpLater, "LOST", "the agent closed the connection"),
        (half, Silence, "no news for", "figures are as of then"),
    ];
    let viewers: Vec<_> = cases
        .into_iter()
        .map(|(then, how, state, sentence)| {
            let said = [bytes(&story()), then].concat();
            (told(said, how), state, sentence)
        })
        .collect();
    for ((_impostor, mut terminal), state, sentence) in viewers {
        terminal.until(&format!("{state}: {sentence}"), |screen| {
            let one_line = screen.replace('\n', " ");
            (screen.contains(state) && one_line.contains(sentence)).then_some(())
        });
        let row = terminal.line_with("program+0x1000");
        assert!(row.contains(" 4"), "its figures stay: {row}");
        // It still is a viewer: keys work.
        terminal.press("2");
        terminal.wait_for("callers");
        terminal.press("q");
        assert_eq!(terminal.wait(), 0, "{sentence}");
    }
}

fn alloc(seq: u64, stack: u32, size: u64) -> Event {
    Event::Alloc(Alloc {
        at: moment(seq),
        thread: ThreadId(99),
        stack: StackId(stack),
        size,
        n_samples: 1,
        interval: Interval::DEFAULT,
        cause: Cause::Malloc,
        address: 0,
        young: true,
        replaces: Some(BlockId(seq)),
    })
}

/// What no agent says.
fn contradictions() -> Vec<FromAgent> {
    let dealloc = |seq, id| {
        Event::Dealloc(Dealloc {
            at: moment(seq),
            id: BlockId(id),
            thread: ThreadId(7),
            young: true,
        })
    };
    let promote = |seq, id| Event::Promote(Promote { at: moment(seq), id: BlockId(id) });
    let wrong = Moments { sum: f64::NAN, sum_sq: -1.0, variance: f64::INFINITY, largest: -0.0 };
    let lie = Total { n: 7, bytes: wrong, objects: wrong, smallest_size: 9, largest_size: 1 };
    let lies = Totals { in_use: lie, allocated: lie, minor: lie, promoted: lie };
    let block = LiveBlock {
        id: BlockId(500),
        born_ns: u64::MAX,
        born_clock: u64::MAX,
        thread: ThreadId(3),
        stack: StackId(12_345),
        size: u64::MAX,
        n_samples: 0,
        interval: Interval::EXACT,
        cause: Cause::Realloc,
        address: 1,
        young: false,
        born_young: true,
    };
    let events = [
        alloc(100, 777, 10),
        alloc(101, 1, 10),
        alloc(101, 1, 10),
        alloc(101, 2, u64::MAX),
        dealloc(103, 101),
        dealloc(104, 101),
        dealloc(105, 4242),
        promote(106, 4243),
        promote(90, 101),
    ];
    vec![
        Batch::pack(&events).into(),
        SnapshotEnd { at: moment(1), blocks: u64::MAX }.into(),
        SnapshotBegin { at: moment(9) }.into(),
        SnapshotBegin { at: moment(8) }.into(),
        SnapshotBlocks { blocks: vec![block; 3] }.into(),
        Batch::pack(&events).into(),
        SnapshotEnd { at: moment(7), blocks: 0 }.into(),
        TotalsUpdate {
            at: moment(0),
            stacks: [1, 777, u32::MAX]
                .map(|s| StackTotals { stack: StackId(s), totals: lies })
                .into(),
        }
        .into(),
        status(0, lies).into(),
    ]
}

#[test]
fn contradictions_are_borne_and_the_next_truth_counts() {
    let truth = totals(200);
    let told_last = [
        TotalsUpdate {
            at: moment(9000),
            stacks: vec![StackTotals { stack: StackId(1), totals: truth }],
        }
        .into(),
        status(9000, truth).into(),
    ];
    let said = [story(), contradictions(), contradictions(), told_last.into()].concat();
    let (_impostor, mut terminal) = told(bytes(&said), Silence);
    // 200 blocks of 4 KiB and what stands for those unseen.
    let row = terminal.line_with("program+0x1000");
    assert!(row.contains("815 KiB"), "{row}\n{}", terminal.contents());
    for screen in ["2", "i", "?", "?", "1"] {
        terminal.press(screen);
    }
    terminal.wait_for("program+0x1000");
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
}

#[test]
fn keys_are_heard_in_a_flood() {
    let flood = |stream: &mut UnixStream| {
        let mut blocks = 100;
        loop {
            let now = totals(blocks % 1000);
            let stacks = (1..200).map(|s| StackTotals { stack: StackId(s), totals: now });
            let events: Vec<Event> =
                (0..1000).map(|n| alloc(blocks * 1000 + n, n as u32, 4096)).collect();
            let said = [
                Batch::pack(&events).into(),
                TotalsUpdate { at: moment(blocks), stacks: stacks.collect() }.into(),
                status(blocks, now).into(),
            ];
            if stream.write_all(&bytes(&said)).is_err() {
                return;
            }
            blocks += 1;
        }
    };
    let impostor = Impostor::start(move |_, stream| {
        let _ = stream.write_all(&bytes(&story()));
        flood(stream);
    });
    let mut terminal = Terminal::viewer(impostor.directory(), &["attach", path(&impostor)]);
    terminal.wait_for("program+0x1000");
    for (key, shown) in [("?", "Keys on Callsites"), ("?", "program+0x1000"), (" ", "PAUSED")] {
        terminal.press(key);
        terminal.wait_for(shown);
    }
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
}
