use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use blazesym::inspect::source::{Elf, Source};
use blazesym::inspect::{Inspector, SymInfo};

use super::*;
use crate::session::names::Symbol;

/// `outer` is a symbol of its own; `inlined` is only in the debug information.
const PROGRAM: &str = r#"
use std::hint::black_box;

#[inline(always)]
fn inlined(n: usize) -> usize {
    black_box(n + 1);
    black_box(Vec::<u8>::with_capacity(n)).capacity() // INNER
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn outer(n: usize) -> usize {
    black_box(n);
    inlined(n) // CALL
}

fn main() {
    println!("{}", outer(7));
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
}
"#;

/// The line of [`PROGRAM`] that ends in `marker`.
fn line(marker: &str) -> u32 {
    let at = PROGRAM.lines().position(|l| l.ends_with(marker)).unwrap();
    u32::try_from(at + 1).unwrap()
}

fn compile(dir: &Path, name: &str, build_id: &str) -> PathBuf {
    let source = dir.join("program.rs");
    std::fs::write(&source, PROGRAM).unwrap();
    let out = dir.join(name);
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let status = Command::new(rustc)
        .args(["--edition=2024", "-g", "-Copt-level=1"])
        .arg(format!("-Clink-arg=-Wl,--build-id=0x{build_id}"))
        .arg("-o")
        .arg(&out)
        .arg(&source)
        .status()
        .unwrap();
    assert!(status.success());
    out
}

/// The running program; it ends when its standard input does.
struct Program(Child);

impl Program {
    fn start(path: &Path) -> Self {
        let mut child =
            Command::new(path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // Its first output says that it is past the exec.
        let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut String::new()).unwrap();
        Self(child)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn module(id: u32, path: &Path, build_id: &str) -> Module {
    let bytes = build_id.as_bytes().chunks(2);
    Module {
        id: ModuleId(id),
        path: path.to_str().unwrap().into(),
        build_id: bytes
            .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
            .collect(),
        load_bias: 0,
        range: (0, 0),
    }
}

/// First address and size of the function `outer`.
fn outer(path: &Path) -> (u64, u64) {
    let inspector = Inspector::new();
    let found = inspector.lookup(&Source::Elf(Elf::new(path)), &["outer"]).unwrap();
    let SymInfo { addr, size, .. } = &found[0][0];
    (*addr, u64::try_from(size.unwrap()).unwrap())
}

fn frames(id: u32, (start, size): (u64, u64)) -> Vec<Frame> {
    (1..=size).map(|at| Frame { module: ModuleId(id), offset: start + at }).collect()
}

fn symbolizer() -> (Symbolizer, Receiver<Vec<Named>>) {
    let (send, receive) = channel();
    let symbolizer = Symbolizer::start(move |named| {
        let _ = send.send(named);
    });
    (symbolizer, receive)
}

/// Answers until there are `count`.
fn receive(answers: &Receiver<Vec<Named>>, count: usize) -> Vec<Named> {
    let mut named = Vec::new();
    while named.len() < count {
        named.extend(answers.recv_timeout(Duration::from_secs(60)).expect("an answer"));
    }
    assert_eq!(named.len(), count);
    named
}

fn names(named: &Named) -> Vec<&str> {
    named.symbols.iter().map(|s| &*s.function).collect()
}

const ID: &str = "00112233445566778899aabbccddeeff00112233";
const OTHER: &str = "ff112233445566778899aabbccddeeff00112233";
/// A pid that no process has: above the kernel's greatest.
const NOBODY: u32 = 1 << 30;

#[test]
fn inlined_functions_files_and_lines_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = compile(dir.path(), "program", ID);
    let (symbolizer, answers) = symbolizer();
    let asked = frames(1, outer(&path));
    symbolizer.want(NOBODY, &[module(1, &path, ID)], asked.clone());
    let named = receive(&answers, asked.len());
    assert_eq!(named.iter().map(|n| n.frame).collect::<Vec<_>>(), asked, "order is kept");

    let inner = named
        .iter()
        .find(|n| {
            let chain = names(n);
            chain.starts_with(&["outer", "program::inlined"])
                && chain.get(2).is_some_and(|name| name.contains("with_capacity"))
        })
        .expect("a call inside the inlined function");
    let is_at = |symbol: &Symbol, marker: &str| {
        assert!(symbol.file.as_deref().unwrap().ends_with("program.rs"), "{symbol:?}");
        assert_eq!(symbol.line, Some(line(marker)), "{symbol:?}");
    };
    is_at(&inner.symbols[0], "// CALL");
    is_at(&inner.symbols[1], "// INNER");
    assert!(inner.symbols.iter().all(|s| !s.function.contains("17h")), "{inner:?}");
}

#[test]
fn a_frame_is_looked_up_before_its_return_address() {
    let dir = tempfile::tempdir().unwrap();
    let path = compile(dir.path(), "program", ID);
    let (symbolizer, answers) = symbolizer();
    let (start, size) = outer(&path);
    let at = |offset| Frame { module: ModuleId(1), offset };
    // The first address behind `outer` still belongs to it; its own first does not.
    symbolizer.want(NOBODY, &[module(1, &path, ID)], vec![at(start + size), at(start)]);
    let named = receive(&answers, 2);
    assert_eq!(names(&named[0])[0], "outer");
    assert_ne!(names(&named[1]).first(), Some(&"outer"));
}

#[test]
fn a_replaced_binary_is_noticed_and_a_deleted_one_is_still_had() {
    let dir = tempfile::tempdir().unwrap();
    let path = compile(dir.path(), "program", ID);
    let range = outer(&path);
    let program = Program::start(&path);
    let newer = compile(dir.path(), "newer", OTHER);

    // Replaced: its path holds another build, but the process still has its own.
    std::fs::rename(&newer, &path).unwrap();
    let (symbolizer, answers) = symbolizer();
    let frame = frames(1, range).pop().unwrap();
    symbolizer.want(program.0.id(), &[module(1, &path, ID)], vec![frame]);
    assert_eq!(names(&receive(&answers, 1)[0])[0], "outer");

    // Nobody has it any more: unknown, not the newer build's names.
    symbolizer.want(NOBODY, &[module(1, &path, &ID.replace("0011", "0022"))], vec![frame]);
    assert_eq!(receive(&answers, 1)[0].symbols, []);

    std::fs::remove_file(&path).unwrap();
    let gone = format!("{} (deleted)", path.display());
    symbolizer.want(program.0.id(), &[module(2, Path::new(&gone), ID)], frames(2, range));
    let named = receive(&answers, usize::try_from(range.1).unwrap());
    assert!(named.iter().all(|n| names(n)[0] == "outer"));
}

#[test]
fn files_that_are_none_give_unknown_and_the_worker_lives_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = compile(dir.path(), "program", ID);
    let whole = std::fs::read(&path).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    // Headers and tables overwritten with what tempts a parser most.
    let mut broken: Vec<PathBuf> = [0x18, 0x20, 0x28, 0x34, 0x3a, 0x3c, 0x40, 0x60]
        .into_iter()
        .map(|at| {
            let mut bytes = whole.clone();
            bytes[at..at + 8].fill(0xff);
            file(&format!("broken-{at}"), &bytes)
        })
        .collect();
    let header = &whole[..0x40];
    broken.push(file("header", header));
    broken.push(file("half", &whole[..whole.len() / 2]));
    broken.push(file("text", b"#!/bin/sh\n"));
    broken.push(file("empty", b""));
    broken.push(dir.path().to_path_buf());
    broken.push(dir.path().join("missing"));
    broken.push(PathBuf::from("/dev/zero"));
    broken.push(PathBuf::from("linux-vdso.so.1"));
    broken.push(PathBuf::new());

    let (symbolizer, answers) = symbolizer();
    let mut id = 1;
    for path in &broken {
        for build_id in ["", ID] {
            id += 1;
            let odd = [0, 1, 0x1000, u64::MAX];
            let odd = odd.map(|offset| Frame { module: ModuleId(id), offset }).to_vec();
            symbolizer.want(NOBODY, &[module(id, path, build_id)], odd);
            receive(&answers, 4);
        }
    }
    // A frame whose module nobody told of, and one outside every module.
    let stray = [ModuleId(9999), ModuleId::UNKNOWN].map(|module| Frame { module, offset: 5 });
    symbolizer.want(NOBODY, &[], stray.to_vec());
    assert!(receive(&answers, 2).iter().all(|n| n.symbols.is_empty()));

    symbolizer.want(NOBODY, &[module(1, &path, ID)], frames(1, outer(&path)));
    assert_eq!(names(&receive(&answers, 1.max(outer(&path).1 as usize))[0])[0], "outer");
}

#[test]
fn a_stripped_file_is_named_by_its_symbols() {
    let dir = tempfile::tempdir().unwrap();
    let path = compile(dir.path(), "program", ID);
    // No debug information, symbols stay.
    let status = Command::new("strip").arg("-g").arg(&path).status();
    if !status.is_ok_and(|s| s.success()) {
        // No binutils here: nothing to test with.
        return;
    }
    let (symbolizer, answers) = symbolizer();
    let range = outer(&path);
    symbolizer.want(NOBODY, &[module(1, &path, ID)], frames(1, range));
    let named = receive(&answers, usize::try_from(range.1).unwrap());
    assert!(named.iter().all(|n| names(n) == ["outer"] && n.symbols[0].line.is_none()));
}

#[test]
fn jit_code_is_named_by_the_perf_map() {
    let dir = tempfile::tempdir().unwrap();
    let path = compile(dir.path(), "program", ID);
    let program = Program::start(&path);
    let map = format!("/tmp/perf-{}.map", program.0.id());
    std::fs::write(&map, "7f0000000000 100 lua:fib\n").unwrap();
    let (symbolizer, answers) = symbolizer();
    let frame = Frame { module: ModuleId::UNKNOWN, offset: 0x7f00_0000_0080 };
    symbolizer.want(program.0.id(), &[], vec![frame]);
    assert_eq!(names(&receive(&answers, 1)[0]), ["lua:fib"]);
    std::fs::remove_file(map).unwrap();
}

#[test]
fn the_newest_request_comes_first_and_nothing_waits_twice() {
    let queue = Queue::default();
    let symbolizer = Symbolizer { queue: Arc::new(queue) };
    let at = |offset| Frame { module: ModuleId(1), offset };
    symbolizer.want(1, &[], vec![at(1), at(2), at(3)]);
    symbolizer.want(1, &[], vec![at(2), at(4), at(5), at(4)]);
    symbolizer.want(1, &[], vec![at(5)]);
    let mut order = Vec::new();
    loop {
        let taken = symbolizer.queue.take(2, false).unwrap();
        if taken.is_empty() {
            break;
        }
        order.extend(taken.iter().map(|task| task.frame.offset));
    }
    assert_eq!(order, [4, 5, 1, 2, 3]);
}
