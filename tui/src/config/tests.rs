use super::*;
use crate::app::keys::{Action, Place};
use crate::query::Metric;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

fn press(config: &Config, c: char, place: Place) -> Option<Action> {
    let key = KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE);
    config.settings.keymap.action(&key, place)
}

/// Takes the first # and the space behind it from each line.
fn uncommented(text: &str) -> String {
    let line = |line: &str| {
        let line = line.strip_prefix('#').unwrap_or(line);
        line.strip_prefix(' ').unwrap_or(line).to_owned() + "\n"
    };
    text.lines().map(line).collect()
}

#[test]
fn what_is_printed_is_the_default_commented_or_not() {
    let printed = print::defaults();
    assert_eq!(parse(&printed), (Config::default(), Vec::new()));
    let uncommented = uncommented(&printed);
    assert_eq!(parse(&uncommented), (Config::default(), Vec::new()));
    // It is the settings that were read, not nothing.
    let (settings, keys) = uncommented.split_once("\n[keys]\n").unwrap();
    for setting in settings::SETTINGS {
        let line = format!("\n{} = ", setting.name);
        assert_eq!(settings.matches(&line).count(), 1, "{line}");
    }
    for (name, ..) in keymap::names() {
        assert_eq!(keys.matches(&format!("\n{name} = [")).count(), 1, "{name}");
    }
    assert!(printed.lines().all(|line| line.is_empty() || line.starts_with('#')));
    assert!(printed.lines().all(|line| line.chars().count() <= 98 || !line.starts_with("##")));
}

#[test]
fn each_line_of_the_uncommented_default_is_read() {
    let uncommented = uncommented(&print::defaults());
    let lines: Vec<&str> = uncommented.lines().collect();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.contains(" = ")) {
        let mut broken = lines.clone();
        let wrong = format!("{} = 1979-05-27", line.split(" = ").next().unwrap());
        broken[at] = &wrong;
        let (config, troubles) = parse(&broken.join("\n"));
        assert_eq!(config, Config::default(), "{wrong}");
        let at_lines: Vec<usize> = troubles.iter().map(|trouble| trouble.line).collect();
        assert_eq!(at_lines, [at + 1], "{wrong}: {troubles:?}");
    }
}

#[test]
fn settings_hold() {
    let (config, troubles) = parse(
        r#"
        theme = "colour-blind"
        color = "always"
        ascii = true
        refresh = 1_000
        screen = "leaks"
        sort = "growth"
        descending = false
        group = "crate"
        metric = "allocated-bytes"
        columns = ["growth", "in-use-bytes", "growth"]
        limit = "2G"
        automatic-marks = 15
        export-directory = " ~/heap "
        [keys]
        pause = ["v", "Space"]
        toggle-column = "v"
        "#,
    );
    assert_eq!(troubles, []);
    assert_eq!(config.palette, Palette::ColourBlind);
    assert_eq!((config.color, config.ascii, config.refresh_ms), (Coloured::Always, true, 1000));
    let s = &config.settings;
    assert_eq!((s.screen, s.sort, s.descending), (Place::Leaks, Column::Growth, false));
    assert_eq!((s.group, s.metric), (Grouping::Crate, Metric::AllocatedBytes));
    assert_eq!(s.columns, [Column::Callsite, Column::Growth, Column::InUseBytes]);
    assert_eq!((s.limit, s.marks_minutes), (Some(2 << 30), 15));
    assert_eq!(s.export_directory, "~/heap");
    for c in ['v', ' '] {
        assert_eq!(press(&config, c, Place::Callsites), Some(Action::Pause));
    }
    assert_eq!(press(&config, 'v', Place::Columns), Some(Action::ToggleColumn));
    assert_eq!(press(&config, ' ', Place::Columns), None);
}

#[test]
fn a_mistake_costs_its_line_and_is_told_with_what_to_do() {
    for (wrong, says) in [
        (
            "theme = \"drak\"",
            "theme must be one of dark, light, colour-blind, mono; \"dark\" holds",
        ),
        ("theme = 3", "theme must be one of dark"),
        ("themes = \"dark\"", "there is no setting “themes”; “theme” is the name of one"),
        ("zoom = 1", "there is no setting “zoom”: heaptop config --print has all"),
        ("refresh = 1", "refresh must be a number of milliseconds from 50 to 10000; 100 holds"),
        ("refresh = -100", "refresh must be a number"),
        ("descending = 1", "descending must be true or false"),
        ("columns = \"growth\"", "columns must be a list of columns"),
        ("columns = [\"grow\"]", "columns has a column that must be one of in-use-bytes"),
        ("limit = \"much\"", "limit must be text with a size in it"),
        ("limit = 5", "limit must be text"),
        ("export-directory = 5", "export-directory must be text"),
        ("automatic-marks = 7", "automatic-marks must be one of 0, 1, 5, 15, 60"),
        ("screen = \"source\"", "screen must be one of callsites, flame"),
        ("sort = \"cum\"", "cum is known of functions alone"),
        ("theme = dark", "this is no TOML, and is passed over"),
        ("theme = ", "this is no TOML, and is passed over"),
        ("= 3", "this is no TOML, and is passed over"),
    ] {
        let text =
            format!("ascii = true\n\n{wrong}\nmetric = \"in-use-objects\"\n[keys]\ncopy = \"Y\"\n");
        let (config, troubles) = parse(&text);
        let [trouble] = &troubles[..] else { panic!("{wrong}: {troubles:?}") };
        assert_eq!(trouble.line, 3, "{wrong}: {trouble}");
        assert!(trouble.what.contains(says), "{wrong}: {trouble}");
        assert!(config.ascii, "{wrong}");
        assert_eq!(config.settings.metric, Metric::InUseObjects, "{wrong}");
        assert_eq!(press(&config, 'Y', Place::Callsites), Some(Action::Copy), "{wrong}");
    }
    let (config, troubles) = parse("ascii = true\nkeys = 1\n");
    assert!(config.ascii && troubles[0].to_string() == "line 2: keys must be a table: [keys]");
}

#[test]
fn wrong_keys_are_told_and_the_others_hold() {
    for (wrong, says) in [
        ("paus = [\"v\"]", "no key does “paus”; “pause” is the name of one"),
        ("pause = [\"Ctrl-V\"]", "pause: “Ctrl-V” is no key: write one character, ^X"),
        ("pause = [3]", "pause: keys are text"),
        ("pause = 3", "pause: keys are text"),
        ("pause = [\"q\"]", "pause: q means “quit; the target goes on” on callsites already"),
        ("quit = [\"^C\"]", "quit: ^C means “quit” on callsites already"),
        ("pause = [\"v\", \"Y\"]", "pause: Y means “copy the selected row” on callsites already"),
    ] {
        let (config, troubles) = parse(&format!("[keys]\ncopy = \"Y\"\n{wrong}\nhelp = \"F1\"\n"));
        let [trouble] = &troubles[..] else { panic!("{wrong}: {troubles:?}") };
        assert_eq!(trouble.line, 3, "{wrong}: {trouble}");
        assert!(trouble.what.contains(says), "{wrong}: {trouble}");
        assert_eq!(press(&config, ' ', Place::Callsites), Some(Action::Pause), "{wrong}");
        assert_eq!(press(&config, 'Y', Place::Callsites), Some(Action::Copy), "{wrong}");
        assert_eq!(press(&config, '?', Place::Callsites), None, "{wrong}");
    }
}

#[test]
fn the_path_is_where_the_specification_says() {
    let path = |config: Option<&str>, home: Option<&str>| {
        default_path(|name| {
            match name {
                "XDG_CONFIG_HOME" => config,
                "HOME" => home,
                _ => None,
            }
            .map(str::to_owned)
        })
        .map(|path| path.display().to_string())
    };
    let there = |path: &str| Some(format!("{path}/heaptop/config.toml"));
    assert_eq!(path(Some("/c"), Some("/h")), there("/c"));
    assert_eq!(path(Some(""), Some("/h")), there("/h/.config"));
    assert_eq!(path(Some("c"), Some("/h")), there("/h/.config"));
    assert_eq!(path(None, None), None);
}

#[test]
fn what_cannot_be_read_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    assert!(read(directory.path()).unwrap_err().to_string().contains("no file"));
    let path = directory.path().join("config.toml");
    assert_eq!(read(&path).unwrap_err().kind(), std::io::ErrorKind::NotFound);
    std::fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(read(&path).unwrap_err().to_string().contains("UTF-8"));
    std::fs::write(&path, vec![b' '; LARGEST as usize + 1]).unwrap();
    assert!(read(&path).unwrap_err().to_string().contains("larger"));
    std::fs::write(&path, "ascii = true\nx = 1").unwrap();
    let found = read(&path).unwrap();
    assert!(found.config.ascii);
    let [trouble] = &found.troubles[..] else { panic!("{:?}", found.troubles) };
    assert!(trouble.starts_with(&format!("{}:2: there is no setting", path.display())));
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config {
        rng_seed: proptest::test_runner::RngSeed::Fixed(1),
        failure_persistence: None,
        ..proptest::test_runner::Config::default()
    })]
    #[test]
    fn any_text_is_read(text in "(\\PC|[\"'=\\[\\]#.,{}\n]|theme|keys|pause|\"q\"){0,40}") {
        let (config, _) = parse(&text);
        proptest::prop_assert!(config.refresh_ms >= 50);
    }
}
