//! The table of settings: each with its name, what it says, what it may be, and how it is
//! read and written.

use toml::de::DeValue;

use super::{Coloured, Config, names};
use crate::app::keys::Place;
use crate::app::leaks::PERIODS;
use crate::app::settings::Settings;
use crate::query::{Column, Grouping};
use crate::view::theme::Palette;
use clap::ValueEnum;

/// One setting.
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// What it says.
    pub says: &'static str,
    /// What may stand there; empty: what it says tells.
    pub one_of: fn() -> Vec<String>,
    /// Its value, as TOML.
    pub shown: fn(&Config) -> String,
    /// Sets it, or says what it must be.
    pub set: fn(&mut Config, &DeValue<'_>) -> Result<(), String>,
}

/// The setting that others have to agree with.
pub const SORT: &str = "sort";

/// Milliseconds between two drawings. What changes faster cannot be read, and a screen that
/// is slower seems to stand.
const REFRESH_MS: std::ops::RangeInclusive<u64> = 50..=10_000;

/// A setting that is true or false.
macro_rules! flag {
    ($name:expr, $says:literal, $($field:ident).+) => {
        Setting {
            name: $name,
            says: $says,
            one_of: Vec::new,
            shown: |c| c.$($field).+.to_string(),
            set: |c, v| truth(v).map(|truth| c.$($field).+ = truth),
        }
    };
}

/// A setting that is one of some values, each with its name.
macro_rules! choice {
    ($name:expr, $says:literal, $known:expr, $($field:ident).+) => {
        Setting {
            name: $name,
            says: $says,
            one_of: || $known.iter().map(|(_, name)| name.to_string()).collect(),
            shown: |c| {
                let known = $known;
                let name = known.iter().find(|(value, _)| *value == c.$($field).+);
                name.map_or_else(String::new, |(_, name)| quoted(name))
            },
            set: |c, v| one_of(v, &$known).map(|value| c.$($field).+ = value),
        }
    };
}

/// All of them, in the order in which they are printed.
pub const SETTINGS: &[Setting] = &[
    choice! {
        "theme", "Which colours; --theme says otherwise.",
        variants::<Palette>(), palette
    },
    choice! {
        "color", "Whether there are colours; --color says otherwise. auto: on a terminal, unless NO_COLOR is set.",
        variants::<Coloured>(), color
    },
    flag! { "ascii", "Draw with ASCII characters alone, as --ascii does.", ascii },
    Setting {
        name: "refresh",
        says: "Milliseconds between two drawings of what the target sends, from 50 to 10000. Keys are answered at once.",
        one_of: Vec::new,
        shown: |c| c.refresh_ms.to_string(),
        set: |c, v| {
            let wrong = || {
                let (least, most) = (REFRESH_MS.start(), REFRESH_MS.end());
                format!("must be a number of milliseconds from {least} to {most}")
            };
            let ms = number(v).filter(|ms| REFRESH_MS.contains(ms)).ok_or_else(wrong)?;
            c.refresh_ms = ms;
            Ok(())
        },
    },
    choice! {
        "screen", "The first screen.",
        named(&Settings::SCREENS, Place::name), settings.screen
    },
    choice! {
        SORT, "The column that callsites are sorted by.",
        named(&Column::ALL, names::column), settings.sort
    },
    flag! { "descending", "The largest first; of names, from Z on.", settings.descending },
    choice! {
        "group", "What a row of the callsites is.",
        named(&Grouping::ALL, names::grouping), settings.group
    },
    choice! {
        "metric", "What trees, flamegraphs and exports count.",
        names::METRICS, settings.metric
    },
    Setting {
        name: "columns",
        says: "The columns of the callsites, in order, behind the names. Those that find no room go from the end.",
        one_of: || chosen().map(|(_, name)| name.to_owned()).collect(),
        shown: |c| {
            let shown = c.settings.columns.iter().filter(|&&column| column != Column::Callsite);
            let names: Vec<String> = shown.map(|&c| quoted(names::column(c))).collect();
            format!("[{}]", names.join(", "))
        },
        set: set_columns,
    },
    flag! {
        "details-pane", "Show the details of the selected row beside the rows, on terminals of 160 columns or more.",
        settings.pane
    },
    Setting {
        name: "limit",
        says: "A limit of bytes in use for forecasts of growth, such as \"2G\"; \"\": none.",
        one_of: Vec::new,
        shown: |c| quoted(c.settings.limit.map_or_else(String::new, |limit| limit.to_string())),
        set: |c, v| {
            let wrong = || "must be text with a size in it, such as \"2G\"".to_owned();
            let DeValue::String(text) = v else { return Err(wrong()) };
            c.settings.limit = match text.trim() {
                "" => None,
                size => Some(crate::cli::bytes(size).map_err(|_| wrong())?),
            };
            Ok(())
        },
    },
    Setting {
        name: "automatic-marks",
        says: "Minutes between marks that are made by the clock; 0: none.",
        one_of: || PERIODS.iter().map(u64::to_string).collect(),
        shown: |c| c.settings.marks_minutes.to_string(),
        set: |c, v| {
            let wrong = || format!("must be one of {}", PERIODS.map(|p| p.to_string()).join(", "));
            let minutes = number(v).filter(|n| PERIODS.contains(n)).ok_or_else(wrong)?;
            c.settings.marks_minutes = minutes;
            Ok(())
        },
    },
    Setting {
        name: "export-directory",
        says: "The directory that exports go to unless another is typed; ~ is your home; \"\": the working directory.",
        one_of: Vec::new,
        shown: |c| quoted(&c.settings.export_directory),
        set: |c, v| {
            let DeValue::String(text) = v else {
                return Err("must be text with a path in it".into());
            };
            text.trim().clone_into(&mut c.settings.export_directory);
            Ok(())
        },
    },
];

/// Values with their names.
fn named<T: Copy>(values: &[T], name: impl Fn(T) -> &'static str) -> Vec<(T, &'static str)> {
    values.iter().map(|&value| (value, name(value))).collect()
}

/// The same of what the command line takes too.
fn variants<T: ValueEnum + Copy>() -> Vec<(T, String)> {
    let name = |value: &T| Some((*value, value.to_possible_value()?.get_name().to_owned()));
    T::value_variants().iter().filter_map(name).collect()
}

/// Those that can be chosen: names of rows are always there.
fn chosen() -> impl Iterator<Item = (Column, &'static str)> {
    named(&Column::ALL, names::column).into_iter().filter(|(column, _)| *column != Column::Callsite)
}

fn set_columns(config: &mut Config, value: &DeValue<'_>) -> Result<(), String> {
    let DeValue::Array(list) = value else {
        return Err("must be a list of columns".into());
    };
    let known: Vec<_> = chosen().collect();
    let mut columns = vec![Column::Callsite];
    for value in list {
        let column =
            one_of(value.get_ref(), &known).map_err(|why| format!("has a column that {why}"))?;
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    config.settings.columns = columns;
    Ok(())
}

fn one_of<T: Copy>(value: &DeValue<'_>, known: &[(T, impl AsRef<str>)]) -> Result<T, String> {
    let found = match value {
        DeValue::String(text) => known.iter().find(|(_, name)| name.as_ref() == text),
        _ => None,
    };
    found.map(|(value, _)| *value).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(_, name)| name.as_ref()).collect();
        format!("must be one of {}", names.join(", "))
    })
}

fn truth(value: &DeValue<'_>) -> Result<bool, String> {
    match value {
        DeValue::Boolean(truth) => Ok(*truth),
        _ => Err("must be true or false".into()),
    }
}

fn number(value: &DeValue<'_>) -> Option<u64> {
    match value {
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    }
}

/// As TOML writes text. What is written has no quotes of both kinds in it.
pub fn quoted(text: impl AsRef<str>) -> String {
    let text = text.as_ref();
    let quote = if text.contains(['"', '\\']) { '\'' } else { '"' };
    format!("{quote}{text}{quote}")
}
