//! The link against agents that behave, and agents that do not.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use heaptop_protocol::message::{FromAgent, FromViewer, SetMark};

use super::fake::{self, Behaviour};
use super::inbox::Event;
use super::{Link, SourceEvent, State};

/// The next event; there is always one to come.
fn next(link: &Link) -> SourceEvent {
    match link.inbox().take(Some(Instant::now() + Duration::from_secs(30))) {
        Some(Event::Source(event)) => event,
        other => panic!("{other:?} instead of an event"),
    }
}

/// Events until the connection changes, and to what.
fn until_change(link: &Link) -> (Vec<SourceEvent>, State) {
    let mut events = Vec::new();
    loop {
        match next(link) {
            SourceEvent::Connection(state) => return (events, state),
            event => events.push(event),
        }
    }
}

fn messages(events: Vec<SourceEvent>) -> Vec<FromAgent> {
    let message = |event| match event {
        SourceEvent::Message(message) => message,
        other => panic!("{other:?} instead of a message"),
    };
    events.into_iter().map(message).collect()
}

fn with(behaviour: Behaviour, test: impl FnOnce(&Path, &fake::Fake)) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("1.sock");
    let agent = fake::serve(&path, behaviour);
    test(&path, &agent);
}

#[test]
fn messages_arrive_in_order_and_commands_get_through() {
    with(Behaviour::Normal, |path, agent| {
        let link = Link::open(path).unwrap();
        assert_eq!(link.target().pid, std::process::id());
        assert!(matches!(next(&link), SourceEvent::Connection(State::Connected)));
        let mut expected = vec![FromAgent::from(fake::hello())];
        expected.extend(fake::script());
        for message in expected {
            let SourceEvent::Message(got) = next(&link) else { panic!() };
            assert_eq!(got, message);
        }
        let mark = FromViewer::from(SetMark { label: "now".into() });
        assert!(link.send(mark.clone()));
        let heard = || agent.heard.recv_timeout(Duration::from_secs(30)).unwrap();
        assert!(matches!(heard(), FromViewer::Hello(_)));
        assert_eq!(heard(), mark);
    });
}

#[test]
fn strangers_and_sleepers_are_told_in_a_sentence() {
    let cases = [
        (Behaviour::Garbage, "the peer is no heaptop"),
        (Behaviour::HugeLength, "the peer is no heaptop"),
        (Behaviour::NoHello, "the peer is no heaptop"),
        (Behaviour::WrongVersion, "use viewer and agent of the same release"),
        (Behaviour::HalfHello, "hung up before it greeted"),
        (Behaviour::ClosesEarly, "hung up before it greeted"),
        (Behaviour::Silent, "does not answer within 0.4 s"),
        (Behaviour::Drip, "does not answer within 0.4 s"),
    ];
    for (behaviour, sentence) in cases {
        with(behaviour, |path, _| {
            let time = Duration::from_millis(400);
            let error = Link::open_within(path, time).err().expect("no link").to_string();
            assert!(error.contains(sentence), "{behaviour:?}: {error}");
            assert!(error.contains("1.sock"), "{behaviour:?}: {error}");
        });
    }
}

#[test]
fn a_peer_that_never_comes_to_an_end_is_given_up() {
    with(Behaviour::Trickle, |path, _| {
        let error = super::discover::probe(path).expect_err("no greeting").to_string();
        let how_to_go_on = format!(
            "does not answer within 1 s: it may be stopped (`kill -CONT {}`) or too busy",
            std::process::id()
        );
        assert!(error.contains(&how_to_go_on), "{error}");
    });
}

#[test]
fn dropping_a_link_ends_its_threads_while_the_target_is_quiet() {
    with(Behaviour::Normal, |path, _| {
        let link = Link::open(path).unwrap();
        until_change(&link);
        for _ in 0..=fake::script().len() {
            next(&link);
        }
        let inbox = std::sync::Arc::clone(link.inbox());
        drop(link);
        until_alone(&inbox);
    });
}

/// Waits until no thread of a link holds its inbox any more.
fn until_alone(inbox: &std::sync::Arc<super::inbox::Inbox>) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while std::sync::Arc::strong_count(inbox) > 1 {
        assert!(Instant::now() < deadline, "the threads do not end");
        std::thread::yield_now();
    }
}

#[test]
fn sockets_that_are_not_there_or_left_over_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("1.sock");
    let error = |path: &Path| Link::open(path).err().expect("no link").to_string();
    assert!(error(&path).contains("there is no socket"));
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(error(&path).contains("nobody listens"));
    let name = "x".repeat(200);
    assert!(error(&dir.path().join(name)).contains("does not fit"));
}

#[test]
fn a_directory_too_deep_for_an_address_is_no_hindrance() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("d".repeat(120));
    std::fs::create_dir(&deep).unwrap();
    let short = dir.path().join("1.sock");
    let _agent = fake::serve(&short, Behaviour::Normal);
    std::fs::hard_link(&short, deep.join("1.sock")).unwrap();
    assert!(Link::open(&deep.join("1.sock")).is_ok());
}

#[test]
fn a_full_backlog_is_given_up_in_time() {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("1.sock");
    let listener = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    listen(&listener, 0).unwrap();
    let _first = std::os::unix::net::UnixStream::connect(&path).unwrap();
    let time = Duration::from_millis(400);
    let error = Link::open_within(&path, time).err().expect("no link").to_string();
    assert!(error.contains("takes no connection within 0.4 s"), "{error}");
    assert!(error.contains("(`kill -CONT 1`), too busy, or have too many viewers"), "{error}");
}

#[test]
fn a_damaged_stream_ends_the_link() {
    with(Behaviour::DamagedLater, |path, _| {
        let link = Link::open(path).unwrap();
        assert_eq!(until_change(&link).1, State::Connected);
        let (events, state) = until_change(&link);
        assert_eq!(messages(events).len(), fake::script().len(), "the one before it arrived");
        let State::Ended(why) = state else { panic!("{state:?}") };
        assert!(why.contains("damaged"), "{why}");
        assert!(!link.send(SetMark { label: String::new() }.into()));
    });
}

#[test]
fn unknown_messages_are_counted_and_skipped() {
    with(Behaviour::UnknownKind, |path, _| {
        let link = Link::open(path).unwrap();
        until_change(&link);
        for _ in 0..=fake::script().len() {
            assert!(matches!(next(&link), SourceEvent::Message(_)));
        }
        assert!(matches!(next(&link), SourceEvent::UnknownMessage { kind: 777, .. }));
    });
}

#[test]
fn a_lost_link_comes_back_while_the_target_lives() {
    with(Behaviour::ClosesOnce, |path, _| {
        let link = Link::open(path).unwrap();
        until_change(&link);
        let (events, state) = until_change(&link);
        assert_eq!(messages(events).len(), 1 + fake::script().len());
        let State::Lost(why) = state else { panic!("{state:?}") };
        assert!(why.contains("closed"), "{why}");
        assert_eq!(until_change(&link).1, State::Connecting);
        assert_eq!(until_change(&link).1, State::Connected);
        assert!(matches!(next(&link), SourceEvent::Message(FromAgent::Hello(_))));
    });
}

#[test]
fn a_socket_that_goes_and_comes_back_is_connected_to_again() {
    let dir = tempfile::tempdir().unwrap();
    let [path, aside] = ["1.sock", "aside"].map(|name| dir.path().join(name));
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let (from, to) = (path.clone(), aside.clone());
    let agent = std::thread::spawn(move || {
        let said = fake::bytes([fake::hello().into()].into_iter().chain(fake::script()));
        let (mut first, _) = listener.accept().unwrap();
        first.write_all(&said).unwrap();
        // The viewer's greeting: what is not read would be a reset and no end.
        assert!(first.read(&mut [0; 4096]).unwrap() > 0);
        std::fs::rename(&from, &to).unwrap();
        drop(first);
        let (mut second, _) = listener.accept().unwrap();
        second.write_all(&said).unwrap();
        let _ = std::io::copy(&mut second, &mut std::io::sink());
    });
    let link = Link::open(&path).unwrap();
    assert_eq!(until_change(&link).1, State::Connected);
    let State::Lost(why) = until_change(&link).1 else { panic!("it is lost") };
    assert!(why.contains("closed"), "{why}");
    // As often as it is tried, however long that goes on.
    for _ in 0..3 {
        assert_eq!(until_change(&link).1, State::Connecting);
        let State::Lost(why) = until_change(&link).1 else { panic!("there is no socket") };
        assert!(why.contains("there is no socket"), "{why}");
    }
    std::fs::rename(&aside, &path).unwrap();
    loop {
        match until_change(&link).1 {
            State::Connected => break,
            State::Connecting | State::Lost(_) => {}
            State::Ended(why) => panic!("{why}"),
        }
    }
    assert!(matches!(next(&link), SourceEvent::Message(FromAgent::Hello(_))));
    drop(link);
    agent.join().unwrap();
}

#[test]
fn pauses_between_attempts_grow_up_to_a_bound() {
    let pauses: Vec<Duration> = std::iter::successors(Some(super::link::BACK_OFF.0), |pause| {
        Some(super::link::longer(*pause))
    })
    .take(7)
    .collect();
    let ms: Vec<u128> = pauses.iter().map(Duration::as_millis).collect();
    assert_eq!(ms, [200, 400, 800, 1600, 2000, 2000, 2000]);
}

#[test]
fn half_a_message_is_a_loss() {
    with(Behaviour::HalfLater, |path, _| {
        let link = Link::open(path).unwrap();
        until_change(&link);
        let State::Lost(why) = until_change(&link).1 else { panic!() };
        assert!(why.contains("within a message"), "{why}");
    });
}

/// Not a test of its own: the agent of the next one, in a process of its own.
#[test]
fn agent_process() {
    let Some(path) = std::env::var_os("HEAPTOP_TEST_AGENT") else { return };
    let agent = fake::serve(Path::new(&path), Behaviour::Normal);
    // Greeted: time to go, as a program that ends does.
    let _ = agent.heard.recv_timeout(Duration::from_secs(30));
    std::process::exit(0);
}

#[test]
fn the_end_of_the_target_is_told_from_a_loss() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("1.sock");
    let mut agent = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "source::tests::agent_process"])
        .env("HEAPTOP_TEST_AGENT", &path)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    let link = loop {
        match Link::open(&path) {
            Ok(link) => break link,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        std::thread::yield_now();
    };
    assert_eq!(link.target().pid, agent.id());
    assert_eq!(until_change(&link).1, State::Connected);
    // It is not waited for yet: a zombie has ended too.
    assert_eq!(until_change(&link).1, State::Ended(
            "the target has exited; what it did last is in no figure: the agent's memory was not to be had".into()
        )
    );
    agent.wait().unwrap();
}

#[test]
fn a_viewer_that_does_not_look_holds_bounded_memory_and_can_go() {
    with(Behaviour::Floods, |path, _| {
        let link = Link::open(path).unwrap();
        until_change(&link);
        // The reader gets a start; whatever it holds by then, dropping frees it.
        for _ in 0..1000 {
            next(&link);
        }
        let inbox = std::sync::Arc::clone(link.inbox());
        drop(link);
        let left = std::iter::from_fn(|| inbox.take(Some(Instant::now()))).count();
        assert!(left < 100_000, "{left}");
        until_alone(&inbox);
    });
}
