//! What the viewer writes to its terminal while nothing happens in the target: over a
//! slow line that is what it costs.

use heaptop_tests::target::Target;
use heaptop_tests::terminal::Terminal;
use std::time::Duration;

/// Bytes a second that are few, for ssh over a slow line.
const FEW: usize = 2 << 10;

#[test]
fn an_idle_target_costs_the_terminal_little_and_a_paused_screen_nothing() {
    let mut target = Target::start("fixture-exits", &["0"], &[]);
    target.wait_for("ready");
    let mut terminal = Terminal::viewer(target.directory(), &[]);
    terminal.wait_for("hold_until_exit");
    // The key that is written last is seen, so what was on its way before has come.
    let count = |terminal: &Terminal, time: Duration| {
        let before = terminal.written();
        std::thread::sleep(time);
        terminal.written() - before
    };
    // How long it lasts is no verdict on speed: what is written a second may not grow.
    let seconds = 10;
    let written = count(&terminal, Duration::from_secs(seconds as u64));
    println!("idle: {} bytes a second", written / seconds);
    assert!(written < FEW * seconds, "{written} bytes in {seconds} s");
    terminal.press(" ");
    terminal.wait_for("PAUSED");
    let written = count(&terminal, Duration::from_secs(3));
    assert_eq!(written, 0, "a paused screen is written to");
    // It is the viewer that is still there, and it goes on.
    terminal.press(" ");
    terminal.until("a screen that goes on", |now| (!now.contains("PAUSED")).then_some(()));
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
}
