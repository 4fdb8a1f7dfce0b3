//! Chromium without a window: what it makes of a file.

use super::png::Colours;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use heaptop_tests::deadline::{Deadline, poll};

/// It may take so long for one page.
const PATIENCE: Duration = Duration::from_secs(60);
/// Of the page's own clock, after which it is looked at.
const BUDGET_MS: &str = "--virtual-time-budget=3000";

/// The program.
pub struct Chromium {
    path: PathBuf,
}

impl Chromium {
    /// The one that `CHROMIUM` names: `tests/browser` looks for it.
    pub fn found() -> Result<Self, String> {
        let path = std::env::var_os("CHROMIUM").map(PathBuf::from);
        let path = path.ok_or("no browser is named: start it by tests/browser")?;
        if path.is_file() {
            return Ok(Self { path });
        }
        Err(format!("CHROMIUM is {}, and that is no file", path.display()))
    }

    /// Its name and version.
    pub fn version(&self) -> Result<String, String> {
        let output = Command::new(&self.path).arg("--version").output();
        let output = output.map_err(|e| format!("{}: {e}", self.path.display()))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// The document at `path`, as text, after its scripts have run.
    pub fn dom(&self, path: &Path) -> Result<String, String> {
        let output = self.run(path, &["--dump-dom"])?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// What is seen of it; the picture is left beside it, as `.png`.
    pub fn screenshot(&self, path: &Path) -> Result<Colours, String> {
        let to = path.with_extension("png");
        let mut argument = std::ffi::OsString::from("--screenshot=");
        argument.push(&to);
        let output = self.run(path, &[&argument.to_string_lossy(), "--hide-scrollbars"])?;
        let bytes = std::fs::read(&to).map_err(|e| {
            format!("no screenshot: {e}; {}", String::from_utf8_lossy(&output.stderr))
        })?;
        Colours::read(&bytes)
    }

    fn run(&self, path: &Path, arguments: &[&str]) -> Result<Output, String> {
        let profile = tempfile::tempdir().map_err(|e| e.to_string())?;
        let path = path.canonicalize().map_err(|e| e.to_string())?;
        let mut data = std::ffi::OsString::from("--user-data-dir=");
        data.push(profile.path());
        let files = ["dom", "errors"].map(|name| profile.path().join(name));
        let [stdout, stderr] = [&files[0], &files[1]]
            .map(|path| std::fs::File::create(path).expect("a file in a new directory"));
        let mut child = Command::new(&self.path)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update"])
            .args(["--disable-sync", "--disable-extensions", "--window-size=1200,200", BUDGET_MS])
            .arg(data)
            .args(arguments)
            .arg(format!("file://{}", path.display()))
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .map_err(|e| format!("{} cannot be started: {e}", self.path.display()))?;
        let status = poll(Deadline::after(PATIENCE), || child.try_wait().ok().flatten());
        let Some(status) = status else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("Chromium did not end within {} s", PATIENCE.as_secs()));
        };
        let [stdout, stderr] = files.map(|path| std::fs::read(path).unwrap_or_default());
        if status.success() {
            return Ok(Output { status, stdout, stderr });
        }
        Err(format!("Chromium has failed, {status}: {}", String::from_utf8_lossy(&stderr)))
    }
}
