//! Damaged files, recordings and traces alike: what could be read is given, one sentence on
//! standard error says what could not, and the exit code is 2. What could be set right is
//! said, and is no failure.

use heaptop_protocol::message::FromAgent;
use heaptop_protocol::recording::{
    Ended as End, InRecording, PLAIN, RAW, write_chunk, write_header,
};
use heaptop_tests::impostor;
use heaptop_tests::run::{Ended, Run};
use std::path::{Path, PathBuf};

/// A recording of a target with one callsite, a chunk for each message, and where the chunk
/// lies that has the totals.
fn recording() -> (Vec<u8>, usize) {
    let (mut file, mut totals) = (Vec::new(), 0);
    write_header(&mut file);
    let mut chunk = |frames: &[u8]| {
        let at = file.len();
        assert!(write_chunk(&mut file, RAW, PLAIN, frames.len(), frames));
        at
    };
    for message in impostor::story() {
        let at = chunk(&impostor::bytes(std::slice::from_ref(&message)));
        if matches!(message, FromAgent::Totals(_)) {
            totals = at;
        }
    }
    let mut frames = Vec::new();
    let end = End { how: "the target has exited".into(), target_lives: false };
    assert!(InRecording::from(end).write(&mut frames));
    chunk(&frames);
    (file, totals)
}

fn trace() -> Vec<u8> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/ctf");
    std::fs::read(samples.join("multidomain-530-begin.ctf")).expect("a sample")
}

fn heaptop(arguments: &[&str]) -> Ended {
    Run::of("heaptop", arguments).to_end()
}

/// What commands give of the file at `path`, one after the other.
fn all(directory: &Path, path: &Path) -> Vec<(&'static str, Ended)> {
    let file = path.to_str().expect("it is UTF-8");
    let out = |name: &str| directory.join(name).to_str().expect("it is UTF-8").to_owned();
    let [svg, ctf, sealed] = ["out.svg", "out.ctf", "out.heaptop"].map(out);
    for old in [&svg, &ctf, &sealed] {
        let _ = std::fs::remove_file(old);
    }
    vec![
        ("dump", heaptop(&["dump", file])),
        ("report", heaptop(&["report", file])),
        ("json", heaptop(&["report", file, "--format", "json"])),
        ("csv", heaptop(&["report", file, "--format", "csv"])),
        ("open", heaptop(&["open", file])),
        (
            "folded",
            heaptop(&[
                "export",
                file,
                "--format",
                "folded",
                "--metric",
                "allocated-bytes",
                "-o",
                "-",
            ]),
        ),
        (
            "svg",
            heaptop(&[
                "export",
                file,
                "--format",
                "svg",
                "--metric",
                "allocated-bytes",
                "-o",
                &svg,
            ]),
        ),
        ("ctf", heaptop(&["export", file, "--format", "ctf", "-o", &ctf])),
    ]
}

fn written(directory: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, bytes).expect("a new directory can be written to");
    path
}

#[test]
fn what_could_be_read_is_given_and_the_rest_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let (sound, totals) = recording();
    let trace = trace();
    // Behind the totals: figures are the same, and the end is not.
    let torn = &sound[..sound.len() - 5];
    let mut missing = sound.clone();
    missing[totals + 24..totals + 60].fill(0x35);
    for (name, bytes, why) in [
        ("torn.heaptop", torn, "breaks off within a chunk"),
        ("missing.heaptop", &missing[..], "a chunk's checksum does not match"),
        ("torn.ctf", &trace[..trace.len() - 1000], "it was cut"),
    ] {
        let path = written(directory.path(), name, bytes);
        for (command, ended) in all(directory.path(), &path) {
            // Without totals there is nothing to draw.
            if name == "missing.heaptop" && ["folded", "svg"].contains(&command) {
                continue;
            }
            let what = format!("{command} of {name}: {ended:?}");
            assert_eq!(ended.status.code(), Some(2), "{what}");
            assert!(ended.stderr.contains(why) && ended.stderr.contains(name), "{what}");
            let sentences =
                ended.stderr.lines().filter(|line| !line.contains("left out: ")).count();
            assert_eq!(sentences, 1, "{what}");
            assert!(["svg", "ctf"].contains(&command) || !ended.stdout.is_empty(), "{what}");
            if command == "json" {
                let json: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
                let damage = json["damage"].as_array().expect("a list");
                assert!(damage.len() == 1 && damage[0].as_str().unwrap().contains(why), "{what}");
            }
            if command == "report" {
                assert!(ended.stdout.contains("\ndamaged: "), "{what}");
            }
        }
        assert!(name == "missing.heaptop" || directory.path().join("out.svg").exists(), "{name}");
        assert!(directory.path().join("out.ctf").exists(), "{name}");
    }
}

#[test]
fn a_bit_that_was_set_right_costs_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (sound, totals) = recording();
    let path = written(directory.path(), "sound.heaptop", &sound);
    let expected = all(directory.path(), &path);
    let mut flipped = sound;
    flipped[totals + 40] ^= 0x10;
    let path = written(directory.path(), "sound.heaptop", &flipped);
    for ((command, expected), (_, ended)) in expected.into_iter().zip(all(directory.path(), &path))
    {
        assert_eq!(expected.status.code(), Some(0), "{command}: {expected:?}");
        assert_eq!(ended.status.code(), Some(0), "{command}: {ended:?}");
        assert!(ended.stderr.contains("one bit had turned over"), "{command}: {ended:?}");
        if ["csv", "folded"].contains(&command) {
            assert_eq!(ended.stdout, expected.stdout, "{command}");
        }
    }
}

#[test]
fn what_is_still_being_written_is_not_damaged() {
    use std::os::fd::AsRawFd;
    let directory = tempfile::tempdir().unwrap();
    let (sound, _) = recording();
    let path = written(directory.path(), "busy.heaptop", &sound[..sound.len() - 5]);
    let writer = std::fs::File::options().write(true).open(&path).unwrap();
    // SAFETY: no memory involved.
    assert_eq!(unsafe { libc::flock(writer.as_raw_fd(), libc::LOCK_EX) }, 0);
    let ended = heaptop(&["report", path.to_str().unwrap()]);
    assert_eq!((ended.status.code(), &*ended.stderr), (Some(0), ""), "{}", ended.stdout);
    assert!(ended.stdout.contains("is still being written"), "{}", ended.stdout);
}
