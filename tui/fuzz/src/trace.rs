//! memtrace's traces: any bytes, and events of any bytes in packets that are sound, so
//! that most of what is tried is not refused at the door. What is sound is told, ends with
//! a sentence, and is written as a trace that is sound as a whole.

#![no_main]

#[path = "../../../protocol/fuzz/src/seeds.rs"]
mod seeds;

use heaptop::ctf::{
    self, Birth, DumpError, Info, Location, Reader, Source, Writer, convert, dump, tell,
};
use heaptop::session::{Connection, Input, Session};
use heaptop::source::{SourceEvent, State};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

/// The process of the packets that are made here.
const PID: i64 = 7;
const START: i64 = (1 << 40) - 3;

fuzz_target!(init: seeds::write(seeds), |data: &[u8]| {
    let Some((&mode, data)) = data.split_first() else { return };
    let trace = match mode % 4 {
        0 => data.to_vec(),
        version => wrapped(u16::from(version), data),
    };
    let mut text = Vec::new();
    let whole = match Reader::new(&trace[..]) {
        Ok(mut reader) => match dump(&mut reader, &mut text) {
            Ok(()) => true,
            Err(DumpError::Trace(error)) => {
                assert!(!error.to_string().contains('\n'));
                false
            }
            Err(DumpError::Write(error)) => panic!("a vector is not full: {error}"),
        },
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(tell(Cursor::new(trace), 0).is_err());
            return;
        }
    };
    heard(&trace, whole);
    written(&trace, &text);
});

/// A session hears it, to the end.
fn heard(trace: &[u8], whole: bool) {
    let teller = tell(Cursor::new(trace.to_vec()), trace.len() as u64).expect("it can be dumped");
    let mut session = Session::new();
    let (mut last, mut damaged) = (None, false);
    for event in teller {
        assert!(last.is_none(), "behind the end");
        match event {
            SourceEvent::Damage(damage) => {
                assert!(!damage.how.is_empty() && !damage.how.contains('\n'));
                damaged = true;
                session.apply(Input::Damage(damage));
            }
            SourceEvent::Message(message) => session.apply(Input::Agent(message)),
            SourceEvent::Names(names) => session.apply(Input::Names(names)),
            SourceEvent::Connection(State::Ended(how)) => last = Some(how),
            other => panic!("{other:?}"),
        }
    }
    let last = last.expect("it ends");
    assert_eq!(last.starts_with("the trace is over"), whole, "{last}");
    assert_eq!(damaged, !whole, "what cannot be read is told as damage");
    session.apply(Input::Connection(Connection::Ended(last)));
    let status = session.status().expect("a status comes first and last");
    assert_eq!(status.live_blocks as usize, session.live_block_count());
    let in_use = status.totals.in_use.bytes.sum;
    assert!(in_use.is_finite() && in_use >= 0.0);
}

/// What is written of it is sound, and of one stream has as many events.
fn written(trace: &[u8], text: &[u8]) {
    let mut reader = Reader::new(trace).expect("it was read");
    let one_stream = reader.info().version < 3;
    let mut out = Vec::new();
    let done = convert(&mut reader, &mut out).expect("a vector is not full");
    assert!(ctf::is_ctf(&out));
    let mut again = Vec::new();
    let mut reader = Reader::new(&out[..]).expect("it was written");
    if let Err(error) = dump(&mut reader, &mut again) {
        panic!("{error:?}, of {:?}", done.error);
    }
    if one_stream {
        let lines = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
        // A name may hold one.
        assert!(lines(text) == lines(&again) || trace.contains(&b'\n'));
    }
}

/// Packets with sound headers around what `data` has for events: by each, how many
/// bytes, the domain, and how many births there are said to be.
fn wrapped(version: u16, mut data: &[u8]) -> Vec<u8> {
    let mut body = ((START & 0x1FF_FFFF) as u32).to_le_bytes().to_vec();
    body.extend(0.01f64.to_le_bytes());
    body.extend(b"\x40exe\0\0s=9\0");
    body.extend(PID.to_le_bytes());
    if version >= 2 {
        body.push(0);
    }
    let mut trace = Vec::new();
    packet(&mut trace, version, 0, (START, START), (0, 0), &body);
    let mut id = 0;
    while let Some((&[bytes, domain, births], rest)) = data.split_first_chunk() {
        let (body, rest) = rest.split_at(rest.len().min(bytes.into()));
        data = rest;
        let end = id + i64::from(births % 16);
        packet(
            &mut trace,
            version,
            u16::from(domain % 3),
            (START, START + (1 << 24)),
            (id, end),
            body,
        );
        id = end;
    }
    trace
}

fn packet(
    out: &mut Vec<u8>,
    version: u16,
    domain: u16,
    (begin, until): (i64, i64),
    (id, end): (i64, i64),
    body: &[u8],
) {
    let header = if version < 3 { 66 } else { 68 };
    out.extend(0xC1FC_1FC1_u32.to_le_bytes());
    out.extend(((header + body.len()) as u32 * 8).to_le_bytes());
    out.extend(begin.to_le_bytes());
    out.extend(until.to_le_bytes());
    out.extend(0u32.to_le_bytes());
    out.extend(version.to_le_bytes());
    out.extend(PID.to_le_bytes());
    if version >= 3 {
        out.extend(domain.to_le_bytes());
    }
    out.extend([0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.extend(id.to_le_bytes());
    out.extend(end.to_le_bytes());
    out.extend_from_slice(body);
}

/// A small trace as heaptop writes it, and its events alone.
fn seeds() -> Vec<Vec<u8>> {
    let info = Info {
        start_us: START,
        sample_rate: 0.01,
        word_size: 64,
        executable: b"seed".to_vec(),
        host: b"host".to_vec(),
        parameters: b"s=4096".to_vec(),
        pid: PID,
        context: Vec::new(),
        version: 2,
    };
    let place = |code: u64| Location {
        file: format!("f{}.ml", code % 2).into_bytes().into(),
        function: format!("M.f{code}").into_bytes().into(),
        line: 7,
        start: 1,
        end: 9,
    };
    let places: Vec<Vec<Location>> =
        (0..5).map(|code| vec![place(code); code as usize % 3]).collect();
    let mut writer = Writer::new(Vec::new(), &info).expect("a vector is not full");
    for n in 0..12i64 {
        let source = [Source::Minor, Source::Major, Source::External][n as usize % 3];
        let stack: Vec<u64> = (0..=n as u64).map(|frame| frame % 5).collect();
        let (time_us, length, n_samples) = (START + n, 3 * n as u64 + 1, 1 + n as u64 / 4);
        let birth = Birth { time_us, length, n_samples, source, common: None, stack: &stack };
        writer.alloc(&birth, |code| &places[code as usize]).expect("a vector is not full");
        writer.promote(START + n, n / 2).expect("a vector is not full");
        writer.collect(START + n, n / 2).expect("a vector is not full");
    }
    let trace = writer.finish().expect("a vector is not full");
    // The packets behind the first, each as `wrapped` takes it.
    let mut events = Vec::new();
    let mut at = 0;
    while let Some(bits) = trace.get(at + 4..at + 8) {
        let end = at + u32::from_le_bytes([bits[0], bits[1], bits[2], bits[3]]) as usize / 8;
        let body = &trace[at + 66..end];
        if at > 0 && body.len() < 256 {
            events.extend([body.len() as u8, 0, 12]);
            events.extend(body);
        }
        at = end;
    }
    let with = |mode: u8, bytes: &[u8]| [&[mode], bytes].concat();
    vec![with(0, &trace), with(1, &events), with(2, &events), with(3, &events)]
}
