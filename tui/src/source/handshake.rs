//! The first words with an agent: it greets, its greeting is checked, we greet.

use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use heaptop_protocol::frame::Reader;
use heaptop_protocol::message::check_greeting;
use heaptop_protocol::message::{FromAgent, FromViewer, HandshakeError, Hello, MAGIC, ViewerHello};
use interprocess::local_socket::traits::Stream as _;
use interprocess::os::unix::uds_local_socket::Stream;

use super::LinkError;
use super::socket::{self, Patience, Peer};
use crate::session::names::of_program;

/// Bytes read at once.
const CHUNK: usize = 64 << 10;

/// A connection whose peer has greeted and been greeted. `reader` may hold the
/// next messages already.
pub(super) struct Greeted {
    pub(super) stream: Stream,
    pub(super) reader: Reader,
    pub(super) hello: Hello,
    pub(super) peer: Peer,
}

impl Greeted {
    /// Connects to `socket` and exchanges greetings while there is patience.
    pub(super) fn open(socket: &Path, patience: Patience) -> Result<Self, LinkError> {
        let (stream, peer) = socket::connect(socket, patience)?;
        let mut reader = Reader::default();
        let stranger = || LinkError::Handshake(socket.into(), HandshakeError::Stranger);
        let first = match next((&stream, peer), &mut reader, socket, patience) {
            // Before the greeting, bytes that make no sense are a stranger's.
            Err(LinkError::Frame(_) | LinkError::Message(_)) => return Err(stranger()),
            other => other?,
        };
        let Some(FromAgent::Hello(mut hello)) = first else { return Err(stranger()) };
        check_greeting(hello.magic, hello.version)
            .map_err(|why| LinkError::Handshake(socket.into(), why))?;
        let io = |error: std::io::Error| match error.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => LinkError::HungUp(socket.into()),
            _ => LinkError::Io { doing: "greet", socket: socket.into(), error },
        };
        stream.set_send_timeout(Some(patience.left())).map_err(io)?;
        send(&stream, &FromViewer::Hello(greeting())).map_err(io)?;
        stream.set_send_timeout(None).map_err(io)?;
        stream.set_recv_timeout(None).map_err(io)?;
        hello.name.truncate(of_program(&hello.name).len());
        Ok(Self { stream, reader, hello, peer })
    }

    /// The next message, waited for while there is patience; `None` for one of an
    /// unknown kind.
    pub(super) fn next(
        &mut self,
        socket: &Path,
        patience: Patience,
    ) -> Result<Option<FromAgent>, LinkError> {
        next((&self.stream, self.peer), &mut self.reader, socket, patience)
    }
}

fn greeting() -> ViewerHello {
    ViewerHello {
        magic: MAGIC,
        version: heaptop_protocol::VERSION,
        client: concat!("heaptop ", env!("CARGO_PKG_VERSION")).into(),
    }
}

/// Writes a message, whole.
pub(super) fn send(mut stream: &Stream, message: &FromViewer) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    if !message.write(&mut bytes) {
        return Err(std::io::Error::new(ErrorKind::InvalidInput, "the message is too long"));
    }
    stream.write_all(&bytes)
}

fn next(
    (mut stream, peer): (&Stream, Peer),
    reader: &mut Reader,
    socket: &Path,
    patience: Patience,
) -> Result<Option<FromAgent>, LinkError> {
    let silent =
        || LinkError::Silent { socket: socket.into(), pid: peer.pid, waited: patience.time };
    let mut chunk = vec![0; CHUNK];
    loop {
        if let Some(frame) = reader.next().map_err(LinkError::Frame)? {
            return FromAgent::read(&frame).map_err(LinkError::Message);
        }
        // A peer that sends a byte now and then must not keep us.
        if patience.is_over() {
            return Err(silent());
        }
        let read =
            stream.set_recv_timeout(Some(patience.left())).and_then(|()| stream.read(&mut chunk));
        match read {
            Ok(0) => return Err(LinkError::HungUp(socket.into())),
            Ok(n) => reader.feed(&chunk[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(silent());
            }
            Err(e) if e.kind() == ErrorKind::ConnectionReset => {
                return Err(LinkError::HungUp(socket.into()));
            }
            Err(error) => {
                return Err(LinkError::Io { doing: "read from", socket: socket.into(), error });
            }
        }
    }
}
