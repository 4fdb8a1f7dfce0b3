//! Callstacks of frees: told while a viewer wants them, and to it alone.

use heaptop_protocol::message::{SetMark, WantFreeStacks};
use heaptop_tests::client::Client;
use heaptop_tests::names::Names;
use heaptop_tests::target::Target;
use heaptop_tests::truth::Truths;
use std::collections::HashSet;

/// So few events that they find room though nobody reads for a while.
const SOME: &[(&str, &str)] = &[("HEAPTOP_INTERVAL", "512")];

/// What it wants it has said, and the agent has heard.
fn wants(client: &mut Client, on: bool, label: &str) {
    client.send(&WantFreeStacks { on }.into());
    client.send(&SetMark { label: label.into() }.into());
    client.until("a mark", |told| told.marks.iter().any(|mark| mark.label == label));
}

#[test]
fn who_frees_is_told_to_who_asks() {
    // As two threads: each frees what the other has kept.
    let mut target = Target::start("fixture-exact", &["2"], SOME);
    target.wait_for("ready");
    let mut asks = Client::attach(&target.socket());
    let mut silent = Client::attach(&target.socket());
    wants(&mut asks, true, "on");
    let (before, told) = (asks.told.events[2], asks.told.freed_by.len() as u64);
    target.say("work");
    Truths::read(&mut target);
    target.wait_for("quiet");
    for client in [&mut asks, &mut silent] {
        client.until("deaths", |told| told.events[2] > before + 100);
    }
    let deaths = asks.told.events[2] - before;
    let told = asks.told.freed_by.len() as u64 - told;
    assert_eq!(asks.told.dropped, 0);
    assert_eq!(told, deaths);
    assert!(silent.told.freed_by.is_empty());

    let names = Names::of(&asks.told);
    let stacks: HashSet<_> = asks.told.freed_by.iter().map(|(_, stack)| *stack).collect();
    let functions: Vec<_> =
        stacks.iter().filter_map(|id| asks.told.stacks.get(id)).map(|s| names.stack(s)).collect();
    let by = |wanted: &str| functions.iter().any(|stack| stack.iter().any(|f| f.contains(wanted)));
    assert!(by("release"), "{functions:?}");
}

#[test]
fn who_asks_no_more_is_told_no_more() {
    let mut target = Target::start("fixture-exact", &["2"], SOME);
    target.wait_for("ready");
    let mut client = Client::attach(&target.socket());
    wants(&mut client, true, "on");
    wants(&mut client, false, "off");
    let (before, told) = (client.told.events[2], client.told.freed_by.len());
    target.say("work");
    Truths::read(&mut target);
    target.wait_for("quiet");
    client.until("deaths", |told| told.events[2] > before + 100);
    assert_eq!(client.told.dropped, 0);
    assert_eq!(client.told.freed_by.len(), told);
}
