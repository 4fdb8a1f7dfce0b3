//! Manners at the socket: what an agent does for viewers, strangers, and none.

use crate::exact::assert_exact;
use heaptop_protocol::message::{FromViewer, Sampling, SetInterval, SetMark, SetSampling};
use heaptop_protocol::{VERSION, Version, estimate::Interval};
use heaptop_tests::client::{Client, Told};
use heaptop_tests::deadline::{Deadline, poll};
use heaptop_tests::names::Names;
use heaptop_tests::target::{Target, make_old, socket_directory};
use heaptop_tests::truth::Truths;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

fn waiting(env: &[(&str, &str)]) -> Target {
    let mut target = Target::start("fixture-exits", &["0"], env);
    target.wait_for("ready");
    target
}

#[test]
fn the_greeting_says_who_it_is() {
    let target = waiting(&[
        ("HEAPTOP_NAME", "orders-api"),
        ("HEAPTOP_NURSERY", "1M"),
        ("HEAPTOP_PHASE", "4096"),
        ("HEAPTOP_MAX_YOUNG", "512"),
    ]);
    let client = Client::attach(&target.socket());
    let hello = &client.hello;
    assert_eq!((hello.name.as_str(), hello.pid), ("orders-api", target.pid()));
    assert_eq!(
        (hello.nursery_bytes, hello.phase_bytes, hello.max_young_bytes),
        (1 << 20, 4096, 512)
    );
    assert_eq!(hello.notices, Vec::<String>::new());
}

#[test]
fn without_a_name_it_is_the_executables() {
    let target = waiting(&[]);
    assert_eq!(Client::attach(&target.socket()).hello.name, "fixture-exits");
}

#[test]
fn a_bad_setting_is_a_sentence_and_the_default() {
    let target = waiting(&[("HEAPTOP_NURSERY", "plenty"), ("HEAPTOP_INTERVAL", "0")]);
    let hello = Client::attach(&target.socket()).hello;
    assert_eq!(hello.nursery_bytes, 2 << 20);
    assert_eq!(hello.notices.len(), 2, "{:?}", hello.notices);
    assert!(hello.notices.iter().any(|n| n.contains("HEAPTOP_NURSERY") && n.contains("plenty")));
    assert!(hello.notices.iter().any(|n| n.contains("HEAPTOP_INTERVAL")));
}

#[test]
fn its_socket_is_for_this_user_alone() {
    let target = waiting(&[]);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&target.socket()) & 0o777, 0o600);
    assert_eq!(mode(target.directory()) & 0o777, 0o700);
}

#[test]
fn switched_off_there_is_no_socket_and_the_program_runs() {
    let mut target = Target::start("fixture-exits", &["5"], &[("HEAPTOP", "off")]);
    target.wait_for("ready");
    assert_eq!(std::fs::read_dir(target.directory()).unwrap().count(), 0);
    target.say("go");
    assert_eq!(target.wait().code(), Some(5));
}

#[test]
fn dormant_it_answers_but_samples_nothing() {
    let target = waiting(&[("HEAPTOP", "dormant")]);
    let mut client = Client::attach(&target.socket());
    client.until("a status", |told| told.status.is_some());
    let status = client.told.status.unwrap();
    assert_eq!((status.sampling, status.samples), (Sampling::Paused, 0));
}

#[test]
fn the_end_of_the_target_ends_the_conversation() {
    let mut target = waiting(&[]);
    let mut client = Client::attach(&target.socket());
    let socket = target.socket();
    target.say("go");
    client.until_end();
    assert!(target.wait().success());
    assert!(UnixStream::connect(socket).is_err(), "somebody still listens");
}

#[test]
fn another_major_version_is_hung_up_on() {
    let target = waiting(&[]);
    let other = Version { major: VERSION.major + 1, ..VERSION };
    Client::greet(&target.socket(), other).until_end();
    // The next one is served as ever.
    drop(Client::attach(&target.socket()));
}

#[test]
fn a_stranger_is_hung_up_on() {
    let target = waiting(&[]);
    for noise in [&b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"[..], &[0xff; 4096], &[0; 64]] {
        let mut stranger = UnixStream::connect(target.socket()).unwrap();
        stranger.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // It may hang up while we speak.
        let _ = stranger.write_all(noise);
        let mut heard = Vec::new();
        match stranger.read_to_end(&mut heard) {
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => {}
            Err(e) => panic!("it does not hang up: {e}"),
        }
    }
    drop(Client::attach(&target.socket()));
}

#[test]
fn a_viewer_that_never_reads_holds_up_nobody() {
    let mut target = Target::start("fixture-exact", &["2"], &[]);
    target.wait_for("ready");
    let silent = UnixStream::connect(target.socket()).unwrap();
    let deaf = Client::greet(&target.socket(), VERSION);
    target.say("work");
    let truths = Truths::read(&mut target);
    target.wait_for("quiet");
    let mut client = Client::attach(&target.socket());
    client.snapshot();
    assert_exact(&client.told, &truths);
    drop((silent, deaf));
}

#[test]
fn viewers_come_and_go() {
    let target = waiting(&[]);
    for _ in 0..20 {
        drop(Client::greet(&target.socket(), VERSION));
        drop(UnixStream::connect(target.socket()).unwrap());
    }
    drop(Client::attach(&target.socket()));
}

#[test]
fn a_mark_is_told_to_all_viewers() {
    let target = waiting(&[]);
    let mut first = Client::attach(&target.socket());
    let mut second = Client::attach(&target.socket());
    first.send(&SetMark { label: "here".into() }.into());
    for client in [&mut first, &mut second] {
        client.until("the mark", |told| told.marks.iter().any(|mark| mark.label == "here"));
    }
}

#[test]
fn the_governor_makes_an_idle_target_finer_until_an_interval_is_set() {
    let target = waiting(&[("HEAPTOP_INTERVAL", "auto")]);
    let mut client = Client::attach(&target.socket());
    let status = |told: &Told| told.status.map(|s| (s.governed, s.interval.bytes()));
    client.until("the finest R", |told| status(told) == Some((true, 16 << 10)));
    assert_eq!(client.told.status.unwrap().coarsest, Interval::DEFAULT, "where it began");

    let interval = Interval::new(1 << 20);
    client.send(&FromViewer::SetInterval(SetInterval { interval }));
    client.until("the set R", |told| status(told) == Some((false, 1 << 20)));
    assert_eq!(client.told.status.unwrap().coarsest, interval.unwrap());
    client.send(&FromViewer::SetInterval(SetInterval { interval: None }));
    client.until("half of it", |told| status(told) == Some((true, 512 << 10)));
}

#[test]
fn the_interval_and_sampling_can_be_set() {
    let mut demo = crate::demo::start(&[]);
    let mut client = Client::attach(&demo.socket());
    let interval = Interval::new(4096).unwrap();
    client.send(&FromViewer::SetInterval(SetInterval { interval: Some(interval) }));
    client.until("the interval", |told| told.status.is_some_and(|s| s.interval == interval));

    client.send(&FromViewer::SetSampling(SetSampling { on: false }));
    client.until("the pause", |told| told.status.is_some_and(|s| s.sampling == Sampling::Paused));
    assert!(client.told.status.unwrap().gap, "a viewer that comes later must know");
    // Each thread sees it within 64 KiB: some churn later no sample is taken.
    crate::demo::warm_up(&mut demo, 1, 0);
    let churned = Truths::ask(&mut demo)["serve_request"].allocated_bytes;
    crate::demo::warm_up(&mut demo, churned + (4 << 20), 0);
    client.snapshot();
    let paused = client.told.status.unwrap().samples;
    crate::demo::warm_up(&mut demo, churned + (8 << 20), 0);
    client.snapshot();
    assert_eq!(client.told.status.unwrap().samples, paused);

    client.send(&FromViewer::SetSampling(SetSampling { on: true }));
    client.until("samples", |told| told.status.is_some_and(|s| s.samples > paused));
}

#[test]
fn what_a_killed_target_left_is_cleaned_away() {
    let directory = Arc::new(socket_directory());
    let mut killed = Target::start_in(Arc::clone(&directory), "fixture-exits", &["0"], &[]);
    killed.wait_for("ready");
    let stale = killed.socket();
    drop(killed);
    assert!(stale.exists() && UnixStream::connect(&stale).is_err());
    // A new socket is left alone: its owner may be about to listen.
    make_old(&stale);

    let mut lives = Target::start_in(Arc::clone(&directory), "fixture-exits", &["0"], &[]);
    lives.wait_for("ready");
    let socket = lives.socket();
    let list = std::process::Command::new(heaptop_tests::binaries::path("heaptop"))
        .arg("list")
        .env("HEAPTOP_DIR", directory.path())
        .output()
        .unwrap();
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(list.contains(&lives.pid().to_string()), "{list}");
    assert!(!stale.exists(), "a socket that nobody listens at is still there");
    assert!(socket.exists());
}

#[test]
fn a_forked_child_is_left_alone_and_leaves_its_parent_alone() {
    let mut target = Target::start("fixture-forks", &[], &[]);
    target.wait_for("quiet");
    let sockets: Vec<_> =
        std::fs::read_dir(target.directory()).unwrap().map(|f| f.unwrap().path()).collect();
    assert_eq!(sockets, [target.socket()]);
    let mut client = Client::attach(&target.socket());
    client.snapshot();
    let functions = ["before_fork", "in_child", "after_fork"];
    let totals = Names::of(&client.told).totals(&client.told, &functions);
    let in_use = functions.map(|f| (totals[f].in_use.n, totals[f].in_use.bytes.sum as u64));
    assert_eq!(in_use, [(100, 100 << 10), (0, 0), (50, 50 * 512)]);
    assert_eq!(totals["in_child"].allocated.n, 0);
}

#[test]
fn no_descriptor_of_ours_becomes_the_programs_standard_error() {
    let directory = socket_directory();
    let mut program = std::process::Command::new("sh")
        .args(["-c", "exec \"$0\" 0 2>&-"])
        .arg(heaptop_tests::binaries::path("fixture-exits"))
        .env("HEAPTOP_DIR", directory.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let socket = heaptop_protocol::endpoint::socket(directory.path(), program.id());
    poll(Deadline::default(), || socket.exists().then_some(())).expect("its socket");
    // The agent may be ready before the standard library has filled the gap.
    let standard_error = format!("/proc/{}/fd/2", program.id());
    let standard_error = poll(Deadline::default(), || std::fs::read_link(&standard_error).ok())
        .expect("the standard library opens one");
    assert_eq!(standard_error.to_str(), Some("/dev/null"));
    drop(program.stdin.take());
    assert!(program.wait().unwrap().success());
}

#[test]
fn viewers_that_read_nothing_do_not_fill_the_targets_memory() {
    let target = waiting(&[]);
    let silent: Vec<Client> = (0..12).map(|_| Client::attach(&target.socket())).collect();
    let mut loud = Client::attach(&target.socket());
    loud.snapshot();
    let resident_kib = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", target.pid())).unwrap();
        let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap().to_owned();
        line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let before = resident_kib();
    // Told on to each viewer, this would be 50 MiB.
    for n in 0..20_000 {
        loud.send(&FromViewer::SetMark(SetMark { label: format!("{n:0>200}") }));
    }
    loud.snapshot();
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 24 << 10, "{grown} KiB");
    drop(silent);
}

#[test]
fn a_program_that_closes_our_descriptors_keeps_its_own() {
    let mut target = Target::start("fixture-rude", &["closes"], &[]);
    target.wait_for("stolen 0");
    // And it can be looked at again: the agent has opened another socket.
    let again = poll(Deadline::default(), || UnixStream::connect(target.socket()).ok());
    assert!(again.is_some(), "no socket again");
    Client::attach(&target.socket()).snapshot();
}

#[test]
fn a_program_whose_allocator_refuses_is_not_brought_down() {
    let mut target = Target::start("fixture-rude", &["refuses"], &[("HEAPTOP_INTERVAL", "1K")]);
    target.wait_for("refused");
    target.say("go");
    assert!(target.wait().success());
}

#[test]
fn a_program_with_little_stack_has_enough() {
    let mut target = Target::start("fixture-rude", &["cramped"], &[("HEAPTOP_INTERVAL", "1")]);
    target.wait_for("cramped");
    target.say("go");
    assert!(target.wait().success());
}
