//! The viewer's manners towards its terminal, its shell and its target.

use crate::demo;
use heaptop_tests::deadline::{Deadline, poll};
use heaptop_tests::target::{Target, socket_directory};
use heaptop_tests::terminal::{Terminal, key};
use heaptop_tests::truth::Truths;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Command, Stdio};

fn target() -> Target {
    let mut demo = demo::start(&["--leak", "1048576"]);
    demo::warm_up(&mut demo, 1 << 20, 256 << 10);
    // A viewer in a shell must find it at once.
    let _ = demo.socket();
    demo
}

/// That the target works on, and that a new viewer sees its figures move.
fn goes_on(demo: &mut Target) {
    let before = Truths::ask(demo)["forget_session"].in_use_bytes;
    let terminal = Terminal::viewer(demo.directory(), &[]);
    let row = |screen: &str| {
        screen.lines().find(|line| line.contains("forget_session")).map(str::to_owned)
    };
    let first = terminal.until("the leak", row);
    terminal.until("a leak that grows", |screen| row(screen).filter(|now| *now != first));
    assert!(Truths::ask(demo)["forget_session"].in_use_bytes > before);
}

/// That the terminal is as a shell needs it.
fn restored(terminal: &Terminal) {
    assert!(!terminal.in_alternate_screen() && !terminal.cursor_hidden());
    let output = String::from_utf8_lossy(&terminal.output()).into_owned();
    let [on, off] = ["\x1b[?2004h", "\x1b[?2004l"].map(|code| output.matches(code).count());
    assert_eq!(on, off, "pasting is as it was");
}

#[test]
fn signals_end_it_with_their_code_and_the_target_goes_on() {
    let mut demo = target();
    for (signal, code) in [(libc::SIGTERM, 143), (libc::SIGHUP, 129), (libc::SIGINT, 130)] {
        let mut terminal = Terminal::viewer(demo.directory(), &[]);
        terminal.wait_for("fill_cache");
        let pid = terminal.pid().expect("it runs").cast_signed();
        // SAFETY: kill reads no memory; the pid is our child's, not yet reaped.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
        assert_eq!(terminal.wait(), code, "signal {signal}");
        restored(&terminal);
    }
    let mut terminal = Terminal::viewer(demo.directory(), &[]);
    terminal.wait_for("fill_cache");
    terminal.press(key::INTERRUPT);
    assert_eq!(terminal.wait(), 0, "^C is a key, and means to leave");
    restored(&terminal);
    goes_on(&mut demo);
}

#[test]
fn it_is_suspended_and_comes_back_with_figures_of_now() {
    let mut demo = target();
    let mut terminal = Terminal::shell(
        demo.directory(),
        "\"$VIEWER\"; echo now-stopped; read line; fg; echo status $?",
    );
    let leak = |screen: &str| {
        screen.lines().find(|line| line.contains("forget_session")).map(str::to_owned)
    };
    let before = terminal.until("the leak", leak);
    terminal.press("\x1a");
    terminal.wait_for("now-stopped");
    restored(&terminal);
    // The target did not stop with it.
    let at = Truths::ask(&mut demo)["forget_session"].in_use_bytes;
    poll(Deadline::default(), || {
        (Truths::ask(&mut demo)["forget_session"].in_use_bytes > at + (1 << 20)).then_some(())
    })
    .expect("it leaks on");
    terminal.press("\r");
    terminal.until("the leak, grown", |screen| {
        leak(screen).filter(|now| *now != before && now.contains(" MiB "))
    });
    terminal.press("q");
    terminal.wait_for("status 0");
    restored(&terminal);
}

#[test]
fn in_the_background_it_stops_as_others_do_and_comes_to_the_front() {
    let demo = target();
    let mut terminal = Terminal::shell(
        demo.directory(),
        "\"$VIEWER\" & while ! grep -q ') T ' /proc/$!/stat; do :; done; echo it-stopped; read line; \
         fg; echo status $?",
    );
    terminal.wait_for("it-stopped");
    assert!(!terminal.in_alternate_screen(), "nothing was drawn over the shell");
    terminal.press("\r");
    terminal.wait_for("fill_cache");
    assert!(terminal.in_alternate_screen());
    terminal.press("q");
    terminal.wait_for("status 0");
    restored(&terminal);
}

#[test]
fn a_terminal_that_cannot_be_used_is_a_sentence_and_exit_code_2() {
    let demo = target();
    let cases = [
        ("TERM=dumb \"$VIEWER\"; echo status $?", "heaptop: TERM is dumb"),
        ("unset TERM; \"$VIEWER\" demo; echo status $?", "heaptop: TERM is not set"),
        ("TERM= \"$VIEWER\" attach 1; echo status $?", "heaptop: TERM is not set"),
        ("setsid -w \"$VIEWER\" < /dev/null; echo status $?", "heaptop: no keys can be read"),
        ("\"$VIEWER\" > /dev/null; echo status $?", "heaptop: standard output is no terminal"),
    ];
    for (script, sentence) in cases {
        let terminal = Terminal::shell(demo.directory(), script);
        terminal.wait_for("status ");
        let shown = terminal.contents().replace('\n', "");
        assert!(shown.starts_with(sentence) && shown.contains("status 2"), "{script}:\n{shown}");
        assert_eq!(shown.matches("heaptop: ").count(), 1, "{shown}");
        assert!(shown.contains("heaptop list"), "it says what to do: {shown}");
        assert!(!terminal.output().contains(&0x1b), "nothing but text: {shown}");
    }
}

#[test]
fn keys_come_from_the_terminal_where_standard_input_is_none() {
    let demo = target();
    let mut terminal = Terminal::shell(demo.directory(), "\"$VIEWER\" < /dev/null; echo status $?");
    terminal.wait_for("fill_cache");
    terminal.press("2");
    terminal.wait_for("callers");
    terminal.press("q");
    terminal.wait_for("status 0");
}

#[test]
fn its_terminal_is_gone_and_so_is_it() {
    let mut demo = target();
    let (mut master, mut slave) = (0, 0);
    // SAFETY: two numbers are written; no name, modes or size are passed.
    let opened = unsafe {
        libc::openpty(
            &raw mut master,
            &raw mut slave,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
    assert_eq!(opened, 0);
    // SAFETY: both are open, and nobody else's.
    let [master, slave] = [master, slave].map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    // SAFETY: no memory is involved; the master is not for the viewer.
    unsafe { libc::fcntl(master.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
    let size = libc::winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: it reads one size, which lives.
    unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
    let end = || Stdio::from(slave.try_clone().expect("a descriptor"));
    let mut viewer = Command::new("setsid")
        .arg("--ctty")
        .arg(heaptop_tests::binaries::path("heaptop"))
        .env("HEAPTOP_DIR", demo.directory())
        .env("TERM", "xterm-256color")
        .stdin(end())
        .stdout(end())
        .stderr(end())
        .spawn()
        .expect("it starts");
    drop(slave);
    let mut master = std::fs::File::from(master);
    let mut seen = Vec::new();
    // Drawn at first, and so in one piece.
    while !String::from_utf8_lossy(&seen).contains("1 Callsites") {
        let mut bytes = [0; 4096];
        let n = master.read(&mut bytes).expect("it draws");
        seen.extend_from_slice(&bytes[..n]);
    }
    drop(master);
    let status = poll(Deadline::default(), || viewer.try_wait().expect("a child"));
    assert_eq!(status.and_then(|status| status.code()), Some(129), "as after SIGHUP");
    goes_on(&mut demo);
}

#[test]
fn a_background_without_a_shell_is_a_sentence() {
    let directory = socket_directory();
    // The inner shell makes a group of its own of the job, which waits until that shell
    // is gone: an orphan, which no signal of the terminal stops.
    let job = "while kill -0 $SHELL_PID 2> /dev/null; do :; done; \"$VIEWER\" demo; echo status $?";
    std::fs::write(directory.path().join("job"), job).unwrap();
    let mut terminal =
        Terminal::shell(directory.path(), "sh -mc 'SHELL_PID=$$ sh ./job &'; read line");
    terminal.wait_for("status ");
    let shown = terminal.contents().replace('\n', "");
    assert!(shown.contains("in the background of its terminal"), "{shown}");
    assert!(shown.contains("status 2"), "{shown}");
    terminal.press("\r");
    terminal.wait();
}
