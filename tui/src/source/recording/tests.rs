//! What a recorder writes is what is told again.

use std::time::{Duration, Instant};

use heaptop_protocol::message::FromAgent;

use crate::record::{How, Recording};
use crate::source::fake::{self, Behaviour};
use crate::source::{Link, SourceEvent, State, file};

#[test]
fn what_is_heard_is_recorded_known_or_not() {
    let directory = tempfile::tempdir().unwrap();
    let [socket, path] = ["1.sock", "a.heaptop"].map(|name| directory.path().join(name));
    let _agent = fake::serve(&socket, Behaviour::UnknownKind);
    let link = Link::open(&socket).unwrap();
    let recording = Recording::start(link, &path, false, 0, || ()).unwrap();
    let unknown = |event: SourceEvent| matches!(event, SourceEvent::UnknownMessage { kind: 777, payload } if payload == [1]);
    let deadline = Instant::now() + Duration::from_secs(60);
    while !file::open(&path).is_ok_and(|mut tell| tell.any(unknown)) {
        assert!(Instant::now() < deadline, "it is written while it is recorded");
        std::thread::yield_now();
    }
    assert_eq!(recording.finish().unwrap(), How::Stopped);
    let mut messages = Vec::new();
    let mut end = None;
    for event in file::open(&path).unwrap() {
        match event {
            SourceEvent::Message(message) => messages.push(message),
            SourceEvent::Connection(State::Ended(how)) => end = Some(how),
            _ => {}
        }
    }
    let mut said = vec![FromAgent::from(fake::hello())];
    said.extend(fake::script());
    // Totals and the status wait until the end.
    let order = |messages: &[FromAgent]| {
        let mut kinds: Vec<u16> = messages.iter().map(FromAgent::kind).collect();
        kinds.sort_unstable();
        kinds
    };
    assert_eq!(order(&messages), order(&said));
    assert!(said.iter().all(|message| messages.contains(message)));
    assert_eq!(end.as_deref(), Some("the recording was ended while the target lived"));
}

#[test]
fn no_file_is_replaced_unasked() {
    let directory = tempfile::tempdir().unwrap();
    let [socket, path] = ["1.sock", "a.heaptop"].map(|name| directory.path().join(name));
    let _agent = fake::serve(&socket, Behaviour::Normal);
    std::fs::write(&path, b"not to be lost").unwrap();
    let link = Link::open(&socket).unwrap();
    let error = Recording::start(link, &path, false, 0, || ()).err().expect("it is there");
    assert!(error.to_string().contains("exists: name another file"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"not to be lost");
    let link = Link::open(&socket).unwrap();
    Recording::start(link, &path, true, 0, || ()).unwrap().finish().unwrap();
    assert!(file::open(&path).is_ok(), "it is replaced when that is said");
}
