//! `heaptop man`: the manual page, in roff.
//!
//! Nothing is written here that stands elsewhere: commands come from the command line, keys
//! from their table, signs from the legend, settings from theirs.

use std::io::Write;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};

use super::Failure;
use crate::app::keymap;
use crate::app::keys::{BINDINGS, Binding, LEGEND, SCREENS, TABS};
use crate::config::{self, Config};
use crate::query::filter::PREDICATES;

/// Writes the page.
pub(super) fn print(command: &Command, out: &mut impl Write) -> Result<(), Failure> {
    let mut page = Vec::new();
    page_of(command, &mut page)?;
    out.write_all(&page)?;
    Ok(out.flush()?)
}

fn page_of(command: &Command, out: &mut Vec<u8>) -> Result<(), Failure> {
    let mut command = command.clone().name("heaptop").disable_help_subcommand(true);
    command.build();
    let man = Man::new(command.clone()).title("heaptop").section("1").manual("User Commands");
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    man.render_options_section(out)?;
    for part in [commands(&command), keys(), filters(), signs(), configuration(), ends()] {
        part.to_writer(out)?;
    }
    Ok(())
}

/// Each command with its own options and arguments.
fn commands(command: &Command) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["COMMANDS"]);
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        // The part behind the word "Usage: ".
        let usage = sub.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ").replace('\n', " ");
        roff.control("SS", [usage.split_whitespace().collect::<Vec<_>>().join(" ").as_str()]);
        let about = sub.get_long_about().or(sub.get_about());
        paragraphs(&mut roff, &about.map(ToString::to_string).unwrap_or_default());
        for argument in sub.get_arguments().filter(|a| !a.is_global_set() && a.get_id() != "help") {
            let names = argument.get_value_names().unwrap_or_default();
            let value = names.iter().map(clap::builder::Str::as_str).collect::<Vec<_>>().join(" ");
            let mut term = Vec::new();
            if let Some(short) = argument.get_short() {
                term.push(bold(format!("-{short}")));
                term.push(roman(if argument.get_long().is_some() { ", " } else { " " }));
            }
            if let Some(long) = argument.get_long() {
                term.push(bold(format!("--{long}")));
                term.push(roman(" "));
            }
            if argument.get_action().takes_values() {
                term.push(italic(value));
            }
            roff.control("TP", []);
            roff.text(term);
            let help = argument.get_long_help().or(argument.get_help());
            let mut help = help.map(ToString::to_string).unwrap_or_default().replace("\n\n", " ");
            let possible = argument.get_possible_values();
            let values: Vec<&str> = possible
                .iter()
                .filter(|p| !p.is_hide_set())
                .map(clap::builder::PossibleValue::get_name)
                .collect();
            if !values.is_empty() && argument.get_action().takes_values() {
                help.extend([" One of: ", &values.join(", "), "."]);
            }
            let defaults: Vec<_> =
                argument.get_default_values().iter().map(|d| d.to_string_lossy()).collect();
            if !defaults.is_empty() && argument.get_action().takes_values() {
                help.extend([" Default: ", &defaults.join(" "), "."]);
            }
            roff.text([roman(help.trim())]);
        }
    }
    roff
}

fn keys() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["KEYS"]);
    let screens: Vec<String> = TABS.iter().map(|tab| format!("{} {}", tab.key, tab.name)).collect();
    roff.text([roman(format!(
        "The screens are {}. Keys work on all screens that have what they act on; others say where.",
        screens.join(", ")
    ))]);
    for binding in BINDINGS {
        roff.control("TP", []);
        roff.text([bold(binding.shown)]);
        roff.text([roman(format!("{}{}", binding.says, places(binding)))]);
    }
    roff
}

fn places(binding: &Binding) -> String {
    if SCREENS.iter().all(|place| binding.places.contains(place)) {
        return String::new();
    }
    let names: Vec<&str> = binding.places.iter().map(|place| place.name()).collect();
    format!(" ({})", names.join(", "))
}

fn filters() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["FILTERS"]);
    roff.text([roman("Words with spaces between, which must all hold.")]);
    for predicate in PREDICATES {
        roff.control("TP", []);
        roff.text([bold(predicate.shown)]);
        roff.text([roman(predicate.says)]);
    }
    roff
}

fn signs() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["SIGNS"]);
    for (sign, says) in LEGEND {
        roff.control("TP", []);
        roff.text([bold(*sign)]);
        roff.text([roman(*says)]);
    }
    roff
}

fn configuration() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["CONFIGURATION"]);
    roff.text([
        roman("The file "),
        italic("$XDG_CONFIG_HOME/heaptop/config.toml"),
        roman(" or "),
        italic("~/.config/heaptop/config.toml"),
        roman(" is TOML. "),
        bold("heaptop config --print"),
        roman(" writes it with all defaults, commented. A mistake in it is told with its line, and costs no other line."),
    ]);
    let defaults = Config::default();
    for setting in config::settings::SETTINGS {
        roff.control("TP", []);
        roff.text([bold(setting.name), roman(format!(" = {}", (setting.shown)(&defaults)))]);
        let values = (setting.one_of)();
        let values = if values.is_empty() {
            String::new()
        } else {
            format!(" One of: {}.", values.join(", "))
        };
        roff.text([roman(format!("{}{values}", setting.says))]);
    }
    let names: Vec<String> = keymap::names().into_iter().map(|(name, ..)| name).collect();
    roff.control("TP", []);
    roff.text([bold(format!("[{}]", config::KEYS))]);
    roff.text([roman(format!(
        "Other keys, such as pause = [\"Space\", \"v\"]. Names are: {}.",
        names.join(", ")
    ))]);
    roff
}

fn ends() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    for (status, says) in [
        ("0", "Done."),
        ("1", "The target failed."),
        (
            "2",
            "Usage, input that cannot be used, or a file of which a part is damaged: what could be read is printed or written, and a sentence on standard error says what could not.",
        ),
        ("128 + n", "Ended by signal n."),
    ] {
        roff.control("TP", []);
        roff.text([bold(status)]);
        roff.text([roman(says)]);
    }
    roff
}

fn paragraphs(roff: &mut Roff, text: &str) {
    for (at, paragraph) in text.split("\n\n").enumerate() {
        if at > 0 {
            roff.control("PP", []);
        }
        roff.text([roman(paragraph.split_whitespace().collect::<Vec<_>>().join(" "))]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::process::{Command as Process, Stdio};

    fn page() -> String {
        let mut page = Vec::new();
        print(&super::super::Arguments::command(), &mut page).unwrap();
        String::from_utf8(page).unwrap()
    }

    #[test]
    fn all_commands_keys_signs_and_settings_are_in_it() {
        // As roff writes what would else be a command of its own.
        let page = page().replace("\\-", "-").replace("\\*(Aq", "'").replace("\\\\", "\\");
        for command in super::super::Arguments::command().get_subcommands() {
            assert!(page.contains(&format!("heaptop {}", command.get_name())), "{command:?}");
        }
        for binding in BINDINGS {
            assert!(page.contains(binding.says), "{}", binding.says);
        }
        for predicate in PREDICATES {
            assert!(page.contains(predicate.says), "{}", predicate.shown);
        }
        for (sign, says) in LEGEND {
            assert!(page.contains(says), "{sign} {says}");
        }
        for setting in config::settings::SETTINGS {
            assert!(page.contains(setting.says), "{}", setting.name);
        }
        for (name, ..) in keymap::names() {
            assert!(page.contains(&name), "{name}");
        }
        assert!(page.contains("--duration") && page.contains("PID|NAME"), "{page}");
    }

    /// Where there is a groff: it renders, without a word on standard error.
    #[test]
    fn it_renders_without_warnings() {
        let groff = Process::new("groff")
            .args(["-man", "-ww", "-Tutf8", "-k", "-P-c", "-P-b", "-P-u", "-P-o"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut groff) = groff else { return };
        groff.stdin.take().unwrap().write_all(page().as_bytes()).unwrap();
        let done = groff.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        // A groff without its macros, or without what -k needs, says nothing of the page.
        let lacks = ["cannot find", "can't find", "couldn't exec", "No such file"];
        if lacks.iter().any(|lack| said.contains(lack)) {
            return;
        }
        assert_eq!(said, "");
        // Some terminals' bold is a letter over itself.
        let mut shown = String::new();
        for c in String::from_utf8_lossy(&done.stdout).chars() {
            if c == '\u{8}' {
                shown.pop();
            } else {
                shown.push(c);
            }
        }
        assert!(done.status.success() && shown.contains("CONFIGURATION"), "{shown}");
    }
}
