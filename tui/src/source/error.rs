//! What can go wrong on the way to a target, one sentence each: what, where,
//! what to do.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use heaptop_protocol::frame::FrameError;
use heaptop_protocol::message::{HandshakeError, MessageError};

/// Why there is no connection, or no more.
#[derive(Debug)]
pub enum LinkError {
    /// There is no such socket.
    Missing(PathBuf),
    /// Nobody listens at the socket: its process is gone.
    Stale(PathBuf),
    /// The target takes no connection: its queue of callers is full.
    Busy {
        /// Where.
        socket: PathBuf,
        /// Its pid, as its socket's name says.
        pid: Option<u32>,
        /// How long it was waited for.
        waited: Duration,
    },
    /// It took the connection and said nothing, or no whole message.
    Silent {
        /// Where.
        socket: PathBuf,
        /// Its pid.
        pid: u32,
        /// How long it was waited for.
        waited: Duration,
    },
    /// It hung up before it greeted.
    HungUp(PathBuf),
    /// The socket belongs to another user.
    Foreign {
        /// Where.
        socket: PathBuf,
        /// Whose.
        uid: u32,
    },
    /// Its process cannot be seen from here.
    OutOfSight(PathBuf),
    /// The directory of sockets cannot be trusted.
    Directory {
        /// Which.
        path: PathBuf,
        /// What is wrong, and how to put it right.
        why: String,
    },
    /// The path does not fit into a socket's address.
    TooLong(PathBuf),
    /// It is no agent, or of another version.
    Handshake(PathBuf, HandshakeError),
    /// The stream is damaged.
    Frame(FrameError),
    /// A message is damaged.
    Message(MessageError),
    /// The system refuses.
    Io {
        /// At what.
        doing: &'static str,
        /// Where.
        socket: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl std::fmt::Display for LinkError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing(path) => {
                write!(f, "there is no socket {}: see `heaptop list` for targets", path.display())
            }
            Self::Stale(path) => write!(
                f,
                "nobody listens at {}: its process is gone, see `heaptop list` for others",
                path.display()
            ),
            Self::Busy { socket, pid, waited } => {
                let pid = pid.map_or("PID".into(), |pid| pid.to_string());
                write!(
                    f,
                    "the target at {} takes no connection within {} s: it may be stopped (`kill -CONT {pid}`), too busy, or have too many viewers",
                    socket.display(),
                    waited.as_secs_f32()
                )
            }
            Self::Silent { socket, pid, waited } => write!(
                f,
                "the target at {} does not answer within {} s: it may be stopped (`kill -CONT {pid}`) or too busy",
                socket.display(),
                waited.as_secs_f32()
            ),
            Self::HungUp(path) => write!(
                f,
                "the target at {} hung up before it greeted: it may be ending, try again",
                path.display()
            ),
            Self::Foreign { socket, uid } => write!(
                f,
                "the socket {} belongs to user {uid}: attach as that user or as root",
                socket.display()
            ),
            Self::OutOfSight(path) => write!(
                f,
                "the target at {} lies in a pid namespace that cannot be seen from here: run heaptop in it, or outside of all containers",
                path.display()
            ),
            Self::Directory { path, why } => {
                write!(f, "the directory {} cannot be trusted: {why}", path.display())
            }
            Self::TooLong(path) => write!(
                f,
                "the path {} does not fit into a socket's address: set HEAPTOP_DIR to a shorter directory, for target and viewer",
                path.display()
            ),
            Self::Handshake(path, why) => write!(f, "cannot talk to {}: {why}", path.display()),
            Self::Frame(why) => write!(f, "the connection is of no more use: {why}"),
            Self::Message(why) => write!(f, "the connection is of no more use: {why}"),
            Self::Io { doing, socket, error } => {
                write!(f, "cannot {doing} {}: {error}", socket.display())
            }
        }
    }
}

impl std::error::Error for LinkError {}
