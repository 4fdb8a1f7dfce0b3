//! What is shown of a target that is gone for a while, or for good.

use crate::demo;
use heaptop::app::keys::TABS;
use heaptop_tests::impostor::{Impostor, bytes, story};
use heaptop_tests::terminal::{Terminal, key};
use std::io::{Read, Write};

#[test]
fn a_target_that_has_ended_stays_on_all_screens() {
    let mut demo = demo::start(&["--leak", "1048576"]);
    demo::warm_up(&mut demo, 4 << 20, 256 << 10);
    let mut terminal = Terminal::viewer(demo.directory(), &[]);
    terminal.wait_for("fill_cache");
    demo.signal(libc::SIGKILL);
    demo.wait();
    terminal.wait_for("ENDED");
    for tab in TABS {
        terminal.press(&tab.key.to_string());
        // The name of the one that is shown stands in the title whatever is shown: what
        // it holds is told by this.
        let holds = match tab.key {
            '1' => "all callsites",
            '2' => "callers",
            '3' => "(all)",
            '4' => "in use since the start",
            '5' => "bytes that outlive so much allocation",
            '6' => "tid ",
            '7' => "reaches",
            '8' => "service.rs",
            _ => "ended: the target was killed by SIGKILL",
        };
        terminal.until(&format!("{}: {holds}", tab.name), |screen| {
            (screen.contains("ENDED") && screen.contains(holds)).then_some(())
        });
        if tab.key == '2' {
            // Back to where a callsite is selected.
            terminal.press("1");
            terminal.wait_for("all callsites");
        }
    }
    // Rows are selected, filtered and looked at closely, and nothing is asked of it.
    terminal.press("1/forget_session");
    terminal.press(key::ENTER);
    terminal.wait_for("1 of ");
    terminal.press("d");
    terminal.wait_for(", objects ");
    terminal.press("1x");
    terminal.wait_for("there is no connection to the target now");
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
}

#[test]
fn a_lost_connection_is_opened_again_and_each_step_is_logged() {
    let impostor = Impostor::start(|number, stream| {
        // Twice it hangs up before it has greeted, once when all was told.
        if number == 1 || number == 2 {
            let _ = stream.shutdown(std::net::Shutdown::Both);
            return;
        }
        let _ = stream.write_all(&bytes(&story()));
        if number == 0 {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    });
    let socket = impostor.socket().to_str().expect("a plain path").to_owned();
    let mut terminal = Terminal::viewer(impostor.directory(), &["attach", &socket]);
    terminal.press("9");
    terminal.until("lost, and connected again", |screen| {
        let lost = screen.find("lost: the agent closed the connection")?;
        let again = screen.rfind("connected")?;
        (lost < again && !screen.contains("LOST")).then_some(())
    });
    // The figures are there, once and not twice.
    terminal.press("1");
    terminal.wait_for("program+0x1000");
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
}
