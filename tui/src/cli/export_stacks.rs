//! `heaptop export --format svg|folded`: callstacks with what they count.

use std::path::Path;

use super::export::Export;
use super::load::load;
use super::{Failure, output, say};
use crate::export::{self, Format, Names, Request, Shown};
use crate::query::{self, Direction};
use crate::report::views;

/// What callstacks are written as.
#[derive(Debug, Clone, Copy)]
pub(super) enum Picture {
    /// A flamegraph.
    Svg,
    /// A line for each callstack, root first, and its number: for other tools.
    Folded,
}

/// Writes what callstacks count.
pub(super) fn run(export: &Export, picture: Picture) -> Result<(), Failure> {
    let session = load(&export.source)?;
    let when = export.moment.when(&session)?;
    super::understood(&session, &export.filter)?;
    let focus = views::focus(&session, &export.focus).map_err(Failure::Usage)?;
    let request = Request::of(
        &session,
        when,
        (&focus, Direction::Callers),
        export.moment.metric(),
        &export.filter,
        focus.iter().filter_map(|key| query::find(&session, *key)).collect(),
    );
    let format = match picture {
        Picture::Svg => Format::Svg,
        Picture::Folded => Format::Folded,
    };
    let shown = Shown { request, table: None, recording: None, columns: 0 };
    let bytes = shown.bytes(format).map_err(Failure::Usage)?;
    write(export.output.as_deref(), &shown, format, &bytes)?;
    super::sound(&export.source, session.damage())
}

fn write(
    output: Option<&Path>,
    shown: &Shown,
    format: Format,
    bytes: &[u8],
) -> Result<(), Failure> {
    if let Some(path) = output {
        return output::write(path, |out| Ok((true, out.write_all(bytes)?)));
    }
    let written = export::write_new(shown, format, &Names::within(Path::new(".")), bytes);
    let path = written.map_err(Failure::Failed)?;
    say(&format!("written: {}", path.display()));
    Ok(())
}
