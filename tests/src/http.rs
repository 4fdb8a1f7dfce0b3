//! A bounded load for the HTTP server: GET over a few kept connections, each
//! with one request under way.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// One kept connection.
pub struct Connection {
    stream: BufReader<TcpStream>,
    body: Vec<u8>,
}

impl Connection {
    /// Connects to a port on loopback.
    pub fn open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self { stream: BufReader::new(stream), body: Vec::new() })
    }

    /// The body of `GET path`. Any status but 200 is an error.
    pub fn get(&mut self, path: &str) -> io::Result<&[u8]> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        self.stream.get_mut().write_all(request.as_bytes())?;
        let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let (mut line, mut length) = (String::new(), None);
        self.stream.read_line(&mut line)?;
        if !line.starts_with("HTTP/1.1 200 ") {
            return Err(bad(&format!("{path}: {line:?}")));
        }
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(bad("the head ends early"));
            }
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().ok();
            }
        }
        let length = length.ok_or_else(|| bad("no content-length"))?;
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body)?;
        Ok(&self.body)
    }
}

/// The path of request number `n`: a fixed mix of the server's handlers.
#[must_use]
pub fn path(n: u64) -> String {
    match n % 4 {
        0 | 1 => format!("/orders/{}", n % 97),
        2 => format!("/session/{n}"),
        _ => format!("/page/{}", n.wrapping_mul(2_654_435_761) % 509),
    }
}

/// Sends requests `from..to` over `connections` connections, shared out evenly.
///
/// # Panics
///
/// When a request fails.
pub fn load(port: u16, connections: u64, from: u64, to: u64) {
    std::thread::scope(|scope| {
        for first in from..from + connections {
            scope.spawn(move || {
                let mut connection = Connection::open(port).expect("the server accepts");
                let mut n = first;
                while n < to {
                    connection.get(&path(n)).unwrap_or_else(|e| panic!("request {n}: {e}"));
                    n += connections;
                }
            });
        }
    });
}
