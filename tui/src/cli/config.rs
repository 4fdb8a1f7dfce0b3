//! `heaptop config`, and how a screen is wanted: the configuration, what the command line
//! says otherwise, and what the terminal shows.

use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::{Arguments, Failure, say};
use crate::app::Options;
use crate::config::{self, Coloured, Config, Found};
use crate::terminal::Setup;
use crate::view::theme::{Depth, Theme};

/// Checks the configuration, or prints the default one.
///
/// It is $XDG_CONFIG_HOME/heaptop/config.toml or ~/.config/heaptop/config.toml, or the file
/// that --config names. A mistake in it is told with its line, and costs no other line.
#[derive(Debug, Args)]
pub(super) struct Command {
    /// Print all settings and keys with their defaults, commented.
    #[arg(long)]
    print: bool,
}

impl Command {
    pub(super) fn run(&self, path: Option<&Path>, named: Option<Found>) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        if self.print {
            out.write_all(config::print::defaults().as_bytes())?;
            return Ok(out.flush()?);
        }
        let found = named.unwrap_or_else(own);
        for trouble in &found.troubles {
            say(trouble);
        }
        if !found.troubles.is_empty() {
            return Err(Failure::Status(2));
        }
        let path = path.map(Path::to_owned).or_else(|| config::default_path(variable));
        match path {
            Some(path) if path.exists() => writeln!(out, "{}: all of it holds", path.display())?,
            Some(path) => writeln!(
                out,
                "{} is not there, and the defaults hold: heaptop config --print > {0} makes it",
                path.display()
            )?,
            None => {
                writeln!(out, "no home is known, and the defaults hold: --config names a file")?
            }
        }
        Ok(out.flush()?)
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A configuration that was named: it must be there.
pub(super) fn named(path: &Path) -> Result<Found, Failure> {
    config::read(path).map_err(|error| {
        let path = path.display();
        Failure::Usage(format!(
            "{path}: {error}: name a configuration, such as heaptop config --print makes"
        ))
    })
}

/// The user's own: it need not be there, and if it cannot be read that is told.
fn own() -> Found {
    let defaults = |troubles| Found { config: Config::default(), troubles };
    let Some(path) = config::default_path(variable) else { return defaults(Vec::new()) };
    config::read(&path).unwrap_or_else(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => defaults(Vec::new()),
        _ => defaults(vec![format!("{}: {error}; the defaults hold", path.display())]),
    })
}

/// How a screen is wanted.
pub(super) fn setup(arguments: &Arguments, named: Option<Found>) -> Setup {
    let Found { config, troubles } = named.unwrap_or_else(own);
    for trouble in &troubles {
        say(trouble);
    }
    let color = arguments.color.unwrap_or(config.color);
    let theme = if colored(color, io::stdout().is_terminal(), variable) {
        // What writes to the terminal looks at NO_COLOR by itself, and knows of no option.
        crossterm::style::force_color_output(true);
        Theme::new(arguments.theme.unwrap_or(config.palette), Depth::of(variable))
    } else {
        Theme::mono()
    };
    Setup {
        options: Options { theme, ascii: arguments.ascii || config.ascii },
        settings: config.settings,
        refresh: Duration::from_millis(config.refresh_ms),
        said: troubles,
        first: state(variable).is_some_and(|directory| is_first(&directory)),
    }
}

fn colored(when: Coloured, terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    match when {
        Coloured::Always => true,
        Coloured::Never => false,
        Coloured::Auto => {
            terminal && !set("NO_COLOR") && variable("TERM").as_deref() != Some("dumb")
        }
    }
}

/// Where what heaptop remembers is kept.
fn state(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let base = base.or_else(|| set("HOME").map(|home| home.join(".local/state")))?;
    Some(base.join("heaptop"))
}

/// Whether no screen was shown before; leaves a mark there. Where none can be left, nobody
/// knows, and nothing is said.
fn is_first(directory: &Path) -> bool {
    let made =
        fs::create_dir_all(directory).and_then(|()| File::create_new(directory.join("seen")));
    made.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        move |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned())
    }

    #[test]
    fn colours_follow_option_variable_and_terminal() {
        let auto = Coloured::Auto;
        assert!(colored(auto, true, with(&[("TERM", "xterm"), ("NO_COLOR", "")])));
        assert!(!colored(auto, false, with(&[("TERM", "xterm")])));
        assert!(!colored(auto, true, with(&[("NO_COLOR", "1")])));
        assert!(!colored(auto, true, with(&[("TERM", "dumb")])));
        assert!(colored(Coloured::Always, false, with(&[("NO_COLOR", "1")])));
        assert!(!colored(Coloured::Never, true, with(&[])));
    }

    #[test]
    fn the_first_time_is_once() {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("a/heaptop");
        assert!(is_first(&state));
        assert!(!is_first(&state));
        fs::write(directory.path().join("file"), "").unwrap();
        assert!(!is_first(&directory.path().join("file/heaptop")), "who cannot know says nothing");
    }

    #[test]
    fn what_is_remembered_is_where_the_specification_says() {
        let path = |pairs| state(with(pairs)).map(|path| path.display().to_string());
        assert_eq!(
            path(&[("XDG_STATE_HOME", "/s"), ("HOME", "/h")]).as_deref(),
            Some("/s/heaptop")
        );
        assert_eq!(path(&[("HOME", "/h")]).as_deref(), Some("/h/.local/state/heaptop"));
        assert_eq!(path(&[]), None);
    }
}
