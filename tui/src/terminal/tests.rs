//! The terminal's manners, on a pseudo-terminal, in a process of its own.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};

use crossterm::event::{Event as Input, KeyCode};
use ratatui::widgets::Paragraph;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal as Kill;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::*;
use crate::source::inbox::Inbox;

/// Shows the last key, ten times: so that it can be found in the output, which
/// holds differences only. `n` changes nothing; some letters do things.
struct Letters {
    last: char,
    changed: bool,
    draws: u32,
    size: (u16, u16),
    outlet: Arc<Outlet>,
}

impl Ui for Letters {
    fn input(&mut self, event: Input) -> Vec<Order> {
        let Input::Key(key) = event else { return vec![] };
        let KeyCode::Char(c) = key.code else { return vec![] };
        match c {
            'q' => return vec![Order::Quit],
            'z' => return vec![Order::Suspend],
            'y' => return vec![Order::Copy("clip".into())],
            'p' => panic!("panic of the drawing thread"),
            'w' => {
                let panicking = std::thread::spawn(|| panic!("panic of a worker"));
                let _ = panicking.join();
                self.outlet.put(Event::Wake);
                return vec![];
            }
            'n' => return vec![],
            _ => {}
        }
        self.last = c;
        self.changed = true;
        vec![]
    }

    fn source(&mut self, _: SourceEvent) {}

    fn wake(&mut self) {
        self.last = 'W';
        self.changed = true;
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        self.size = (columns, rows);
    }

    fn alarm(&self) -> Option<Instant> {
        None
    }

    fn ring(&mut self) {}

    fn refresh(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    fn draw(&mut self, frame: &mut ratatui::Frame<'_>) {
        self.draws += 1;
        let area = frame.area();
        let text = format!("{}\n{}x{}", self.last.to_string().repeat(10), self.size.0, self.size.1);
        frame.render_widget(Paragraph::new(text), area);
    }
}

/// Not a test of its own: the program of the others.
#[test]
fn terminal_process() {
    if std::env::var_os("HEAPTOP_TEST_TERMINAL").is_none() {
        return;
    }
    let outlet = Outlet::new(&Arc::new(Inbox::default()));
    let mut ui =
        Letters { last: '0', changed: true, draws: 0, size: (0, 0), outlet: Arc::clone(&outlet) };
    let ended = run_ui(&outlet, &mut ui).unwrap();
    let _ = writeln!(io::stdout(), "{ended:?} after {} draws", ui.draws);
    std::process::exit(7);
}

/// The program in its terminal.
struct Pty {
    master: Option<OwnedFd>,
    /// Closes the reader's copy of `master`.
    hang_up: Arc<AtomicBool>,
    child: Child,
    output: Receiver<Vec<u8>>,
    /// What was seen and not looked for yet.
    seen: Vec<u8>,
}

const QUIT: &str = "\x1b[?1049l";

impl Pty {
    /// Starts the program, through a shell's `script` where that is given.
    fn start(script: Option<&str>) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let slave = ptsname(&master, vec![]).unwrap();
        resize(&master, 30, 5);
        let open = || {
            let path = slave.to_str().unwrap();
            Stdio::from(std::fs::File::options().read(true).write(true).open(path).unwrap())
        };
        let program = std::env::current_exe().unwrap();
        let name = "terminal::tests::terminal_process";
        let mut command = Command::new("setsid");
        command.arg("--ctty");
        match script {
            None => command.arg(program).args(["--exact", name, "--nocapture"]),
            Some(script) => {
                let program = format!("'{}' --exact {name} --nocapture", program.display());
                command.args(["sh", "-mc", &script.replace("PROGRAM", &program)])
            }
        };
        let child = command
            .env("HEAPTOP_TEST_TERMINAL", "1")
            .stdin(open())
            .stdout(open())
            .stderr(open())
            .spawn()
            .unwrap();
        let mut reader = std::fs::File::from(master.try_clone().unwrap());
        let (send, output) = channel();
        let hang_up = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&hang_up);
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            let moment = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            while !over.load(SeqCst) {
                if poll(&mut [PollFd::new(&reader, PollFlags::IN)], Some(&moment)) == Ok(0) {
                    continue;
                }
                let Ok(n @ 1..) = reader.read(&mut chunk) else { return };
                if send.send(chunk[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { master: Some(master), hang_up, child, output, seen: Vec::new() }
    }

    /// Output up to and with `text`.
    fn expect(&mut self, text: &str) -> String {
        let text = text.as_bytes();
        loop {
            if let Some(at) = self.seen.windows(text.len()).position(|w| w == text) {
                let before: Vec<u8> = self.seen.drain(..at + text.len()).collect();
                return String::from_utf8_lossy(&before).into_owned();
            }
            match self.output.recv_timeout(Duration::from_secs(30)) {
                Ok(bytes) => self.seen.extend(bytes),
                Err(e) => panic!("{e}: {:?}", String::from_utf8_lossy(&self.seen)),
            }
        }
    }

    fn master(&self) -> &OwnedFd {
        self.master.as_ref().unwrap()
    }

    fn press(&self, keys: &str) {
        std::fs::File::from(self.master().try_clone().unwrap()).write_all(keys.as_bytes()).unwrap();
    }

    fn kill(&self, signal: Kill) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Lines and echo, as a shell needs them.
    fn is_usual(&self) -> bool {
        let modes = tcgetattr(self.master()).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::yield_now();
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn resize(master: &OwnedFd, columns: u16, rows: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(master, size).unwrap();
}

#[test]
fn a_quit_restores_the_terminal() {
    let mut pty = Pty::start(None);
    pty.expect("\x1b[?1049h");
    pty.expect("0000000000");
    assert!(!pty.is_usual());
    pty.press("a");
    pty.expect("aaaaaaaaaa");
    pty.press("y");
    pty.expect("\x1b]52;c;Y2xpcA==");
    pty.press("q");
    pty.expect(QUIT);
    pty.expect("Quit after");
    assert_eq!(pty.wait().code(), Some(7));
    assert!(pty.is_usual());
}

#[test]
fn nothing_is_drawn_when_nothing_changed() {
    let mut pty = Pty::start(None);
    pty.expect("0000000000");
    pty.press("a");
    pty.expect("aaaaaaaaaa");
    pty.press("nnnnn");
    pty.press("b");
    let drawn = pty.expect("bbbbbbbbbb");
    assert!(!drawn.contains("5x30") && !drawn.contains('a'), "{drawn:?}");
    // So long that a drawing would have been due many times over.
    let start = Instant::now();
    while start.elapsed() < PACE {
        pty.press("ny");
        pty.expect("Y2xpcA==");
    }
    pty.press("q");
    pty.expect("Quit after 3 draws");
}

#[test]
fn signals_restore_the_terminal() {
    for (signal, number) in [(Kill::TERM, 15), (Kill::HUP, 1), (Kill::INT, 2)] {
        let mut pty = Pty::start(None);
        pty.expect("0000000000");
        pty.kill(signal);
        pty.expect(QUIT);
        pty.expect(&format!("Signal({number})"));
        assert_eq!(pty.wait().code(), Some(7));
        assert!(pty.is_usual());
    }
}

#[test]
fn a_terminal_that_takes_nothing_does_not_hold_it() {
    let mut pty = Pty::start(None);
    pty.expect("0000000000");
    let path = ptsname(pty.master(), vec![]).unwrap();
    let slave = std::fs::File::open(path.to_str().unwrap()).unwrap();
    // As ^S does it.
    rustix::termios::tcflow(&slave, rustix::termios::Action::OOff).unwrap();
    pty.press("a");
    pty.kill(Kill::TERM);
    assert_eq!(pty.wait().code(), Some(128 + 15));
    assert!(pty.is_usual());
}

#[test]
fn a_panic_restores_the_terminal_before_it_speaks() {
    let mut pty = Pty::start(None);
    pty.expect("0000000000");
    pty.press("p");
    let before = pty.expect(QUIT);
    assert!(!before.contains("panic of"), "{before:?}");
    pty.expect("panic of the drawing thread");
    pty.wait();
    assert!(pty.is_usual());
}

#[test]
fn the_panic_of_a_worker_waits_until_the_screen_is_left() {
    let mut pty = Pty::start(None);
    pty.expect("0000000000");
    pty.press("w");
    pty.expect("WWWWWWWWWW");
    pty.press("q");
    let before = pty.expect(QUIT);
    assert!(!before.contains("panic of"), "{before:?}");
    pty.expect("panic of a worker");
}

#[test]
fn any_size_is_borne_at_any_moment() {
    let mut pty = Pty::start(None);
    pty.expect("30x5");
    for (columns, rows) in [(0, 0), (1, 1), (300, 90), (0, 7), (7, 0), (20, 5)] {
        resize(pty.master(), columns, rows);
    }
    pty.expect("20x5");
    pty.press("a");
    pty.expect("aaaaaaaaaa");
    resize(pty.master(), 0, 0);
    resize(pty.master(), 80, 24);
    pty.expect("80x24");
    pty.press("q");
    pty.expect("Quit after");
}

#[test]
fn a_terminal_that_is_gone_ends_it() {
    let mut pty = Pty::start(None);
    pty.expect("0000000000");
    pty.master = None;
    pty.hang_up.store(true, SeqCst);
    assert_eq!(pty.wait().code(), Some(7));
}

#[test]
fn a_terminal_that_is_gone_is_noticed_without_a_signal() {
    let dir = tempfile::tempdir().unwrap();
    let code = dir.path().join("code");
    // Hanging up signals the outer shell alone, which does not mind until it wants
    // its terminal back.
    let script = format!("trap '' HUP; (PROGRAM; echo $? > '{}')", code.display());
    let mut pty = Pty::start(Some(&script));
    pty.expect("0000000000");
    pty.master = None;
    pty.hang_up.store(true, SeqCst);
    pty.wait();
    assert_eq!(std::fs::read_to_string(code).unwrap(), "7\n");
}

#[test]
fn suspending_restores_and_coming_back_draws_anew() {
    let mut pty = Pty::start(Some("PROGRAM; echo stopped-now; fg; echo status $?"));
    pty.expect("0000000000");
    pty.press("z");
    pty.expect(QUIT);
    pty.expect("stopped-now");
    pty.expect("\x1b[?1049h");
    pty.expect("0000000000");
    pty.press("a");
    pty.expect("aaaaaaaaaa");
    pty.press("q");
    pty.expect("Quit after");
    pty.expect("status 7");
    assert!(pty.wait().success());
}

#[test]
fn without_a_shell_it_does_not_stop() {
    let mut pty = Pty::start(None);
    pty.expect("0000000000");
    pty.press("za");
    pty.expect("aaaaaaaaaa");
    pty.kill(Kill::TSTP);
    pty.expect(QUIT);
    pty.expect("aaaaaaaaaa");
    // Somebody stopped it without a word, and the shell used the terminal.
    pty.kill(Kill::STOP);
    pty.kill(Kill::CONT);
    pty.expect("aaaaaaaaaa");
    pty.press("q");
    pty.expect("Quit after");
    assert_eq!(pty.wait().signal(), None);
}
