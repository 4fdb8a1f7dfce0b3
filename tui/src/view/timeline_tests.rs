//! The timeline, driven by keys and the mouse.

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use heaptop_protocol::message::{History, HistoryPoint, Mark, Phase};

use super::testing::{drawn, press, run, screen, styles, text};
use crate::app::{App, Message};
use crate::query::When;
use crate::session::fixture::Fixture;

/// Three minutes of a service that a viewer watches from the first on: a cache that
/// stays, a leak, and a job that takes much in the middle.
fn service() -> Fixture {
    let mut f = Fixture::unattached(64 << 10);
    let cache = f.stack(&["main", "orders::cache::fill_cache@orders/src/cache.rs:88"]);
    let leak = f.stack(&["main", "orders::auth::forget_session@orders/src/auth.rs:41"]);
    let job = f.stack(&["main", "orders::report::monthly@orders/src/report.rs:7"]);
    let small: Vec<_> =
        (0..6).map(|i| f.stack(&["main", &format!("orders::misc::m{i}@m.rs:{i}")])).collect();
    let mut points = Vec::new();
    for second in 0..60 {
        f.alloc(cache, 70_000);
        f.pass(1.0);
        let bytes = f64::from(second + 1) * 1.05e5;
        points.push(HistoryPoint {
            time_ns: f.time_ns,
            in_use_bytes: bytes,
            allocated_bytes: bytes,
            promoted_bytes: 0.0,
            rss_bytes: Some(50 << 20),
        });
    }
    f.attach();
    f.say(History { whole: true, points });
    let mut held = Vec::new();
    for second in 0..120 {
        let leaked = f.alloc(leak, 1500);
        f.promote(leaked);
        f.alloc(small[second % 6], 3000);
        if (40..60).contains(&second) {
            held.push(f.alloc(job, 300_000));
        }
        if second == 80 {
            f.time_ns += 500_000_000;
            held.drain(..).for_each(|block| f.free(block));
        }
        if second == 20 {
            let at = f.now();
            f.say(Mark { at, label: "deploy 17".into() });
        }
        if let Some(name) = [(62, "billing"), (100, "")].iter().find(|p| p.0 == second) {
            let at = f.now();
            f.say(Phase { at, name: name.1.into() });
        }
        f.pass(1.0);
    }
    f
}

#[test]
fn at_every_size() {
    let f = service();
    for (width, height) in [(20, 5), (40, 12), (80, 24), (120, 40), (300, 80)] {
        let shown = screen(&f.session, (width, height), "4");
        insta::assert_snapshot!(format!("timeline_{width}x{height}"), shown);
    }
}

#[test]
fn a_moment_a_range_and_the_peak() {
    let f = service();
    let size = (80, 24);
    insta::assert_snapshot!(
        "timeline_moment",
        screen(&f.session, size, &format!("4{}", ",".repeat(70)))
    );
    insta::assert_snapshot!("timeline_peak", screen(&f.session, size, "4P"));
    let range = format!("4{}{{{}}}", ",".repeat(70), ".".repeat(40));
    let app = run(&f.session, size, &range);
    insta::assert_snapshot!("timeline_range", text(&drawn(&app, size)));
    insta::assert_snapshot!("timeline_range_styles", styles(&drawn(&app, size)));
}

/// What the legend says of a callsite.
fn said(app: &App, name: &str) -> String {
    let shown = text(&drawn(app, (120, 40)));
    let line = shown.lines().find(|line| line.contains(name));
    line.unwrap_or_else(|| panic!("{name} in {shown}")).split("  ").last().unwrap().trim().into()
}

#[test]
fn the_legend_is_of_the_cursor() {
    let f = service();
    let mut app = run(&f.session, (120, 40), "4");
    assert!(said(&app, "monthly").starts_with('<'), "{}", said(&app, "monthly"));
    press(&mut app, &f.session, "P");
    assert!(said(&app, "monthly").contains("MiB ±"), "{}", said(&app, "monthly"));
}

#[test]
fn every_screen_obeys_the_mouse() {
    let f = service();
    let mut app = run(&f.session, (80, 24), "4");
    let chart = app.timeline_layout().chart;
    let mouse = |app: &mut App, kind, x: u16, y: u16| {
        let event = MouseEvent { kind, column: x, row: y, modifiers: KeyModifiers::NONE };
        app.update(Message::Mouse(event), &f.session);
    };
    let (down, drag) =
        (MouseEventKind::Down(MouseButton::Left), MouseEventKind::Drag(MouseButton::Left));
    let middle = chart.x + chart.width / 2;
    mouse(&mut app, down, middle, chart.y + 2);
    let When::At(at) = app.question().when else { panic!("{:?}", app.question().when) };
    // 181 seconds, from the second on.
    assert!(at.abs_diff(91_000_000_000) < 3_000_000_000, "{at}");
    mouse(&mut app, drag, middle + 10, chart.y + 2);
    mouse(&mut app, drag, u16::MAX, 0);
    let When::Range { from_ns, to_ns } = app.question().when else {
        panic!("{:?}", app.question().when)
    };
    assert_eq!(from_ns, at);
    assert!(to_ns > 178_000_000_000, "{to_ns}");
    press(&mut app, &f.session, "1");
    assert!(text(&drawn(&app, (80, 24))).contains("1 m 3"), "the callsites are of it");
    // Before heaptop came there is nothing to go to.
    press(&mut app, &f.session, "4\\");
    mouse(&mut app, down, chart.x, chart.y);
    assert_eq!(app.question().when, When::At(f.session.span().unwrap().0));
    let note = app.note().unwrap_or_default().to_owned();
    assert!(note.starts_with("before 1 m 01 s the curve alone is known"), "{note}");
    // Beside the charts nothing happens; on a list a press selects.
    press(&mut app, &f.session, "4\\");
    mouse(&mut app, down, 1, chart.y);
    mouse(&mut app, drag, middle, chart.y);
    assert_eq!(app.question().when, When::Now);
    press(&mut app, &f.session, "1");
    let body = app.rooms().above_body();
    mouse(&mut app, down, 5, body + 2);
    mouse(&mut app, MouseEventKind::ScrollDown, 5, body);
    mouse(&mut app, down, 5, 0);
    let shown = text(&drawn(&app, (80, 24)));
    assert!(shown.lines().nth(usize::from(body) + 5).unwrap().starts_with('▸'), "{shown}");
}

#[test]
fn a_callsite_of_the_legend_has_callers() {
    let f = service();
    let mut app = run(&f.session, (80, 24), "4↓⏎");
    let shown = text(&drawn(&app, (80, 24)));
    assert!(shown.contains(" callers ") && shown.contains("main"), "{shown}");
    press(&mut app, &f.session, "⎋");
    assert!(text(&drawn(&app, (80, 24))).contains("in use since the start"), "back");
}

#[test]
fn the_title_says_that_it_plays_and_how_to_stop() {
    let f = service();
    for size in [(80, 24), (120, 40)] {
        for screen in ["1", "3", "4", "7"] {
            let mut app = run(&f.session, size, &format!("{screen},p"));
            let title = |app: &App| text(&drawn(app, size)).lines().next().unwrap().to_owned();
            let playing = title(&app);
            assert!(playing.contains(" PLAYING ") && playing.contains("· p stops "), "{playing}");
            press(&mut app, &f.session, "p");
            let stopped = title(&app);
            assert!(!stopped.contains("PLAYING") && stopped.contains("· \\ live "), "{stopped}");
        }
    }
}

/// A legend and a chart that say the same, whatever the filter.
#[test]
fn the_rest_of_the_chart_is_named() {
    let f = service();
    let shown = screen(&f.session, (120, 40), "4/cache⏎");
    let lines = |sign: &str| shown.lines().filter(|line| line.contains(sign)).count();
    assert!(shown.contains(" · not in the filter  ") && lines("·") > 10, "{shown}");
    assert!(!shown.contains("others"), "{shown}");
    let rest = shown.lines().find(|line| line.contains("not in the filter")).unwrap();
    assert!(rest.contains("MiB ±"), "{rest}");
    // On a few lines not all of the filter's callsites are told apart.
    let few = screen(&f.session, (80, 24), "4/misc⏎");
    assert!(few.contains(" · not in the filter, and 2 others that are  "), "{few}");

    // Of single blocks nothing is known over time: no row has a filling, the chart has none.
    for size in [(80, 24), (120, 40)] {
        let shown = screen(&f.session, size, "4/size>2000⏎");
        assert!(shown.contains(" ' in use, all blocks"), "{shown}");
        let chart: String = shown.lines().skip(5).collect();
        for filling in ["▓", "▒", "░", "▞", "╱", "○", " · "] {
            assert!(!chart.contains(filling), "{filling} {shown}");
        }
        assert!(shown.contains("''") && shown.contains("orders::misc::m0"), "{shown}");
    }
}

/// Where there are no others nothing is said of them.
#[test]
fn no_others_have_no_line() {
    let mut f = Fixture::new(4096);
    let stack = f.stack(&["main", "only"]);
    f.alloc(stack, 1 << 20);
    f.pass(10.0);
    for size in [(80, 24), (120, 40)] {
        let shown = screen(&f.session, size, "4");
        assert!(shown.contains("█ only") && !shown.contains("others"), "{shown}");
    }
}

/// What is full up to its top has the filling of what is there, not that of the first callsite.
#[test]
fn the_top_of_a_full_column_has_its_own_filling() {
    let f = service();
    for (width, height) in [(80, 24), (120, 40), (300, 80)] {
        let app = run(&f.session, (width, height), "4/nothing⏎");
        let chart = app.timeline_layout().chart;
        let buffer = drawn(&app, (width, height));
        let column = |x| (chart.y..chart.bottom()).map(move |y| (x, y));
        for at in (chart.x..chart.right()).flat_map(column) {
            assert_ne!(buffer[at].symbol(), "█", "{at:?} of {width}");
        }
        let full = (chart.x..chart.right()).any(|x| buffer[(x, chart.y)].symbol() == "·");
        assert!(full, "{width}");
    }
}
