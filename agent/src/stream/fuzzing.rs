//! A viewer's bytes, through a socket and a [`Peer`].

use super::peer::Peer;
use heaptop_protocol::message::{FromAgent, Stopped};
use interprocess::local_socket::Stream;
use std::io::Write;
use std::os::unix::net::UnixStream;

/// Has a viewer say `bytes`, in pieces of `cut`; how many commands came of it.
pub fn listen(bytes: &[u8], cut: usize) -> usize {
    let Ok((mut viewer, agent)) = UnixStream::pair() else { return 0 };
    if agent.set_nonblocking(true).is_err() {
        return 0;
    }
    let stream = Stream::UdSocket(agent.into());
    let mut peer = Peer::new(stream, FromAgent::from(Stopped { reason: String::new() }), None, 0);
    let mut commands = 0;
    for piece in bytes.chunks(cut) {
        if viewer.write_all(piece).is_err() {
            break;
        }
        match peer.listen(0) {
            Ok(wanted) => commands += wanted.len(),
            Err(error) => {
                assert!(!error.to_string().is_empty());
                break;
            }
        }
    }
    commands
}
