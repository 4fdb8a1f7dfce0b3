//! The table of settings: each with its name, what it says, what it may be, and how it is
//! read and written.

use toml::de::DeValue;

use super::{Coloured, Config, names};
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

/// All of them, in the order in which they are printed.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "theme",
        says: "Which colours; --theme says otherwise.",
        one_of: || value_names::<Palette>(),
        shown: |c| quoted(value_name(&c.palette)),
        set: |c, v| value(v).map(|palette| c.palette = palette),
    },
    Setting {
        name: "color",
        says: "Whether there are colours; --color says otherwise. auto: on a terminal, unless NO_COLOR is set.",
        one_of: || value_names::<Coloured>(),
        shown: |c| quoted(value_name(&c.color)),
        set: |c, v| value(v).map(|color| c.color = color),
    },
    Setting {
        name: "ascii",
        says: "Draw with ASCII characters alone, as --ascii does.",
        one_of: Vec::new,
        shown: |c| c.ascii.to_string(),
        set: |c, v| truth(v).map(|ascii| c.ascii = ascii),
    },
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
    Setting {
        name: "screen",
        says: "The first screen.",
        one_of: || Settings::SCREENS.iter().map(|place| place.name().to_owned()).collect(),
        shown: |c| quoted(c.settings.screen.name()),
        set: |c, v| {
            let known = Settings::SCREENS.map(|place| (place, place.name()));
            one_of(v, &known).map(|screen| c.settings.screen = screen)
        },
    },
    Setting {
        name: SORT,
        says: "The column that callsites are sorted by.",
        one_of: || Column::ALL.iter().map(|&column| names::column(column).to_owned()).collect(),
        shown: |c| quoted(names::column(c.settings.sort)),
        set: |c, v| one_of(v, &columns()).map(|sort| c.settings.sort = sort),
    },
    Setting {
        name: "descending",
        says: "The largest first; of names, from Z on.",
        one_of: Vec::new,
        shown: |c| c.settings.descending.to_string(),
        set: |c, v| truth(v).map(|descending| c.settings.descending = descending),
    },
    Setting {
        name: "group",
        says: "What a row of the callsites is.",
        one_of: || Grouping::ALL.iter().map(|&group| names::grouping(group).to_owned()).collect(),
        shown: |c| quoted(names::grouping(c.settings.group)),
        set: |c, v| {
            let known = Grouping::ALL.map(|group| (group, names::grouping(group)));
            one_of(v, &known).map(|group| c.settings.group = group)
        },
    },
    Setting {
        name: "metric",
        says: "What trees, flamegraphs and exports count.",
        one_of: || names::METRICS.iter().map(|(_, name)| (*name).to_owned()).collect(),
        shown: |c| {
            let is = |(metric, _): &&_| *metric == c.settings.metric;
            quoted(names::METRICS.iter().find(is).map_or("", |(_, name)| name))
        },
        set: |c, v| one_of(v, &names::METRICS).map(|metric| c.settings.metric = metric),
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
    Setting {
        name: "details-pane",
        says: "Show the details of the selected row beside the rows, on terminals of 160 columns or more.",
        one_of: Vec::new,
        shown: |c| c.settings.pane.to_string(),
        set: |c, v| truth(v).map(|pane| c.settings.pane = pane),
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

fn columns() -> Vec<(Column, &'static str)> {
    Column::ALL.iter().map(|&column| (column, names::column(column))).collect()
}

/// Those that can be chosen: names of rows are always there.
fn chosen() -> impl Iterator<Item = (Column, &'static str)> {
    columns().into_iter().filter(|(column, _)| *column != Column::Callsite)
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

fn one_of<T: Copy>(value: &DeValue<'_>, known: &[(T, &str)]) -> Result<T, String> {
    let found = match value {
        DeValue::String(text) => known.iter().find(|(_, name)| name == text),
        _ => None,
    };
    found.map(|(value, _)| *value).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(_, name)| *name).collect();
        format!("must be one of {}", names.join(", "))
    })
}

fn value<T: ValueEnum>(value: &DeValue<'_>) -> Result<T, String> {
    let found = match value {
        DeValue::String(text) => T::from_str(text, false).ok(),
        _ => None,
    };
    found.ok_or_else(|| format!("must be one of {}", value_names::<T>().join(", ")))
}

fn value_name<T: ValueEnum>(value: &T) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn value_names<T: ValueEnum>() -> Vec<String> {
    T::value_variants().iter().map(value_name).collect()
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
