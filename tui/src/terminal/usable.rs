//! Whether there is a terminal to draw on, before anything is started for it.

use std::io;

use rustix::io::Errno;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use super::input::Keyboard;

/// What can be done without a screen.
const WITHOUT: &str = "`heaptop list` prints without a screen";

/// Whether a screen can be had; else a sentence. `variable` reads the environment.
///
/// In the background of its shell this process is stopped here, as all programs are
/// that want the terminal, until it is brought to the front.
pub fn usable(variable: impl Fn(&str) -> Option<String>) -> Result<(), String> {
    match variable("TERM").as_deref() {
        Some("dumb") => {
            return Err(format!(
                "TERM is dumb, a terminal that cannot be drawn on: set it to what yours is, such as xterm-256color; {WITHOUT}"
            ));
        }
        None | Some("") => {
            return Err(format!(
                "TERM is not set, so nothing is known of this terminal: set it, such as to xterm-256color; {WITHOUT}"
            ));
        }
        Some(_) => {}
    }
    let keyboard = Keyboard::find().map_err(|_| {
        format!(
            "no keys can be read: standard input is no terminal, and this process has none of its own; {WITHOUT}"
        )
    })?;
    // Nothing changes; but who may not change it is told so by the kernel: by a
    // signal that stops it, or by an error where nobody could continue it.
    match tcgetattr(keyboard.fd())
        .and_then(|now| tcsetattr(keyboard.fd(), OptionalActions::Now, &now))
    {
        Ok(()) => Ok(()),
        Err(Errno::IO) => Err(format!(
            "this is in the background of its terminal, and no shell could bring it to the front: start it in the foreground; {WITHOUT}"
        )),
        Err(error) => Err(format!("the terminal cannot be used: {}", io::Error::from(error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_that_cannot_be_drawn_on_are_named() {
        for (term, says) in [
            (Some("dumb"), "TERM is dumb"),
            (Some(""), "TERM is not set"),
            (None, "TERM is not set"),
        ] {
            let sentence = usable(|_| term.map(str::to_owned)).unwrap_err();
            assert!(sentence.starts_with(says) && sentence.ends_with(WITHOUT), "{sentence}");
        }
    }
}
