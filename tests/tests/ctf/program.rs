//! The program itself: what it prints, where, and how it exits.

use crate::{dumped, sample, samples};
use heaptop_tests::binaries;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn heaptop(arguments: &[&str]) -> Output {
    Command::new(binaries::path("heaptop")).args(arguments).output().unwrap()
}

fn sentence(output: &Output) -> &str {
    let text = std::str::from_utf8(&output.stderr).unwrap();
    assert!(text.starts_with("heaptop: ") && text.lines().count() == 1, "{text:?}");
    text.trim_end()
}

fn path(name: &str) -> String {
    samples().join(name).display().to_string()
}

#[test]
fn a_dump_on_standard_output() {
    let output = heaptop(&["dump", &path("garbage-413-1e4.ctf")]);
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty() && output.stdout == dumped(&sample("garbage-413-1e4.ctf")).0);
}

#[test]
fn what_is_damaged_is_printed_as_far_as_it_is_sound() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cut.ctf");
    let bytes = sample("ext-530head-1e3.ctf");
    fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    let output = heaptop(&["dump", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!output.stdout.is_empty());
    assert!(sentence(&output).ends_with("bytes: it was cut"), "{}", sentence(&output));
}

#[test]
fn what_is_no_trace_is_a_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let there = |name: &str, content: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    for (file, why) in [
        (there("missing", b"") + ".ctf", "there is no file"),
        (directory.path().display().to_string(), "is a directory"),
        (there("empty.ctf", b""), "is empty"),
        ("/dev/null".into(), "is empty"),
        (there("other", b"\x7fELF and more"), "neither a recording"),
        (there("short", b"\xc1"), "neither a recording"),
        (there("first", &sample("garbage-413-1e4.ctf")[..40]), "ends inside a packet's header"),
    ] {
        let there = directory.path().join("out.ctf");
        let out = there.display().to_string();
        for arguments in [
            &["dump", &file][..],
            &["export", &file, "--format", "ctf", "-o", &out],
            &["export", &file, "--format", "ctf", "-o", "-"],
        ] {
            let output = heaptop(arguments);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}");
            let said = sentence(&output);
            assert!(said.contains(why) && said.contains(&file), "{arguments:?}: {said}");
            assert!(output.stdout.is_empty() && !there.exists(), "{arguments:?}");
        }
    }
}

#[test]
fn nobody_reads() {
    let mut child = Command::new(binaries::path("heaptop"))
        .args(["dump", &path("deep-413-1e3.ctf")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn a_trace_is_there_as_a_whole() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out.ctf");
    let name = out.display().to_string();
    fs::write(&out, "an older one").unwrap();
    let from = path("garbage-413-1e4.ctf");
    let export = || heaptop(&["export", &from, "--format", "ctf", "-o", &name]);
    // What is there is somebody's, above all where it is the trace itself.
    let output = export();
    assert_eq!(output.status.code(), Some(2));
    assert!(sentence(&output).contains("out.ctf exists: move it away"));
    assert_eq!(fs::read(&out).unwrap(), b"an older one");
    fs::remove_file(&out).unwrap();
    let output = export();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
    let written = fs::read(&out).unwrap();
    assert_eq!(dumped(&written), dumped(&sample("garbage-413-1e4.ctf")));
    let standard = heaptop(&["export", &from, "--format", "ctf", "-o", "-"]);
    assert!(standard.stdout == written && standard.stderr.is_empty());
    // Of several domains one stream: what is lost is said.
    fs::remove_file(&out).unwrap();
    let output =
        heaptop(&["export", &path("multidomain-530-begin.ctf"), "--format", "ctf", "-o", &name]);
    assert_eq!(output.status.code(), Some(0));
    assert!(sentence(&output).contains("left out: which domain"), "{}", sentence(&output));
    assert_eq!(files(directory.path()), ["out.ctf"]);
}

#[test]
fn what_is_damaged_is_written_as_far_as_it_is_sound() {
    let directory = tempfile::tempdir().unwrap();
    let there = |name: &str| directory.path().join(name).display().to_string();
    let export =
        |from: &str| heaptop(&["export", from, "--format", "ctf", "-o", &there("out.ctf")]);
    // Nothing is.
    let output = export(&path("pr23-wide-530v023-begin.ctf"));
    assert_eq!(output.status.code(), Some(2));
    assert!(sentence(&output).ends_with("nothing before it is to be written"));
    assert!(files(directory.path()).is_empty());
    let bytes = sample("multidomain-530-begin.ctf");
    fs::write(there("cut.ctf"), &bytes[..bytes.len() - 1]).unwrap();
    let output = export(&there("cut.ctf"));
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.ends_with("it was cut; what is sound before it was written\n"), "{said}");
    let (text, none) = dumped(&fs::read(there("out.ctf")).unwrap());
    assert!(!text.is_empty() && none.is_none());
}

#[test]
fn where_nothing_can_be_written() {
    let directory = tempfile::tempdir().unwrap();
    let from = path("garbage-413-1e4.ctf");
    let export = |to: &str| heaptop(&["export", &from, "--format", "ctf", "-o", to]);
    let name = directory.path().display().to_string();
    let output = export(&name);
    assert_eq!(output.status.code(), Some(2));
    assert!(sentence(&output).contains("is a directory"), "{}", sentence(&output));
    let output = export(&format!("{name}/none/out.ctf"));
    assert_eq!(output.status.code(), Some(1));
    assert!(sentence(&output).contains("cannot be written"), "{}", sentence(&output));
    assert!(files(directory.path()).is_empty());
    // A device that is always full, by its name: it stays what it is.
    let output = export("/dev/full");
    assert_eq!(output.status.code(), Some(1));
    assert!(sentence(&output).ends_with("the disk is full"), "{}", sentence(&output));
    assert!(!fs::metadata("/dev/full").unwrap().is_file());
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Command::new(binaries::path("heaptop"))
        .args(["export", &from, "--format", "ctf", "-o", "-"])
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(sentence(&output).contains("No space left"), "{}", sentence(&output));
}

fn files(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
