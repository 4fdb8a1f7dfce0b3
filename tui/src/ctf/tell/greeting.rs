//! What a trace says of itself, in heaptop's words.

use crate::ctf::info::Info;
use heaptop_protocol::VERSION;
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::message::{AgentKind, Hello, MAGIC};

/// OCaml's own minor heap, in words, where a trace does not say.
const NURSERY_WORDS: u64 = 256 << 10;
/// Largest object that is born in the minor heap, in words with its header.
const MOST_YOUNG_WORDS: u64 = 257;
/// Frames of a callstack that are told: as many as a session keeps.
pub(super) const DEPTH: usize = 512;
/// From this share on an interval's rounding is told.
const TOLD_ERROR: f64 = 0.01;
/// Context of the traces that heaptop writes of native programs: blocks without headers.
pub(in crate::ctf) const NATIVE: &str = "heaptop: blocks have no header";

/// A trace's measures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measures {
    pub word_bytes: u64,
    /// Words of an object's header.
    pub header: u64,
    pub interval: Interval,
    /// Bytes of allocation that a sample stands for.
    pub bytes_per_sample: f64,
}

impl Measures {
    /// λ is of words, headers included; a session's R is of bytes. The R at which a word
    /// is met with probability λ: (1 − 1/R)^bytes = 1 − λ, in whole bytes.
    pub fn new(info: &Info) -> Self {
        let word_bytes = u64::from(info.word_size) / 8;
        let exact = interval_bytes(info);
        let rounded = exact.round().clamp(1.0, f64::from(u32::MAX)) as u64;
        Self {
            word_bytes,
            header: u64::from(info.context != NATIVE.as_bytes()),
            interval: Interval::new(rounded).unwrap_or(Interval::EXACT),
            bytes_per_sample: word_bytes as f64 / info.sample_rate,
        }
    }
}

fn interval_bytes(info: &Info) -> f64 {
    let bytes = f64::from(info.word_size) / 8.0;
    -1.0 / ((-info.sample_rate).ln_1p() / bytes).exp_m1()
}

/// The greeting.
pub(super) fn hello(info: &Info, measures: &Measures) -> Hello {
    let words = parameter(info, "s").filter(|words| *words > 0).unwrap_or(NURSERY_WORDS);
    let executable = String::from_utf8_lossy(&info.executable);
    let name = executable.rsplit('/').next().filter(|name| !name.is_empty());
    Hello {
        magic: MAGIC,
        version: VERSION,
        agent_version: format!("memtrace, format {}", info.version),
        kind: AgentKind::Ocaml,
        name: name.unwrap_or("(no name)").to_owned(),
        pid: u32::try_from(info.pid).unwrap_or(0),
        uptime_ns: 0,
        started_unix_ns: u64::try_from(info.start_us).unwrap_or(0).saturating_mul(1000),
        nursery_bytes: words.saturating_mul(measures.word_bytes),
        phase_bytes: 0,
        max_young_bytes: MOST_YOUNG_WORDS * measures.word_bytes,
        track: heaptop_protocol::message::Track::All,
        depth: DEPTH as u32,
        memory_bound_bytes: 0,
        notices: notices(info, measures),
    }
}

fn notices(info: &Info, measures: &Measures) -> Vec<String> {
    let mut notices = Vec::new();
    let (exact, kept) = (interval_bytes(info), f64::from(measures.interval.bytes()));
    let off = (kept / exact - 1.0).abs();
    if off > TOLD_ERROR {
        notices.push(format!(
            "the trace samples 1 word in {:.3}: weights are of 1 byte in {kept}, which is {:.0} % off",
            1.0 / info.sample_rate,
            off * 100.0
        ));
    }
    notices
}

/// A setting of OCaml's runtime: `s=262144` is one.
fn parameter(info: &Info, name: &str) -> Option<u64> {
    let parameters = std::str::from_utf8(&info.parameters).ok()?;
    let value = parameters.split(',').find_map(|one| one.strip_prefix(name)?.strip_prefix('='))?;
    value.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(sample_rate: f64, parameters: &str) -> Info {
        Info {
            start_us: 1_000_000,
            sample_rate,
            word_size: 64,
            executable: b"/usr/bin/leak.exe".to_vec(),
            host: Vec::new(),
            parameters: parameters.into(),
            pid: 17,
            context: Vec::new(),
            version: 2,
        }
    }

    #[test]
    fn the_interval_meets_words_as_often_as_the_trace() {
        for (rate, bytes) in [(1.0, 1), (0.01, 796), (1e-3, 7_996), (1e-6, 7_999_997)] {
            let r = Measures::new(&info(rate, "")).interval;
            assert!(r.bytes().abs_diff(bytes) <= 1, "{rate}: {r:?}");
            // A pair with its header: three words.
            let (p, truth) = (r.inclusion(24), 1.0 - (1.0 - rate).powi(3));
            assert!((p / truth - 1.0).abs() < 1e-3, "{rate}: {p} is not {truth}");
        }
        assert_eq!(Measures::new(&info(1.0, "")).interval, Interval::EXACT);
        assert_eq!(Measures::new(&info(1e-300, "")).interval.bytes(), u32::MAX);
    }

    #[test]
    fn what_is_rounded_much_is_told() {
        let told = |rate| {
            let info = info(rate, "");
            hello(&info, &Measures::new(&info)).notices
        };
        assert!(told(1.0).is_empty() && told(0.01).is_empty());
        assert!(told(0.99)[0].ends_with("% off"), "{:?}", told(0.99));
    }

    #[test]
    fn the_nursery_is_the_runtimes() {
        let hello = |parameters| {
            let info = info(0.01, parameters);
            hello(&info, &Measures::new(&info))
        };
        assert_eq!(hello("a=2,s=32768,t=0").nursery_bytes, 256 << 10);
        for none in ["", "s=", "s=0", "ss=1", "x"] {
            assert_eq!(hello(none).nursery_bytes, 2 << 20, "{none}");
        }
        assert_eq!(hello("s=18446744073709551615").nursery_bytes, u64::MAX);
        assert_eq!((hello("").name.as_str(), hello("").pid), ("leak.exe", 17));
    }
}
