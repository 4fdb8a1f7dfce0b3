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

const STEPS: &[Step] = &[step(
    ("", ""),
    "fill_cache",
    "heaptop demo: who holds the heap, live, with 95 % intervals",
    3.5,
    Some("callsites"),
)];

fn main() {
    let directory = socket_directory();
    let mut terminal = Terminal::start("heaptop", directory.path(), &["demo"], SIZE);
    terminal.wait_for("forget_session");
    // Growth is told since here.
    terminal.press("M");
    // So long that the leak has grown with evidence, the cache is full, and there is a past.
    let grown = Deadline::after(Duration::from_secs(180));
    let up = |screen: &str| screen.contains("up 2 m").then_some(());
    terminal.by(grown, "two minutes", up).unwrap_or_else(|message| panic!("{message}"));
    let mut film = Film::default();
    for step in STEPS {
        terminal.press(step.keys);
        terminal.wait_for(step.shows);
        let screen = terminal.screen();
        if let Some(name) = step.picture {
            save(&format!("{name}.svg"), &picture::still(&film::rows(&screen)));
        }
        film.shot(screen, step.called, step.caption, step.seconds);
    }
    save("demo.svg", &film.svg());
    save("demo.cast", &film.cast());
    terminal.press("q");
    terminal.wait();
}

fn save(name: &str, content: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("assets").join(name);
    std::fs::write(&path, content).expect("assets can be written to");
    println!("{}, {} KiB", path.display(), content.len() / 1024);
}
