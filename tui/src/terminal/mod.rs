//! The loop that draws, and the terminal's manners.
//!
//! ```text
//! input thread ──┐            ┌─► Ui::input, source, wake   (state)
//! signal thread ─┼─► inbox ─► loop ─► Ui::refresh ─► Ui::draw (screen)
//! link, symbols ─┘            └─► screen: raw mode, suspend, restore
//! ```
//!
//! 1. **One thread** owns the state and the screen. It sleeps until something
//!    comes or a drawing is due, and writes nothing when nothing changed.
//! 2. **Drawing** follows a key at once, and what the target sends at most every
//!    [`Ui::pace`]: figures that change faster cannot be read.
//! 3. **Every way out restores the terminal**: a quit, an error, a panic
//!    (through its hook, before the message is printed), SIGTERM, SIGHUP, SIGINT.
//!    Should the loop be stuck in a write, the signal thread restores and ends
//!    the process after a second.
//! 4. **Suspending** (^Z, SIGTSTP) restores, stops, and draws anew when
//!    continued; so does a SIGCONT after a stop that nobody announced.
//! 5. **Sizes** come with SIGWINCH and are asked for before each drawing: any
//!    size at any moment; nothing is drawn at 0 × 0.
//! 6. **A terminal that is gone** ends the loop: the input thread polls for it,
//!    and a failed write says so too.
//! 7. **Another target** may be attached to while the loop runs: then it waits at that one's
//!    inbox, and what nobody has taken of keys and signals goes along ([`outlet`]).
//! 8. **Silence** of the target is told by the second ([`silence`]); nothing else
//!    on the screen moves by the clock.

mod choosing;
mod input;
mod live;
mod outlet;
mod reading;
mod recorder;
mod screen;
mod silence;
mod sources;
mod suspend;
#[cfg(test)]
mod tests;
mod usable;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::source::SourceEvent;
use crate::source::inbox::{Event, Signal};
use input::Listeners;
pub use live::{Begin, Left, Setup, run};
pub use outlet::Outlet;
use screen::Screen;
pub use usable::usable;

/// Shortest time between two drawings of what the target sends, unless the user has chosen
/// another.
pub const PACE: Duration = Duration::from_millis(100);
/// Shortest time between two drawings after keys: a held key repeats faster.
const KEY_PACE: Duration = Duration::from_millis(16);

/// The state behind the screen.
pub trait Ui {
    /// Keys, paste, mouse. What comes back is done in order.
    fn input(&mut self, event: crossterm::event::Event) -> Vec<Order>;
    /// The target, or news about it.
    fn source(&mut self, event: SourceEvent);
    /// [`Event::Wake`] came: some work is done.
    fn wake(&mut self);
    /// The terminal's size, in columns and rows, before the first drawing and
    /// after each change.
    fn resize(&mut self, columns: u16, rows: u16);
    /// When to call [`Ui::ring`], unless something comes before.
    fn alarm(&self) -> Option<Instant>;
    /// The alarm's time has come, and nothing waits to be taken.
    fn ring(&mut self);
    /// Brings what is shown up to date; whether it changed since the last drawing.
    fn refresh(&mut self) -> bool;
    /// Shortest time between two drawings of what the target sends.
    fn pace(&self) -> Duration {
        PACE
    }
    /// Draws it.
    fn draw(&mut self, frame: &mut ratatui::Frame<'_>);
}

/// What a [`Ui`] wants of the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Leave.
    Quit,
    /// Stop the process and come back.
    Suspend,
    /// Put this on the clipboard (OSC 52).
    Copy(String),
}

/// Why the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The user left.
    Quit,
    /// By this signal.
    Signal(i32),
    /// There is no terminal any more.
    TerminalGone,
}

/// Runs the screen until it ends, and restores the terminal.
pub fn run_ui(outlet: &Arc<Outlet>, ui: &mut impl Ui) -> io::Result<Ended> {
    let listeners = Listeners::start(outlet)?;
    let mut screen = Screen::enter()?;
    let ended = Loop { outlet, screen: &mut screen, due: None, drawn: None }.run(ui);
    let restored = screen.leave();
    drop(listeners);
    match ended.and_then(|ended| restored.map(|()| ended)) {
        // Every write fails once the terminal is gone; that is no error of ours.
        Err(error) if gone(&error) => Ok(Ended::TerminalGone),
        other => other,
    }
}

/// Whether the terminal refuses because it is gone: writes fail so, its size is
/// not to be had, `/dev/tty` cannot be opened.
fn gone(error: &io::Error) -> bool {
    use rustix::io::Errno;
    error.kind() == io::ErrorKind::BrokenPipe
        || Errno::from_io_error(error)
            .is_some_and(|errno| [Errno::IO, Errno::NXIO, Errno::NOTTY].contains(&errno))
}

struct Loop<'a> {
    outlet: &'a Arc<Outlet>,
    screen: &'a mut Screen,
    /// When to look whether to draw.
    due: Option<Instant>,
    /// When that was done last.
    drawn: Option<Instant>,
}

impl Loop<'_> {
    fn run(mut self, ui: &mut impl Ui) -> io::Result<Ended> {
        self.resized(ui)?;
        loop {
            // Before the next event: a flood of them must not put it off.
            if self.due.is_some_and(|due| due <= Instant::now()) {
                self.due = None;
                if ui.refresh() {
                    self.screen.draw(ui)?;
                }
                self.drawn = Some(Instant::now());
            }
            let alarm = ui.alarm();
            let until = [self.due, alarm].into_iter().flatten().min();
            match self.outlet.inbox().take(until) {
                None if alarm.is_some_and(|alarm| alarm <= Instant::now()) => {
                    ui.ring();
                    self.draw_within(ui.pace());
                }
                None => {}
                Some(Event::Source(event)) => {
                    ui.source(event);
                    self.draw_within(ui.pace());
                }
                Some(Event::Wake) => {
                    ui.wake();
                    self.draw_within(KEY_PACE);
                }
                Some(Event::Input(event)) => {
                    let orders = ui.input(event);
                    self.draw_within(KEY_PACE);
                    for order in orders {
                        match order {
                            Order::Quit => return Ok(Ended::Quit),
                            Order::Suspend => suspend::stop_group(),
                            Order::Copy(text) => self.screen.copy(&text)?,
                        }
                    }
                }
                Some(Event::Signal(signal)) => match signal {
                    Signal::Quit(number) => return Ok(Ended::Signal(number)),
                    Signal::TerminalGone => return Ok(Ended::TerminalGone),
                    Signal::Resize => {
                        // Even at the size of the last drawing: the terminal may have had
                        // another between, and lost what did not fit.
                        self.screen.wipe()?;
                        self.resized(ui)?;
                    }
                    Signal::Suspend => {
                        self.screen.leave()?;
                        suspend::stop();
                        self.come_back(ui)?;
                    }
                    Signal::Continue => self.come_back(ui)?,
                },
            }
        }
    }

    /// Draws at the latest `pace` after the last drawing.
    fn draw_within(&mut self, pace: Duration) {
        let now = Instant::now();
        let due = self.drawn.map_or(now, |drawn| (drawn + pace).max(now));
        self.due = Some(self.due.map_or(due, |before| before.min(due)));
    }

    fn resized(&mut self, ui: &mut impl Ui) -> io::Result<()> {
        let (columns, rows) = self.screen.size()?;
        ui.resize(columns, rows);
        self.come_back_to(ui)
    }

    fn come_back(&mut self, ui: &mut impl Ui) -> io::Result<()> {
        self.screen.return_to()?;
        self.resized(ui)
    }

    /// Draws all of it at once, changed or not.
    fn come_back_to(&mut self, ui: &mut impl Ui) -> io::Result<()> {
        ui.refresh();
        self.screen.draw(ui)?;
        self.drawn = Some(Instant::now());
        self.due = None;
        Ok(())
    }
}
