//! `tests/browser`: flamegraphs whose functions have hostile names, in a real browser.
//!
//! ```text
//! hostile names ─► recording ─► heaptop export ─┐
//!               └► export::svg, of a difference ┴► XML parser, Chromium ─► DOM, screenshot
//! ```
//!
//! Of each picture must hold: it is well-formed XML; the browser has it whole, and its own
//! script has run; no script of a name has; and the screenshot shows frames. Each check is
//! tried on a picture first that must fail it. An argument names a directory in which
//! pictures and screenshots are left, to be looked at.

mod chromium;
mod hostile;
mod png;

use chromium::Chromium;
use heaptop::export::{Shape, svg};
use heaptop_tests::binaries;
use png::Colours;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which pixels a picture's frames have.
type IsFrame = fn([u8; 3]) -> bool;

/// Inferno's hot colours.
const HOT: IsFrame = |[r, g, b]| r >= 200 && g <= 235 && b <= 60;
/// Red for more and blue for less, of whatever strength; what is as before is nearly white.
const CHANGED: IsFrame =
    |[r, g, b]| (r == 255 && g == b && g < 245) || (b == 255 && r == g && r < 245);
/// Of a screenshot, at least this share is frames.
const LEAST_SHARE: f64 = 0.02;

fn main() {
    let kept = std::env::args_os().nth(1).map(PathBuf::from);
    let scratch = tempfile::tempdir().expect("a directory for the pictures");
    let directory = kept.as_deref().unwrap_or(scratch.path());
    if let Err(sentence) = run(directory) {
        eprintln!("tests/browser: {sentence}");
        std::process::exit(1);
    }
    if let Some(kept) = kept {
        println!("pictures and screenshots are in {}", kept.display());
    }
}

fn run(directory: &Path) -> Result<(), String> {
    std::fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let browser = Chromium::found()?;
    println!("{}", browser.version()?);
    controls(&browser, directory)?;
    let plain = directory.join("plain.svg");
    exported(directory, &plain)?;
    check(&browser, &plain, HOT)?;
    for icicle in [false, true] {
        let path = directory.join(if icicle { "icicle.svg" } else { "difference.svg" });
        let (now, before) = hostile::stacks();
        let shape = Shape { icicle, before: Some(&before) };
        let (title, subtitle) = (hostile::TARGET, hostile::NAMES[0]);
        let bytes = svg(&now, title, subtitle, "bytes", shape).map_err(|e| e.to_string())?;
        write(&path, &bytes)?;
        check(&browser, &path, CHANGED)?;
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(path, bytes).map_err(|e| format!("{}: {e}", path.display()))
}

/// What the program itself makes of a recording.
fn exported(directory: &Path, to: &Path) -> Result<(), String> {
    let recording = directory.join("hostile.heaptop");
    write(&recording, &hostile::recording())?;
    // An export replaces nothing, and this may be the second time.
    let _ = std::fs::remove_file(to);
    let output = Command::new(binaries::path("heaptop"))
        .args(["export", "--format", "svg", "-o"])
        .args([to, &recording])
        .output()
        .map_err(|e| format!("heaptop cannot be started: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("heaptop export: {}", String::from_utf8_lossy(&output.stderr)))
}

/// All that must hold of the picture at `path`.
fn check(browser: &Chromium, path: &Path, is_frame: IsFrame) -> Result<(), String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let wrong = |why: String| format!("{name}: {why}");
    let frames = well_formed(path).map_err(wrong)?;
    let dom = browser.dom(path).map_err(wrong)?;
    let root = root(&dom).ok_or_else(|| wrong(format!("no picture is shown: {dom:.200}")))?;
    if is_owned(root) {
        return Err(wrong("a name was run as a script".into()));
    }
    if root.contains(" width=") {
        return Err(wrong("the picture's own script did not run".into()));
    }
    let shown = dom.matches("<title>").count();
    if shown != frames || shown < hostile::NAMES.len() {
        return Err(wrong(format!("{shown} frames are shown, and {frames} are in the file")));
    }
    let colours = browser.screenshot(path).map_err(wrong)?;
    let share = colours.share(is_frame);
    if share < LEAST_SHARE {
        return Err(wrong(format!("frames are {:.1} % of what is seen", share * 100.0)));
    }
    println!(
        "{name}: {shown} frames, on {:.0} % of the screenshot; no name was run",
        share * 100.0
    );
    Ok(())
}

/// The frames of a picture, which is parsed whole.
fn well_formed(path: &Path) -> Result<usize, String> {
    use quick_xml::events::Event;
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    if let Some(control) = text.chars().find(|c| c.is_control() && !"\n\r\t".contains(*c)) {
        return Err(format!("there is a {control:?} in it"));
    }
    let mut reader = quick_xml::Reader::from_str(&text);
    let (mut depth, mut frames) = (0usize, 0);
    loop {
        match reader.read_event().map_err(|e| format!("it is no XML: {e}"))? {
            Event::Start(element) => {
                depth += 1;
                frames += usize::from(element.name().as_ref() == b"title");
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Eof if depth == 0 => return Ok(frames),
            Event::Eof => return Err(format!("it is no XML: {depth} elements are not closed")),
            _ => {}
        }
    }
}

/// The tag of the picture itself.
fn root(dom: &str) -> Option<&str> {
    let from = dom.find("<svg")?;
    Some(&dom[from..from + dom[from..].find('>')?])
}

/// Whether a script of [`hostile`] has run: it marks the picture.
fn is_owned(root: &str) -> bool {
    root.contains(hostile::MARK)
}

/// Checks that cannot fail prove nothing.
fn controls(browser: &Chromium, directory: &Path) -> Result<(), String> {
    let picture = |inside: &str| {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"99\" height=\"99\">{inside}</svg>"
        )
    };
    let path = directory.join("control.svg");
    let shown = |inside: &str| {
        write(&path, picture(inside).as_bytes())?;
        browser.dom(&path)
    };
    let script = format!("<script>{}</script>", hostile::PAYLOAD);
    if !root(&shown(&script)?).is_some_and(is_owned) {
        return Err("a script that runs is not noticed: is the browser's scripting off?".into());
    }
    if root(&shown("<text>&lt;script&gt;</text>")?).is_none_or(is_owned) {
        return Err("a text is taken for a script".into());
    }
    let colours = browser.screenshot(&path)?;
    if [HOT, CHANGED].iter().any(|is_frame| colours.share(*is_frame) > 0.0) {
        return Err("frames are seen in an empty picture".into());
    }
    write(&path, b"<svg><text>a < b</text></svg>")?;
    if well_formed(&path).is_ok() {
        return Err("what is no XML is taken for it".into());
    }
    let seen = Colours::read(b"no screenshot");
    if seen.is_ok() {
        return Err("what is no screenshot is taken for one".into());
    }
    std::fs::remove_file(&path).map_err(|e| e.to_string())
}
