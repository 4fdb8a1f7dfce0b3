//! The program's own counters, as `heaptop-demo --proof` prints them: a line that
//! says how many, and one JSON object a function.

use std::io::{BufRead, BufReader};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::source::demo::Demo;

/// What is known of one function without sampling.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Truth {
    /// Its name.
    pub function: String,
    /// Bytes that live.
    pub in_use_bytes: u64,
    /// Blocks that live.
    pub in_use_objects: u64,
    /// Bytes ever allocated.
    pub allocated_bytes: u64,
    /// Blocks ever allocated.
    pub allocated_objects: u64,
    /// Promoted share in bytes, by the exact run; `None` where nothing was born young.
    #[serde(skip)]
    pub promoted: Option<f64>,
}

impl Truth {
    /// What the program counted.
    pub(super) fn counters(&self) -> (&str, [u64; 4]) {
        let counted =
            [self.in_use_bytes, self.in_use_objects, self.allocated_bytes, self.allocated_objects];
        (&self.function, counted)
    }
}

#[derive(Deserialize)]
struct Head {
    functions: usize,
}

/// Waits until the demo has done its work and reads what it counted.
pub(super) fn of(demo: &mut Demo, patience: Duration) -> Result<Vec<Truth>, String> {
    let Some(output) = demo.take_output() else {
        return Err("the demo's output is not to be had".into());
    };
    let (send, lines) = channel();
    // It ends with the demo at the latest.
    std::thread::Builder::new()
        .name("heaptop-truth".into())
        .spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        })
        .map_err(|e| format!("cannot start a thread: {e}"))?;
    let end = Instant::now() + patience;
    parse(|| {
        lines.recv_timeout(end.saturating_duration_since(Instant::now())).map_err(|why| match why {
            RecvTimeoutError::Timeout => {
                format!(
                    "the demo is not done within {} s: the machine is too busy",
                    patience.as_secs()
                )
            }
            RecvTimeoutError::Disconnected => "the demo ended before it was done".into(),
        })
    })
}

fn parse(mut next: impl FnMut() -> Result<String, String>) -> Result<Vec<Truth>, String> {
    let strange = |line: &str| {
        format!("the demo says {line:?}, and no counters: build it and heaptop of the same source")
    };
    let line = next()?;
    let head: Head = serde_json::from_str(&line).map_err(|_| strange(&line))?;
    (0..head.functions)
        .map(|_| {
            let line = next()?;
            serde_json::from_str(&line).map_err(|_| strange(&line))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<Truth>, String> {
        let mut lines = text.lines();
        parse(|| lines.next().map(str::to_owned).ok_or_else(|| "it ended".into()))
    }

    #[test]
    fn counters_are_read_and_nonsense_is_a_sentence() {
        let one = r#"{"function":"f","allocated_bytes":9,"allocated_objects":3,"freed_bytes":4,"freed_objects":1,"in_use_bytes":5,"in_use_objects":2,"promoted_expected_bytes":1}"#;
        let truths = parsed(&format!("{{\"truth\":\"proof\",\"functions\":1}}\n{one}")).unwrap();
        assert_eq!(truths[0].counters(), ("f", [5, 2, 9, 3]));
        assert_eq!(parsed("{\"functions\":2}\n").unwrap_err(), "it ended");
        assert!(parsed("hello").unwrap_err().contains("says \"hello\", and no counters"));
    }
}
