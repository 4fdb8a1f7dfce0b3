//! The screens beside the callsites, in a pseudo-terminal and on real targets.

use heaptop_tests::target::Target;
use heaptop_tests::terminal::Terminal;

fn nurseries() -> Target {
    let env = [("HEAPTOP_PHASE", "0"), ("HEAPTOP_INTERVAL", "16K"), ("HEAPTOP_SEED", "7")];
    let mut target = Target::start("fixture-nurseries", &[], &env);
    target.wait_for("ready");
    target
}

fn work(target: &mut Target, slices: usize) {
    for _ in 0..slices {
        target.say("go");
        target.wait_for("quiet");
    }
}

/// Waits for a line that has all of these.
fn line(terminal: &Terminal, parts: &[&str]) -> String {
    terminal.until(&format!("a line with {parts:?}"), |screen| {
        screen.lines().find(|line| parts.iter().all(|part| line.contains(part))).map(str::to_owned)
    })
}

#[test]
fn promotion_of_a_real_target() {
    let mut target = nurseries();
    let mut terminal = Terminal::viewer(target.directory(), &[]);
    terminal.wait_for("1 Callsites 2 Callers");
    work(&mut target, 12);
    terminal.press("5");
    // Of the three one dies at once, one lives for a sixteenth of the nursery, one for four.
    // Its row ends with the share that dies young.
    terminal.until("who dies at once", |screen| {
        let row = screen.lines().find(|line| line.contains("dies_at_once"))?;
        (row.contains(" 99.") || row.contains(" 100 % ≥")).then_some(())
    });
    line(&terminal, &["waits_long", "100 %"]);
    let briefly = line(&terminal, &["waits_briefly", " % ±"]);
    assert!(
        briefly.contains(" 6.") || briefly.contains(" 5.") || briefly.contains(" 7."),
        "{briefly}"
    );
    // Most bytes were born of who dies at once: it is the first, and selected.
    line(&terminal, &["── ", "dies_at_once: bytes that outlive so much allocation"]);
    line(&terminal, &["nursery [ ] 2 MiB, as configured"]);
    terminal.press("j");
    line(&terminal, &["▸", "waits_"]);
    terminal.press("]");
    line(&terminal, &["nursery [ ] 4 MiB, what if"]);
    line(&terminal, &["if 4 MiB ", " %"]);
    terminal.press("[[[[[[[[");
    line(&terminal, &["nursery [ ] 64 KiB, what if"]);
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
}

#[test]
fn the_timeline_of_a_real_target_and_the_mouse_on_it() {
    let mut target = nurseries();
    work(&mut target, 1);
    let mut terminal = Terminal::viewer(target.directory(), &[]);
    terminal.press("4");
    terminal.wait_for("in use since the start");
    work(&mut target, 3);
    line(&terminal, &["█ ", "waits_long", "MiB"]);
    for curve in [" alloc/s", " promoted/s", " RSS"] {
        line(&terminal, &[curve, " to ", "iB"]);
    }
    // In use is 2 MiB of one callsite, and some more: the axis says so.
    line(&terminal, &["2.", " MiB ", "now"]);
    // A moment can be asked about once some have passed since the viewer came.
    let at = terminal.until("time to pass", |screen| {
        let row = screen.lines().position(|line| line.contains("promoted/s"))?;
        let ticks = ["|1 s", "|2 s", "|5 s", "|10 s", "|15 s", "|30 s"];
        ticks.iter().any(|tick| screen.contains(tick)).then_some(row)
    });
    // A press on the chart, in columns and rows from one, as terminals tell it.
    let row = at - 3;
    terminal.press(&format!("\x1b[<0;40;{row}M\x1b[<0;40;{row}m"));
    line(&terminal, &["in use since", " at ", " s"]);
    terminal.press(&format!("\x1b[<0;40;{row}M\x1b[<32;70;{row}M\x1b[<0;70;{row}m"));
    line(&terminal, &["in use since", " s to ", " s"]);
    terminal.press("1");
    line(&terminal, &[" s to ", " s of "]);
    terminal.press("4P");
    terminal.wait_for("peak");
    terminal.press("\\");
    line(&terminal, &["in use since", " now"]);
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
}

#[test]
fn screens_are_reached_by_numbers_and_by_tab() {
    let mut target = nurseries();
    work(&mut target, 2);
    let mut terminal = Terminal::viewer(target.directory(), &[]);
    terminal.wait_for("all callsites");
    terminal.press("2");
    terminal.wait_for("in use, bytes");
    // Past the flamegraph.
    terminal.press("\t\t");
    terminal.wait_for("in use since the start");
    terminal.press("\t");
    terminal.wait_for("bytes that outlive so much allocation");
    terminal.press("\x1b[Z");
    terminal.wait_for("in use since the start");
    terminal.press("1");
    terminal.wait_for("all callsites");
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
}

#[test]
fn flamegraph_threads_source_and_log_of_a_real_target() {
    let mut target = nurseries();
    let mut terminal = Terminal::viewer(target.directory(), &[]);
    terminal.wait_for("1 Callsites");
    work(&mut target, 6);
    // Who is alive is who waits long: the heaviest frame, and its row in the flamegraph.
    line(&terminal, &["▸", "waits_long"]);
    terminal.press("3");
    line(&terminal, &["(all)", "in use, bytes"]);
    terminal.wait_for("waits_long");
    terminal.press("fwaits_long\r");
    line(&terminal, &["“waits_long” in ", " %"]);
    terminal.press("n");
    line(&terminal, &["waits_long", "flat 2."]);
    terminal.press("\r");
    line(&terminal, &["› ", "waits_long", " % of all"]);
    // Backspace zooms out, as Esc does, which needs no pause behind it.
    terminal.press("\x7fmm");
    line(&terminal, &["allocated, bytes"]);
    terminal.press("rz");
    line(&terminal, &["FROZEN"]);
    terminal.press("z6");
    // One thread does it all, and frees what it allocates.
    line(&terminal, &["▸", "fixture-nurseri", "tid ", "MiB", " 0 %"]);
    // The line that allocates, out of the file itself.
    terminal.press("1");
    line(&terminal, &["▸", "waits_long"]);
    terminal.press("8");
    line(&terminal, &["nurseries", ".rs", "in use, bytes"]);
    line(&terminal, &["▸", "2.", " MiB ±"]);
    terminal.wait_for("fn waits_long(");
    terminal.press("9");
    line(&terminal, &["connection", "connected"]);
    line(&terminal, &["agent", "fixture-nurseries (pid ", "nursery of 2 MiB"]);
    line(&terminal, &["sampling", "1 sample in 16 KiB"]);
    terminal.press("Mnoon\r");
    line(&terminal, &["moment", "mark “noon”"]);
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
}

/// Where `what` is on the screen, in columns and rows from one, in a line that has `part`.
fn place(terminal: &Terminal, part: &str, what: &str) -> (usize, usize) {
    terminal.until(&format!("{what} beside {part}"), |screen| {
        let mut lines = screen.lines().enumerate();
        let found = |(row, line): (usize, &str)| {
            let at = line.find(what).filter(|_| line.contains(part))?;
            Some((line[..at].chars().count() + 1, row + 1))
        };
        lines.find_map(found)
    })
}

fn click(terminal: &mut Terminal, (x, y): (usize, usize)) {
    terminal.press(&format!("\x1b[<0;{x};{y}M\x1b[<0;{x};{y}m"));
}

#[test]
fn the_mouse_does_it_all() {
    let mut target = nurseries();
    let mut terminal = Terminal::viewer(target.directory(), &[]);
    terminal.wait_for("1 Callsites 2 Callers");
    work(&mut target, 8);
    // A name in the title goes to its screen.
    let tab = place(&terminal, "1 Callsites", "5 Promotion");
    click(&mut terminal, tab);
    terminal.wait_for("bytes that outlive so much allocation");
    // A heading sorts, and once more the other way round.
    let heading = place(&terminal, " callsite, since start", " rate");
    let rate = (heading.0 + 1, heading.1);
    click(&mut terminal, rate);
    line(&terminal, &[" callsite, since start", "rate ▼"]);
    line(&terminal, &["▸", "waits_long"]);
    click(&mut terminal, rate);
    line(&terminal, &[" callsite, since start", "rate ▲"]);
    let (x, y) = place(&terminal, "dies_at_once", "dies_at_once");
    // A row is selected; the wheel goes along.
    click(&mut terminal, (x, y));
    line(&terminal, &["── ", "dies_at_once: bytes that outlive"]);
    terminal.press(&format!("\x1b[<65;{x};{y}M"));
    line(&terminal, &["▸", "waits_"]);
    terminal.press(&format!("\x1b[<64;{x};{y}M"));
    line(&terminal, &["▸", "dies_at_once"]);
    // The time bar, once some time has passed: a press is a moment, a drag a range.
    let bar = place(&terminal, " in use ", " 0 to ").1;
    terminal.press(&format!("\x1b[<0;60;{bar}M\x1b[<32;110;{bar}M\x1b[<0;110;{bar}m"));
    line(&terminal, &[" in use ", " s to ", " s of "]);
    terminal.press("\\");
    line(&terminal, &[" in use ", " 0 to "]);
    let tab = place(&terminal, "1 Callsites", "7 Leaks");
    click(&mut terminal, tab);
    terminal.wait_for(" reaches ");
    let old = place(&terminal, " callsite, grown first ", " old ");
    click(&mut terminal, (old.0 + 1, old.1));
    line(&terminal, &[" callsite ", " old ▼"]);
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
}
