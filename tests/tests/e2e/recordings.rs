//! Recordings: what a program did is in them, exactly at R = 1, whoever wrote them and
//! however they ended.

use heaptop::session::{Input, Session};
use heaptop::source::file;
use heaptop::source::{SourceEvent, State};
use heaptop_protocol::message::FromAgent;
use heaptop_protocol::totals::Totals;
use heaptop_tests::binaries;
use heaptop_tests::client::Told;
use heaptop_tests::deadline::{Deadline, poll};
use heaptop_tests::run::{Plain, Run, same_as_unprofiled};
use heaptop_tests::target::Target;
use heaptop_tests::terminal::{Terminal, key};
use heaptop_tests::truth::Truths;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::demo;
use crate::exact::{assert_exact, compare};

/// What a file tells: as a strict client takes it, as a session does, and how it ends.
pub fn told(path: &Path) -> (Told, Session, String) {
    let tell = file::open(path).unwrap_or_else(|error| panic!("{error}"));
    let (mut told, mut session, mut end) = (Told::default(), Session::new(), None);
    let mut greeted = false;
    for event in tell {
        assert_eq!(end, None, "nothing comes behind the end");
        session.apply(match event {
            SourceEvent::Message(message) => {
                if std::mem::replace(&mut greeted, true) {
                    told.apply(message.clone());
                }
                Input::Agent(message)
            }
            SourceEvent::UnknownMessage { kind, .. } => panic!("a message of kind {kind}"),
            SourceEvent::Names(names) => Input::Names(names),
            SourceEvent::Connection(State::Ended(how)) => {
                end = Some(how);
                continue;
            }
            SourceEvent::Connection(state) => panic!("{state:?}"),
            SourceEvent::Damage(damage) => panic!("{damage:?}"),
        });
    }
    (told, session, end.expect("the last thing is the end"))
}

/// Starts recording the process `pid` into `path`.
pub fn record(target: &Target, path: &Path) -> Child {
    let child = Command::new(binaries::path("heaptop"))
        .env("HEAPTOP_DIR", target.socket().parent().unwrap())
        .args(["record", "-o"])
        .arg(path)
        .arg(target.pid().to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    child.expect("heaptop starts")
}

/// Whether the file can be opened, and a whole snapshot is in it.
fn is_synced(path: &Path) -> bool {
    file::open(path).is_ok_and(|tell| {
        tell.into_iter()
            .any(|event| matches!(event, SourceEvent::Message(FromAgent::SnapshotEnd(_))))
    })
}

fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let held = poll(Deadline::after(heaptop_tests::run::PATIENCE), || holds().then_some(()));
    assert!(held.is_some(), "{what}");
}

/// Chunks are written at the latest after a second, and the agent may be behind.
fn wait_until_written(path: &Path, truths: &Truths) {
    wait_for("all is written", || is_written(path, truths));
}

fn is_written(path: &Path, truths: &Truths) -> bool {
    let (told, ..) = told(path);
    let names = heaptop_tests::names::Names::of(&told);
    let functions: Vec<&str> = truths.by_function.keys().map(String::as_str).collect();
    let totals = names.totals(&told, &functions);
    functions.iter().all(|f| compare(&truths.by_function[*f], &totals[*f]).is_empty())
}

pub fn end(mut child: Child, signal: libc::c_int) -> std::process::ExitStatus {
    // SAFETY: our own child, which was not waited for yet.
    unsafe { libc::kill(child.id().cast_signed(), signal) };
    child.wait().expect("a child can be waited for")
}

/// Waits until a whole snapshot is recorded.
pub fn synced(path: &Path) {
    wait_for("a snapshot is recorded", || is_synced(path));
}

/// Waits until it is recorded how the target was a second after it was marked.
pub fn marked(path: &Path) {
    wait_for("a mark, and what comes a second later", || {
        let (mut mark, mut last) = (None, 0);
        for event in file::open(path).into_iter().flatten() {
            match event {
                SourceEvent::Message(FromAgent::Mark(told)) => mark = Some(told.at.time_ns),
                SourceEvent::Message(FromAgent::Status(status)) => last = status.at.time_ns,
                _ => {}
            }
        }
        mark.is_some_and(|mark| last > mark + 1_000_000_000)
    });
}

/// Runs the fixture with exact truths while it is recorded.
fn recorded(path: &Path) -> (Target, Child, Truths) {
    let mut target = Target::start("fixture-exact", &["2"], &[]);
    target.wait_for("ready");
    let recorder = record(&target, path);
    synced(path);
    target.say("work");
    let truths = Truths::read(&mut target);
    target.wait_for("quiet");
    (target, recorder, truths)
}

/// Totals and live blocks of the recording, and the names in it, against the truth.
fn assert_recorded(path: &Path, truths: &Truths) -> String {
    let (told, session, end) = told(path);
    assert_exact(&told, truths);
    // The names are in the file: the model has them without any other help.
    let rows = heaptop::query::callsites(&session, &heaptop::query::Question::default());
    let shown = |function: &str| rows.rows.iter().any(|row| row.label.function.contains(function));
    for (function, truth) in &truths.by_function {
        assert!(truth.in_use_objects == 0 || shown(function), "{function} has no row");
    }
    end
}

#[test]
fn what_is_recorded_is_exact() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.heaptop");
    let (target, recorder, truths) = recorded(&path);
    wait_until_written(&path, &truths);
    let status = end(recorder, libc::SIGINT);
    assert_eq!(status.code(), Some(0));
    let how = assert_recorded(&path, &truths);
    assert!(how.contains("while the target lived"), "{how}");
    drop(target);
}

#[test]
fn a_killed_recorder_leaves_what_it_had() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.heaptop");
    let (_target, recorder, truths) = recorded(&path);
    wait_until_written(&path, &truths);
    let status = end(recorder, libc::SIGKILL);
    assert_eq!(status.code(), None);
    let how = assert_recorded(&path, &truths);
    assert!(how.contains("breaks off"), "{how}");
}

#[test]
fn a_recording_tells_how_the_target_ended() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.heaptop");
    let (mut target, mut recorder, truths) = recorded(&path);
    target.say("end");
    let status = recorder.wait().expect("a child can be waited for");
    assert_eq!(status.code(), Some(0));
    let how = told(&path).2;
    assert!(how.contains("the target has exited"), "{how}");
    // What was allocated and freed until then is the truth still.
    let (told, ..) = told(&path);
    let names = heaptop_tests::names::Names::of(&told);
    let allocated = |totals: &Totals| totals.allocated.n;
    let functions: Vec<&str> = truths.by_function.keys().map(String::as_str).collect();
    let totals = names.totals(&told, &functions);
    for function in functions {
        let truth = &truths.by_function[function];
        assert_eq!(allocated(&totals[function]), truth.allocated_objects, "{function}");
    }
}

#[test]
fn a_command_is_recorded_and_its_status_returned() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.heaptop");
    let sockets = heaptop_tests::target::socket_directory();
    let mut child = Command::new(binaries::path("heaptop"))
        .env("HEAPTOP_DIR", sockets.path())
        .args(["record", "-o"])
        .arg(&path)
        .arg("--")
        .arg(binaries::path("fixture-exits"))
        .arg("3")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("heaptop starts");
    wait_for("a snapshot is recorded", || is_synced(&path));
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let how = told(&path).2;
    assert!(how.contains("has exited with code 3"), "{how}");
}

#[test]
fn the_agent_alone_records_exactly() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.heaptop");
    let wanted = path.to_str().unwrap();
    let mut target = Target::start("fixture-exact", &["2"], &[("HEAPTOP_RECORD", wanted)]);
    target.wait_for("ready");
    target.say("work");
    let truths = Truths::read(&mut target);
    target.wait_for("quiet");
    wait_until_written(&path, &truths);
    // As it would be after a kill: names come from the binary.
    assert_recorded(&path, &truths);
    // Sealed while it is being written it is whole by itself, and the next time the same.
    let seal = |arguments: &[&Path]| {
        let mut command = Command::new(binaries::path("heaptop"));
        let status = command.arg("seal").args(arguments).stderr(Stdio::null()).status();
        status.unwrap().code()
    };
    let [sealed, again] = ["b", "c"].map(|name| directory.path().join(name));
    assert_eq!(seal(&[&path]), Some(1), "what is being written is not replaced");
    assert_eq!(seal(&[&path, Path::new("-o"), &sealed]), Some(0));
    assert_recorded(&sealed, &truths);
    assert_eq!(seal(&[&sealed, Path::new("-o"), &again]), Some(0));
    assert!(std::fs::read(&sealed).unwrap() == std::fs::read(&again).unwrap());
    target.say("end");
}

#[test]
fn the_last_samples_before_an_exit_are_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a-%p.heaptop");
    let run = Run::of("fixture-exits", &["3"])
        .env("HEAPTOP_RECORD", path.to_str().unwrap())
        .env("HEAPTOP_INTERVAL", "1");
    let ended = same_as_unprofiled(&run, Plain::Off);
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(3), ""));
    let files: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(files.len(), 1, "the unprofiled run records nothing");
    let (told, _, how) = told(&files[0].as_ref().unwrap().path());
    assert_eq!(how, "the target has exited with code 3");
    let allocated: u64 = told.totals.values().map(|totals| totals.allocated.n).sum();
    assert!(allocated > 0 && allocated == told.status.unwrap().totals.allocated.n);
}

/// The thread has its file before `main` begins, however early it runs.
#[test]
fn who_confines_itself_in_its_first_line_is_recorded() {
    for _ in 0..30 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.heaptop");
        let run = Run::of("fixture-exits", &["0", "confine"]);
        let ended = run.env("HEAPTOP_RECORD", path.to_str().unwrap()).to_end();
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""));
        assert!(std::fs::metadata(&path).unwrap().len() > 0, "nothing was recorded");
        assert_eq!(told(&path).2, "the target has exited");
    }
}

#[test]
fn what_cannot_be_recorded_harms_no_program() {
    let directory = tempfile::tempdir().unwrap();
    let nowhere = directory.path().join("no/such/file");
    let other = directory.path().join("other");
    std::fs::write(&other, "not to be lost").unwrap();
    let unusable =
        [nowhere.to_str().unwrap(), other.to_str().unwrap(), "/dev/full", "/", "/dev/null/x"];
    for wanted in unusable {
        let run = Run::of("fixture-exits", &["0"]).env("HEAPTOP_RECORD", wanted);
        let ended = same_as_unprofiled(&run, Plain::Off);
        assert!(ended.stderr.contains("nothing is recorded into"), "{wanted}: {}", ended.stderr);
    }
    assert_eq!(std::fs::read(&other).unwrap(), b"not to be lost");
    // A file that may not grow raises no signal in the program.
    let path = directory.path().join("a.heaptop");
    let run = Run::of("fixture-exits", &["0"])
        .env("HEAPTOP_RECORD", path.to_str().unwrap())
        .env("HEAPTOP_INTERVAL", "1")
        .limit(libc::RLIMIT_FSIZE, 2000);
    let ended = same_as_unprofiled(&run, Plain::Off);
    assert_eq!(ended.stderr, "");
    let bytes = std::fs::metadata(&path).unwrap().len();
    assert!(bytes <= 2000, "{bytes}");
}

#[test]
fn files_follow_one_another_and_the_oldest_go() {
    let directory = tempfile::tempdir().unwrap();
    let path = |number: u32| directory.path().join(format!("a.{number}.heaptop"));
    let mut target = Target::start("fixture-exact", &["1"], &[]);
    target.wait_for("ready");
    let recorder = Command::new(binaries::path("heaptop"))
        .env("HEAPTOP_DIR", target.socket().parent().unwrap())
        .args(["record", "--rotate-time", "1s", "--keep", "2", "-o"])
        .arg(directory.path().join("a.heaptop"))
        .arg(target.pid().to_string())
        .stderr(Stdio::null())
        .spawn()
        .expect("heaptop starts");
    target.say("work");
    let truths = Truths::read(&mut target);
    target.wait_for("quiet");
    // Once one file has all of it, those that begin later have it from their beginning.
    let newest = || (1..1000).rev().find(|number| path(*number).exists());
    wait_for("a file has it all", || {
        let newest = newest().map(path).filter(|path| is_synced(path));
        newest.is_some_and(|path| is_written(&path, &truths))
    });
    let whole = newest().expect("there is one");
    wait_for("three more", || is_synced(&path(whole + 3)));
    assert_eq!(end(recorder, libc::SIGTERM).code(), Some(0));
    let kept: Vec<u32> = (1..1000).filter(|number| path(*number).exists()).collect();
    assert!(kept.len() == 2 && kept[0] > whole && kept[1] == kept[0] + 1, "{kept:?}");
    for number in kept {
        // Each file is whole by itself.
        let how = assert_recorded(&path(number), &truths);
        assert!(how.contains("while the target lived"), "{how}");
    }
}

#[test]
fn a_full_disk_ends_a_recording_with_a_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.heaptop");
    let mut target = Target::start("fixture-exact", &["1"], &[]);
    target.wait_for("ready");
    target.say("work");
    target.wait_for("quiet");
    let pid = target.pid().to_string();
    let record = |file: &Path, most: u64| {
        Run::of("heaptop", &["record", "-o", file.to_str().unwrap(), &pid])
            .directory(target.socket().parent().unwrap())
            .limit(libc::RLIMIT_FSIZE, most)
            .to_end()
    };
    let ended = record(&path, 6000);
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("the file may not grow any more"), "{}", ended.stderr);
    let bytes = std::fs::metadata(&path).unwrap().len();
    assert!(bytes <= 6000 && ended.stderr.contains(&format!("{bytes} bytes")), "{}", ended.stderr);
    let ended = record(Path::new("/dev/full"), 1 << 30);
    assert_eq!(ended.status.code(), Some(2));
    assert!(ended.stderr.contains("the disk is full"), "{}", ended.stderr);
}

#[test]
fn no_file_is_replaced_without_being_told_to() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.heaptop");
    std::fs::write(&path, "not to be lost").unwrap();
    let sockets = heaptop_tests::target::socket_directory();
    let mark = directory.path().join("started");
    let record = |more: &[&str]| {
        // A program with an agent, and a sign that it was started.
        let script = format!(
            "touch {}; exec {} 0",
            mark.display(),
            binaries::path("fixture-exits").display()
        );
        let file = path.to_str().unwrap();
        let arguments = [&["record", "-o", file][..], more, &["--", "sh", "-c", &script]].concat();
        Run::of("heaptop", &arguments).directory(sockets.path()).to_end()
    };
    let refused = record(&[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(refused.stderr.contains("a.heaptop exists: name another file"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
    assert!(!mark.exists(), "the program was started all the same");
    assert_eq!(std::fs::read(&path).unwrap(), b"not to be lost");
    // One of several files is found before its turn comes.
    let seventh = directory.path().join("a.7.heaptop");
    std::fs::write(&seventh, "not to be lost").unwrap();
    let refused = record(&["--rotate-time", "1h"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(refused.stderr.contains("a.7.heaptop exists"), "{}", refused.stderr);
    let replaced = record(&["--force"]);
    assert!(mark.exists(), "{}", replaced.stderr);
    // An empty file holds nothing.
    std::fs::write(&path, "").unwrap();
    std::fs::remove_file(&mark).unwrap();
    record(&[]);
    assert!(mark.exists());
}

#[test]
fn a_command_of_which_nothing_was_recorded_is_a_failure() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.heaptop");
    let sockets = heaptop_tests::target::socket_directory();
    for (child, code) in [("exit 0", 2), ("exit 3", 3)] {
        let args = ["record", "-o", path.to_str().unwrap(), "--", "sh", "-c", child];
        let ended = Run::of("heaptop", &args).directory(sockets.path()).to_end();
        assert_eq!(ended.status.code(), Some(code), "{child}: {}", ended.stderr);
        assert!(ended.stderr.contains("nothing was recorded"), "{child}: {}", ended.stderr);
        assert!(!path.exists(), "{child}");
    }
}

#[test]
fn the_viewer_records_and_opens_what_it_recorded() {
    let mut demo = demo::start(&[]);
    demo::warm_up(&mut demo, 1 << 20, 0);
    let mut viewer = Terminal::viewer(demo.directory(), &[]);
    viewer.wait_for("fill_cache");
    viewer.press("R");
    let path = viewer.until("the file is named", |screen| {
        let (_, rest) = screen.split_once("recording into ")?;
        let (path, _) = rest.split_once("; R")?;
        Some(path.split_whitespace().collect::<String>())
    });
    viewer.wait_for(" rec heaptop-demo-");
    wait_for("a snapshot is recorded", || is_synced(Path::new(&path)));
    viewer.press("R");
    viewer.wait_for("recorded /");
    viewer.press("q");
    assert_eq!(viewer.wait(), 0);

    let mut opened = Terminal::viewer(demo.directory(), &["open", &path]);
    opened.wait_for(" FILE ");
    opened.wait_for("while the target lived");
    opened.wait_for("fill_cache");
    opened.press("x");
    opened.wait_for("there is no target");
    // All of it as a trace, by the menu.
    opened.press("eG");
    opened.wait_for("-trace-1.ctf");
    opened.press(key::ENTER);
    opened.wait_for("written: /");
    let trace = files(demo.directory()).into_iter().find(|f| f.extension() == Some("ctf".as_ref()));
    let trace = trace.expect("the trace is in the working directory");
    let dump = Command::new(binaries::path("heaptop")).arg("dump").arg(&trace).output().unwrap();
    assert!(dump.status.success());
    assert!(String::from_utf8_lossy(&dump.stdout).contains("fill_cache"));
    std::fs::remove_file(&trace).unwrap();
    // From a file to what runs.
    opened.press("T");
    opened.wait_for("1 target");
    opened.press(key::ENTER);
    opened.until("the target", |screen| {
        (screen.contains("fill_cache") && !screen.contains(" FILE ")).then_some(())
    });
    opened.press("q");
    assert_eq!(opened.wait(), 0);
    std::fs::remove_file(&path).unwrap();
}

/// Recordings in `directory`, by name.
fn files(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// Blocks ever allocated in two functions of the fixtures that fork.
fn allocated(path: &Path) -> [u64; 2] {
    let (told, ..) = told(path);
    let functions = ["before_fork", "in_child"];
    let totals = heaptop_tests::names::Names::of(&told).totals(&told, &functions);
    functions.map(|function| totals[function].allocated.n)
}

#[test]
fn a_forked_child_leaves_its_parents_recording_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.heaptop");
    let run = Run::of("fixture-forks", &[]).input("go\n");
    let ended = run.env("HEAPTOP_RECORD", path.to_str().unwrap()).to_end();
    assert!(ended.status.success() && ended.stdout == "quiet\n", "{ended:?}");
    assert_eq!(files(directory.path()), std::slice::from_ref(&path));
    assert_eq!(allocated(&path), [100, 0]);
    assert_eq!(told(&path).2, "the target has exited");
}

#[test]
fn a_followed_child_has_a_recording_of_its_own() {
    for name in ["a.heaptop", "a-%p.heaptop"] {
        let directory = tempfile::tempdir().unwrap();
        let wanted = directory.path().join(name);
        let env = [("HEAPTOP_FOLLOW", "1"), ("HEAPTOP_RECORD", wanted.to_str().unwrap())];
        let mut target = Target::start("fixture-followed", &[""], &env);
        let quiet = target.wait_for_line("quiet", |line| line.starts_with("quiet "));
        let child = &quiet["quiet ".len()..];
        let files = files(directory.path());
        let is_childs = |path: &&std::path::PathBuf| {
            path.file_name().unwrap().to_string_lossy().contains(child)
        };
        let (childs, parents): (Vec<_>, Vec<_>) = files.iter().partition(is_childs);
        assert_eq!((childs.len(), parents.len()), (1, 1), "{files:?}");
        wait_for("both are written", || {
            let begun = [parents[0], childs[0]].iter().all(|path| file::open(path).is_ok());
            begun && allocated(parents[0]) == [100, 0] && allocated(childs[0]) == [0, 50]
        });
        target.say("go");
        assert!(target.wait().success());
    }
}

#[test]
fn what_is_done_right_before_the_exit_is_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.heaptop");
    let env = [("HEAPTOP_RECORD", path.to_str().unwrap())];
    let mut target = Target::start("fixture-exact", &["2"], &env);
    target.wait_for("ready");
    // It does not wait between its work and its end.
    target.say("work\nend");
    let truths = Truths::read(&mut target);
    assert!(target.wait().success());
    let (told, _, how) = told(&path);
    assert_eq!(how, "the target has exited");
    let functions: Vec<&str> = truths.by_function.keys().map(String::as_str).collect();
    let totals = heaptop_tests::names::Names::of(&told).totals(&told, &functions);
    for function in functions {
        let (truth, got) = (&truths.by_function[function], &totals[function].allocated);
        let allocated = (got.n, got.bytes.sum as u64);
        assert_eq!(allocated, (truth.allocated_objects, truth.allocated_bytes), "{function}");
    }
}
