//! Names that a program's functions, its threads and itself might have to harm who looks at
//! a picture of it, and a recording in which they do.

use heaptop::query::Label;
use heaptop_protocol::callstack::{Callstack, End, Frame, Module};
use heaptop_protocol::ids::{ModuleId, StackId};
use heaptop_protocol::message::{FromAgent, SnapshotBegin, SnapshotEnd, TotalsUpdate};
use heaptop_protocol::recording::{
    By, Ended, FrameNames, InRecording, Names, PLAIN, RAW, Recorded, SymbolName, write_chunk,
    write_header,
};
use heaptop_protocol::totals::StackTotals;
use heaptop_tests::impostor;

/// What a script sets on the picture where it runs.
pub const MARK: &str = "owned=";
/// A script that sets it.
pub const PAYLOAD: &str = "document.documentElement.setAttribute('owned', 'yes')";

/// The target's own name.
pub const TARGET: &str =
    "</text><script>document.documentElement.setAttribute('owned', 'yes')</script>&<";

/// Functions. Where a name could end what it stands in (an element, an attribute, a comment,
/// a section, a string of the picture's script), it goes on with a script.
pub const NAMES: [&str; 18] = [
    "<script>document.documentElement.setAttribute('owned', 'yes')</script>",
    "</title></g><script>document.documentElement.setAttribute('owned', 'yes')</script>",
    "]]><script>document.documentElement.setAttribute('owned', 'yes')</script>",
    "]]></script><script>document.documentElement.setAttribute('owned', 'yes')</script>",
    "--><script>document.documentElement.setAttribute('owned', 'yes')</script><!--",
    "\" onload=\"document.documentElement.setAttribute('owned', 'yes')\" x=\"",
    "' onmouseover='document.documentElement.setAttribute('owned', 'yes')",
    "\"; document.documentElement.setAttribute('owned', 'yes'); \"",
    "<foreignObject><iframe xmlns=\"http://www.w3.org/1999/xhtml\" onload=\"top.document.documentElement.setAttribute('owned', 'yes')\"/></foreignObject>",
    "<animate onbegin=\"document.documentElement.setAttribute('owned', 'yes')\" dur=\"1s\"/>",
    "&lt;script&gt;&amp;&#60;script&#62;&unknown; && &",
    "<?xml-stylesheet href=\"javascript:1\"?><!DOCTYPE svg [<!ENTITY x SYSTEM \"file:///etc/passwd\">]>&x;",
    "f<[u8; 4], &'static str>::call(\"a\", 'b') 12",
    "\u{1b}[2J\u{0}\u{7}\u{9b}31m\u{85}\u{fffe}",
    "\u{202e}evil\u{202c} \u{2066}\u{5d0}\u{5d1}\u{5d2} \u{627}\u{644}\u{639}\u{631}\u{628}\u{64a}\u{629}",
    "e\u{301}\u{1f469}\u{200d}\u{1f469}\u{200d}\u{1f467} \u{1f1e9}\u{1f1ea} 名前 \u{feff}",
    "",
    "_[k]",
];

/// All of them, and one of 10 kB.
fn names() -> Vec<String> {
    let long = format!("long<{}>::end", "T, ".repeat(3400));
    NAMES.iter().map(|name| (*name).to_owned()).chain([long]).collect()
}

/// Callstacks with what they weigh.
type Stacks = Vec<(Vec<Label>, f64)>;

/// Callstacks now and before: some grew, some shrank, one is new.
pub fn stacks() -> (Stacks, Stacks) {
    let label = |name: &str| Label { function: name.into(), location: name.into(), named: true };
    let path = |name: &str| ["main", name, "leaf"].map(label).to_vec();
    let names = names();
    let now = names.iter().map(|name| (path(name), 4096.0)).collect();
    let weights = [1024.0, 16384.0, 4096.0];
    let before = names.iter().zip(weights.iter().cycle()).skip(1);
    (now, before.map(|(name, weight)| (path(name), *weight)).collect())
}

/// A recording of a program with these names, a callsite each.
pub fn recording() -> Vec<u8> {
    let module = ModuleId(1);
    let names = names();
    let frame = |at: usize| Frame { module, offset: 64 * at as u64 };
    let moment = impostor::moment;
    let mut frames = Vec::new();
    let recorded = Recorded {
        by: By::Recorder,
        version: "0.1.0".into(),
        pid: 42,
        started_unix_ns: 1_700_000_000_000_000_000,
        part: 0,
        sealed: true,
    };
    assert!(InRecording::from(recorded).write(&mut frames));
    let mut say = |message: FromAgent| assert!(message.write(&mut frames), "it fits into a frame");
    say(impostor::hello(TARGET).into());
    let range = (0, 1 << 20);
    say(Module { id: module, path: NAMES[0].into(), build_id: vec![1], load_bias: 0, range }.into());
    // The frames of `main` and of what each of them calls stand behind all others. Names that
    // begin like a trait's are taken for a library's, and are no callsites.
    let [main, leaf] = [names.len(), names.len() + 1];
    for at in 0..names.len() {
        let frames = vec![frame(main), frame(at), frame(leaf)];
        say(Callstack { id: StackId(at as u32 + 1), frames, end: End::Complete }.into());
    }
    say(SnapshotBegin { at: moment(1) }.into());
    say(SnapshotEnd { at: moment(2), blocks: 0 }.into());
    let totals = impostor::totals(100);
    let stacks = (1..=names.len() as u32).map(|id| StackTotals { stack: StackId(id), totals });
    say(TotalsUpdate { at: moment(2), stacks: stacks.collect() }.into());
    say(impostor::status(2, impostor::totals(100 * names.len() as u64)).into());
    let functions = names.into_iter().chain(["main".to_owned(), "leaf".to_owned()]);
    let named = functions.enumerate().map(|(at, function)| FrameNames {
        frame: frame(at),
        symbols: vec![SymbolName { file: Some(function.clone()), function, line: Some(1) }],
    });
    assert!(InRecording::from(Names { names: named.collect() }).write(&mut frames));
    let ended = Ended { how: NAMES[1].into(), target_lives: false };
    assert!(InRecording::from(ended).write(&mut frames));
    let mut file = Vec::new();
    write_header(&mut file);
    assert!(write_chunk(&mut file, RAW, PLAIN, frames.len(), &frames), "it fits into a chunk");
    file
}
