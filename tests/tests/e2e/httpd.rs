//! A real program: the HTTP server under load, across 100,000 requests and a
//! viewer that goes and comes back. Its figures lie where its own counters say,
//! and three of its functions differ in promotion.

use crate::near::assert_near;
use heaptop_protocol::totals::Totals;
use heaptop_tests::client::Client;
use heaptop_tests::http::{self, Connection};
use heaptop_tests::names::Names;
use heaptop_tests::target::Target;
use heaptop_tests::truth::Truth;
use std::collections::HashMap;

pub const FUNCTIONS: [&str; 3] = ["list_orders", "put_session", "get_cached"];

/// Starts the server; its port.
pub fn serve(env: &[(&str, &str)]) -> (Target, u16) {
    let mut server = Target::start("fixture-httpd", &[], env);
    let line = server.wait_for_line("the port", |line| line.starts_with("port "));
    let port = line["port ".len()..].parse().expect("a port");
    (server, port)
}

fn truths(port: u16) -> HashMap<String, Truth> {
    let mut connection = Connection::open(port).expect("the server accepts");
    let body = connection.get("/truth").expect("the server answers");
    let text = std::str::from_utf8(body).expect("text");
    text.lines()
        .map(|line| serde_json::from_str::<Truth>(line).expect("a truth"))
        .map(|truth| (truth.function.clone(), truth))
        .collect()
}

/// All requests are answered: the server rests, and its counters stand.
fn compare(client: &mut Client, port: u16) -> HashMap<&'static str, Totals> {
    let truths = truths(port);
    client.snapshot();
    let got = Names::of(&client.told).totals(&client.told, &FUNCTIONS);
    for function in FUNCTIONS {
        let (truth, got) = (&truths[function], &got[function]);
        let allocated = (truth.allocated_objects, truth.allocated_bytes);
        assert_near(&format!("allocated in {function}"), &got.allocated, allocated, allocated);
    }
    let sessions = &truths["put_session"];
    let in_use = (sessions.in_use_objects, sessions.in_use_bytes);
    assert_near("in use in put_session", &got["put_session"].in_use, in_use, in_use);
    got
}

#[test]
fn a_real_server_across_100_000_requests_and_a_viewer_restart() {
    let (server, port) = serve(&[("HEAPTOP_INTERVAL", "8K")]);
    let mut first = Client::attach(&server.socket());
    http::load(port, 4, 0, 50_000);
    compare(&mut first, port);
    let earlier = first.told.status.expect("a status").samples;
    drop(first);

    http::load(port, 3, 50_000, 100_000);
    let mut second = Client::attach(&server.socket());
    let got = compare(&mut second, port);
    let status = second.told.status.expect("a status");
    assert!(status.samples > earlier, "sampling went on while nobody looked");
    assert_eq!((status.losses.births, status.losses.stacks), (0, 0));

    let promoted = FUNCTIONS.map(|f| got[f].promoted.bytes.sum / got[f].minor.bytes.sum);
    let [orders, sessions, pages] = promoted;
    assert!(orders < 0.05, "{promoted:?}");
    assert!(sessions > 0.95, "{promoted:?}");
    assert!((0.15..0.85).contains(&pages), "{promoted:?}");
}
