//! Makes the pictures of the README from the real program: runs the viewer on the demo in a
//! pseudo-terminal, presses keys, and writes what is on the screen beside this directory, as
//! SVG. `assets/make` builds what is needed and runs it.
//!
//! Each screen is a picture, and all together are a film.

mod film;
mod picture;

use film::Film;
use heaptop_tests::deadline::Deadline;
use heaptop_tests::target::socket_directory;
use heaptop_tests::terminal::Terminal;
use std::path::Path;
use std::time::Duration;

const SIZE: (u16, u16) = (30, 120);

/// What is pressed, as it is called, and what the terminal sends for it; what must be on the
/// screen then; what is said of it, for so many seconds; and the picture's name, if it is one.
struct Step {
    keys: &'static str,
    called: &'static str,
    shows: &'static str,
    caption: &'static str,
    seconds: f64,
    picture: Option<&'static str>,
}

const fn step(
    (keys, called): (&'static str, &'static str),
    shows: &'static str,
    caption: &'static str,
    seconds: f64,
    picture: Option<&'static str>,
) -> Step {
    Step { keys, called, shows, caption, seconds, picture }
}

const STEPS: &[Step] = &[
    step(
        ("", ""),
        "lifetime",
        "who holds the heap of a running program, and who only passes through; ± is 95 %",
        4.0,
        Some("callsites"),
    ),
    step(
        ("\r", "Enter"),
        "share",
        "who calls it, and how much of it is theirs",
        3.5,
        Some("callers"),
    ),
    step(("\x1b", "Esc"), "alloc/s", "back", 1.0, None),
    step(("3", "3"), "(all)", "where in the program the bytes come from", 3.5, Some("flame")),
    step(
        ("4", "4"),
        "promoted/s",
        "the heap since the program's start, by callsite",
        4.0,
        Some("time"),
    ),
    step((",,,", ", , ,"), "callsite", "back in time: every screen shows that moment", 2.5, None),
    step(("\\", "\\"), "callsite", "now again", 1.0, None),
    step(
        ("5", "5"),
        "measured",
        "who survives the nursery, and who dies young",
        3.5,
        Some("promotion"),
    ),
    step(("]]", "] ]"), "what if", "what a nursery four times as large would promote", 3.0, None),
    step(
        ("6", "6"),
        "freed by others",
        "which threads allocate, and who frees what others allocated",
        2.5,
        Some("threads"),
    ),
    step(
        ("7", "7"),
        "reaches",
        "what leaks: old and alive, and growing by more than chance",
        4.0,
        Some("leaks"),
    ),
    step(
        ("d", "d"),
        "what to do",
        "one callsite closely: lifetimes, sizes, and what to do",
        4.5,
        Some("details"),
    ),
    step(("\x1b", "Esc"), "reaches", "back", 1.0, None),
    step(("1", "1"), "callsite", "back to all callsites", 1.0, None),
    step(("/", "/"), "callsites", "filter as you type", 1.0, None),
    step(
        ("fc", "f c"),
        "callsites",
        "fuzzy words, regular expressions, threads, sizes, ages, phases",
        3.0,
        None,
    ),
];

fn main() {
    let directory = socket_directory();
    let mut terminal = Terminal::start("heaptop", directory.path(), &["demo"], SIZE);
    terminal.wait_for("forget_session");
    // Growth is told since here.
    terminal.press("M");
    terminal.wait_for("mark as");
    terminal.press("warm up\r");
    // So long that the leak has grown with evidence, the cache is full, and there is a past.
    let grown = Deadline::after(Duration::from_secs(180));
    let up = |screen: &str| screen.contains("up 1 m").then_some(());
    terminal.by(grown, "a minute", up).unwrap_or_else(|message| panic!("{message}"));
    let mut film = Film::default();
    for step in STEPS {
        terminal.press(step.keys);
        terminal.wait_for(step.shows);
        // What is asked anew is there with the next drawing at the latest.
        std::thread::sleep(Duration::from_millis(600));
        let screen = terminal.screen();
        if let Some(name) = step.picture {
            save(&format!("{name}.svg"), &picture::still(&film::rows(&screen)));
        }
        film.shot(screen, step.called, step.caption, step.seconds);
    }
    save("demo.svg", &film.svg());
    save("demo.cast", &film.cast());
    // The film ends where a filter is typed.
    terminal.press("\r");
    terminal.wait_for("filter fc");
    terminal.press("q");
    terminal.wait();
}

fn save(name: &str, content: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("assets").join(name);
    std::fs::write(&path, content).expect("assets can be written to");
    println!("{}, {} KiB", path.display(), content.len() / 1024);
}
