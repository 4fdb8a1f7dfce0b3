//! Screen 6, on threads of which one frees what another allocates.

use super::testing::{press, run, screen};
use crate::app::{App, Screen};
use crate::query::thread_name;
use crate::session::fixture::Fixture;
use heaptop_protocol::ids::ThreadId;

/// Two threads that allocate, and one that frees half of what the first does.
fn shop() -> Fixture {
    let mut f = Fixture::new(1024);
    let stack = f.stack(&["main", "orders::queue::push@orders/src/queue.rs:12"]);
    for (id, name) in [(1, "acceptor"), (2, "worker"), (3, "\x1b[31mlogger")] {
        f.name_thread(id, name);
    }
    for i in 0..400_u64 {
        f.thread = ThreadId(1);
        let parcel = f.alloc(stack, 10_000);
        f.thread = ThreadId(2);
        let own = f.alloc(stack, 1000);
        f.pass(0.05);
        if i % 2 == 0 {
            f.free(parcel);
        }
        f.free(own);
    }
    f.pass(0.5);
    f
}

fn names(app: &App) -> Vec<String> {
    let Screen::Threads(threads) = app.screen() else { panic!("{:?}", app.screen()) };
    threads.rows.as_ref().unwrap().iter().map(thread_name).collect()
}

#[test]
fn at_every_size() {
    let f = shop();
    for size in [(20, 5), (80, 24), (120, 40), (300, 80)] {
        let name = format!("threads_{}x{}", size.0, size.1);
        insta::assert_snapshot!(name, screen(&f.session, size, "6"));
    }
}

#[test]
fn they_are_sorted_and_filtered() {
    let f = shop();
    let mut app = run(&f.session, (120, 40), "6");
    assert_eq!(names(&app), ["acceptor", "worker"], "by what is in use");
    press(&mut app, &f.session, "S");
    assert_eq!(names(&app), ["worker", "acceptor"]);
    press(&mut app, &f.session, "ssssss");
    assert_eq!(names(&app), ["acceptor", "worker"], "by name");
    press(&mut app, &f.session, "/thread:work⏎");
    assert_eq!(names(&app), ["worker"]);
}
