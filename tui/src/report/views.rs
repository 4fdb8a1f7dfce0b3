//! The tables.

use super::text::moment;
use super::{Asked, Cell, Column, Heading, Report, View, course, leaks};
use crate::export;
use crate::query::filter;
use crate::query::{
    self, Callsites, Direction, Figures, Grouping, Label, Metric, Node, NodeKey, PromotionColumn,
    Sorted, ThreadRow, When,
};
use crate::session::figures::Estimate;
use crate::session::then::by::By;
use crate::session::{Connection, Session};
use crate::source::STILL_WRITTEN;
use crate::times;
use crate::view::format::Unit;
use std::collections::BinaryHeap;

pub(super) const fn column(id: &'static str, title: &'static str) -> Column {
    Column { id, title }
}

pub(super) const FUNCTION: Column = column("function", "callsite");
pub(super) const LOCATION: Column = column("location", "");

pub(super) fn names(label: &Label) -> [Cell; 2] {
    [Cell::Function(label.clone(), 0), Cell::Text(label.location.to_string())]
}

pub(super) fn sum() -> [Cell; 2] {
    [Cell::Text("all".into()), Cell::Text(String::new())]
}

/// Makes the report.
pub fn report(session: &Session, asked: &Asked) -> Result<Report, String> {
    let when = if asked.view == View::Peak {
        times::peak(session).unwrap_or(When::Peak)
    } else {
        asked.when
    };
    let when = when.until(session.now_ns());
    let asked = &Asked { when, ..asked.clone() };
    let report = match asked.view {
        View::Callsites => callsites(session, asked),
        View::Callers => callers(session, asked)?,
        View::Promotion => promotion(session, asked),
        View::Threads => threads(session, asked),
        View::Peak => peak(session, asked),
        View::Leaks => leaks::leaks(session, asked),
        View::Course => course::course(session, asked),
        View::External => course::external(session, asked),
    };
    Ok(noted(session, asked, report))
}

/// With notes on what of the time is not known, and that more may come.
#[must_use]
pub fn noted(session: &Session, asked: &Asked, mut report: Report) -> Report {
    report.notes.extend(unknown(session, asked));
    if let Connection::Ended(how) = session.connection()
        && how.starts_with(STILL_WRITTEN)
    {
        report.notes.push(how.clone());
    }
    report
}

/// What of the time asked about nothing is known of.
fn unknown(session: &Session, asked: &Asked) -> Option<String> {
    let from_ns = match asked.when {
        When::At(at) => at,
        When::Range { from_ns, .. } => from_ns,
        When::Peak if session.peak().is_none() => {
            return Some("no peak is known, or nothing of it: the target has not told".into());
        }
        When::Peak | When::Now => return None,
    };
    let Some((from, to)) = session.span() else {
        return Some("no snapshot is complete: nothing is known of the past".into());
    };
    (from_ns < from).then(|| {
        format!(
            "what happened before {} is not known: any moment from then until {} can be asked about",
            moment(from, session.span()),
            moment(to, session.span())
        )
    })
}

fn heading(session: &Session, asked: &Asked) -> Heading {
    let hello = session.hello();
    let losses = session.losses();
    let when = asked.when;
    Heading {
        target: hello.map(|h| h.name.clone()).unwrap_or_default(),
        pid: hello.map(|h| h.pid).filter(|pid| *pid > 0),
        started_unix_ns: hello.map_or(0, |h| h.started_unix_ns),
        when,
        at_ns: match when {
            When::At(at) | When::Range { to_ns: at, .. } => at,
            When::Now => session.now_ns(),
            When::Peak => session.told_peak().map_or(0, |peak| peak.time_ns),
        },
        is_peak: match when {
            When::Peak => true,
            When::At(_) => times::peak(session) == Ok(when),
            When::Now | When::Range { .. } => false,
        },
        span: session.span(),
        interval_bytes: session.status().map(|s| s.interval.bytes()),
        lost_births: losses.births,
        lost_stacks: losses.stacks,
        lost_events: losses.unsent,
        thinned: losses.thinned,
        filter: asked.filter.clone(),
        unattributed: (when == When::Now).then(|| session.unattributed()).flatten(),
        ended: match session.connection() {
            // What is still being written has not ended: a note says it.
            Connection::Ended(how) if how.starts_with(STILL_WRITTEN) => None,
            Connection::Ended(how) | Connection::Lost(how) => Some(how.clone()),
            Connection::Connecting | Connection::Connected => None,
        },
        damage: session.damage().iter().map(|damage| damage.how.clone()).collect(),
    }
}

pub(super) fn made(
    session: &Session,
    asked: &Asked,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    total: Option<Vec<Cell>>,
    len: usize,
) -> Report {
    let heading = heading(session, asked);
    let mut notes: Vec<String> = session.tracks_less().into_iter().map(str::to_owned).collect();
    let of_blocks = filter::parse(&asked.filter).is_ok_and(|filter| filter.is_of_blocks());
    if let (Some((from, _)), true) = (session.span(), of_blocks && asked.view != View::Course) {
        let from = moment(from, session.span());
        notes.push(format!(
            "the filter is of single blocks: what was over before {from}, when {}, is in no figure",
            came(session)
        ));
    }
    Report { view: asked.view, heading, columns, rows, total, len, notes, sorted: "" }
}

/// Whether there will be no more of it: it was recorded.
pub(super) fn recorded(session: &Session) -> bool {
    *session.connection() != Connection::Connected
}

/// What happened when that began of which anything is known.
pub(super) fn came(session: &Session) -> &'static str {
    if recorded(session) { "the recording began" } else { "heaptop came" }
}

/// A column of the screen, as reports call it; empty where they have none.
const fn id(column: query::Column) -> &'static str {
    use query::Column;
    match column {
        Column::InUseBytes => "in_use_bytes",
        Column::InUseObjects => "in_use_objects",
        Column::AllocatedBytes => "allocated_bytes",
        Column::AllocatedObjects => "allocated_objects",
        Column::AllocatedRate => "allocated_bytes_per_second",
        Column::Promoted => "promoted_share",
        Column::ShortLived => "short_lived_share",
        Column::Lifetime => "median_lifetime_ns",
        Column::MeanLifetime => "mean_lifetime_ns",
        Column::Cum => "cum_in_use_bytes",
        Column::Growth => "growth_bytes",
        Column::Callsite | Column::ObjectRate | Column::Trend => "",
    }
}

fn question(asked: &Asked) -> query::Question {
    let sort = match asked.metric {
        Metric::InUseBytes => query::Column::InUseBytes,
        Metric::InUseObjects => query::Column::InUseObjects,
        Metric::AllocatedBytes => query::Column::AllocatedBytes,
        Metric::AllocatedObjects => query::Column::AllocatedObjects,
        Metric::PromotedBytes => query::Column::Promoted,
        Metric::ShortLivedBytes => query::Column::ShortLived,
    };
    let (filter, when, group) = (asked.filter.clone(), asked.when, asked.group);
    query::Question { sort, filter, when, group, ..query::Question::default() }
}

pub(super) fn callsites(session: &Session, asked: &Asked) -> Report {
    as_shown(session, asked, &question(asked))
}

/// The callsites as a screen asks for them: in its order, of its class.
#[must_use]
pub fn as_shown(session: &Session, asked: &Asked, question: &query::Question) -> Report {
    let ranged = matches!(asked.when, When::Range { .. });
    let grown = ranged || question.growth_from_ns.is_some();
    let mut columns = vec![
        FUNCTION,
        LOCATION,
        column("in_use_bytes", "in use"),
        column("in_use_objects", "objects"),
        column("allocated_bytes", "allocated"),
        column("allocated_objects", "objects"),
        column("allocated_bytes_per_second", "alloc/s"),
        column("promoted_share", "promoted"),
        column("short_lived_share", "dies young"),
        column("median_lifetime_ns", "lifetime"),
        column("mean_lifetime_ns", "mean life"),
    ];
    columns[0] = match asked.group {
        Grouping::Callsite => FUNCTION,
        Grouping::Function => column("function", "function"),
        Grouping::File => column("file", "file"),
        Grouping::Crate => column("crate_or_module", "crate or module"),
        Grouping::Size => column("size_class", "size"),
        Grouping::Thread => column("thread", "thread"),
    };
    let cum = asked.group == Grouping::Function;
    if cum {
        columns.push(column("cum_in_use_bytes", "cum"));
    }
    if grown {
        columns.push(column("growth_bytes", "growth"));
        columns.push(column("grew", ""));
    }
    let cells = |names: [Cell; 2], f: &Figures| -> Vec<Cell> {
        let mut cells = names.to_vec();
        cells.extend([
            Cell::Estimate(f.in_use_bytes, Unit::Bytes),
            Cell::Estimate(f.in_use_objects, Unit::Objects),
            Cell::Estimate(f.allocated_bytes, Unit::Bytes),
            Cell::Estimate(f.allocated_objects, Unit::Objects),
            Cell::Estimate(f.allocated_rate, Unit::BytesPerSecond),
            Cell::Share(f.promoted),
            Cell::Share(f.short_lived),
            Cell::Lifetime(f.lifetime),
            Cell::Followed(f.mean),
        ]);
        if cum {
            cells.push(Cell::Estimate(f.cum, Unit::Bytes));
        }
        if grown {
            cells.push(Cell::Change(f.growth));
            cells.push(Cell::Mark(f.grew, "grew"));
        }
        cells
    };
    let table = Callsites::ask(session, question).table(0..asked.top);
    let rows = table.rows.iter().map(|row| cells(names(&row.label), &row.figures)).collect();
    let total = cells(sum(), &table.total);
    let mut report = made(session, asked, columns, rows, Some(total), table.len);
    report.sorted = id(question.sort);
    let blocks = asked.group.by() != By::Group;
    if let (Some((from, _)), true, false) = (session.span(), blocks, ranged) {
        let (from, [_, many]) = (moment(from, session.span()), asked.group.names());
        report.notes.push(format!("{many} are counted from {from} on, when {}", came(session)));
    }
    report
}

fn peak(session: &Session, asked: &Asked) -> Report {
    let columns = vec![
        FUNCTION,
        LOCATION,
        column("in_use_bytes", "in use"),
        column("in_use_objects", "objects"),
    ];
    let cells = |names: [Cell; 2], f: &Figures| -> Vec<Cell> {
        let mut cells = names.to_vec();
        cells.push(Cell::Estimate(f.in_use_bytes, Unit::Bytes));
        cells.push(Cell::Estimate(f.in_use_objects, Unit::Objects));
        cells
    };
    let sort = match asked.metric {
        Metric::InUseObjects => query::Column::InUseObjects,
        _ => query::Column::InUseBytes,
    };
    let question = query::Question { sort, ..question(asked) };
    let table = Callsites::ask(session, &question).table(0..usize::MAX);
    // What had nothing in use then is no part of the peak: it is not counted either.
    let none = Estimate::Exact { value: 0.0 };
    let there =
        |f: &Figures| f.in_use_bytes != none && !matches!(f.in_use_bytes, Estimate::Below { .. });
    let there = || table.rows.iter().filter(|row| there(&row.figures));
    let rows = there().take(asked.top).map(|row| cells(names(&row.label), &row.figures)).collect();
    let total = cells(sum(), &table.total);
    let len = there().count();
    Report { sorted: id(sort), ..made(session, asked, columns, rows, Some(total), len) }
}

fn promotion(session: &Session, asked: &Asked) -> Report {
    promotion_as_shown(session, asked, Sorted::default())
}

/// What is promoted as a screen asks for it: in its order.
#[must_use]
pub fn promotion_as_shown(
    session: &Session,
    asked: &Asked,
    order: Sorted<PromotionColumn>,
) -> Report {
    let columns = vec![
        FUNCTION,
        LOCATION,
        column("minor_allocated_bytes", "born young"),
        column("promoted_bytes", "promoted"),
        column("promoted_bytes_per_second", "promoted/s"),
        column("promoted_share", "rate"),
        column("short_lived_share", "dies young"),
        column("median_lifetime_ns", "lifetime"),
    ];
    let list = query::PromotionList::sorted(session, &asked.filter, asked.when, order);
    let promotion = list.rows(0..asked.top);
    let cells = |names: [Cell; 2], of: &query::Promotion| -> Vec<Cell> {
        let mut cells = names.to_vec();
        cells.extend([
            Cell::Estimate(of.minor_bytes, Unit::Bytes),
            Cell::Estimate(of.promoted_bytes, Unit::Bytes),
            Cell::Estimate(of.promoted_rate, Unit::BytesPerSecond),
            Cell::Share(of.promoted),
            Cell::Share(of.short_lived),
            Cell::Lifetime(of.lifetime),
        ]);
        cells
    };
    let rows = promotion.rows.iter().map(|row| cells(names(&row.label), &row.figures)).collect();
    let total = cells(sum(), &promotion.total);
    made(session, asked, columns, rows, Some(total), promotion.len)
}

fn threads(session: &Session, asked: &Asked) -> Report {
    threads_as_shown(session, asked, query::threads(session, asked.when, &asked.filter))
}

/// The threads that `asked` takes, as a screen has put them in order.
#[must_use]
pub fn threads_as_shown(session: &Session, asked: &Asked, threads: Vec<ThreadRow>) -> Report {
    let columns = vec![
        column("thread", "thread"),
        column("tid", "tid"),
        column("allocated_bytes", "allocated"),
        column("allocated_objects", "objects"),
        column("allocated_bytes_per_second", "alloc/s"),
        column("in_use_bytes", "in use"),
        column("in_use_objects", "objects"),
        column("freed_elsewhere_bytes", "freed by others"),
        column("freed_elsewhere_share", "others free"),
    ];
    let len = threads.len();
    let rows = threads.into_iter().take(asked.top).map(|thread| {
        vec![
            Cell::Text(query::thread_name(&thread)),
            Cell::Number(thread.tid.map(u64::from)),
            Cell::Estimate(thread.allocated_bytes, Unit::Bytes),
            Cell::Estimate(thread.allocated_objects, Unit::Objects),
            Cell::Estimate(thread.allocated_rate, Unit::BytesPerSecond),
            Cell::Estimate(thread.in_use_bytes, Unit::Bytes),
            Cell::Estimate(thread.in_use_objects, Unit::Objects),
            Cell::Estimate(thread.freed_elsewhere_bytes, Unit::Bytes),
            Cell::Share(thread.freed_elsewhere),
        ]
    });
    let mut report = made(session, asked, columns, rows.collect(), None, len);
    if let (Some((from, _)), false) = (session.span(), matches!(asked.when, When::Range { .. })) {
        let from = moment(from, session.span());
        report.notes.push(format!("threads are counted from {from} on, when {}", came(session)));
    }
    report
}

fn callers(session: &Session, asked: &Asked) -> Result<Report, String> {
    let focus = focus(session, &asked.focus)?;
    let direction = if focus.is_empty() { Direction::Callees } else { Direction::Callers };
    through(session, asked, &focus, direction).ok_or_else(|| {
        let names = asked.focus.join(" ← ");
        format!("no callstack goes through {names}: look at the callers of less")
    })
}

/// The tree through a focus of nodes, which says where it goes from there; `None` where no
/// callstack goes through it.
#[must_use]
pub fn through(
    session: &Session,
    asked: &Asked,
    focus: &[NodeKey],
    direction: Direction,
) -> Option<Report> {
    let columns = vec![
        column("function", "function"),
        LOCATION,
        column(tree_column(asked.metric, true), "cum"),
        column(tree_column(asked.metric, false), "flat"),
        column("share_of_root", "share"),
    ];
    let (metric, filter, when) = (asked.metric, &asked.filter, asked.when);
    // Nothing that is a thousandth of the whole is among the largest that are shown.
    let open = |branch: query::Branch| branch.share >= 0.001;
    let tree = query::tree(session, when, focus, direction, metric, filter, open)?;
    let (shown, len) = largest(&tree, asked.top);
    let mut rows = Vec::new();
    let unit = export::unit(metric);
    draw(&tree, 0, &shown, &mut |node, depth| {
        rows.push(vec![
            Cell::Function(node.label.clone(), depth),
            Cell::Text(node.label.location.to_string()),
            Cell::Estimate(node.cum, unit),
            Cell::Estimate(node.flat, unit),
            Cell::Part(node.share),
        ]);
    });
    let mut report = made(session, asked, columns, rows, None, len);
    report.notes.push(format!("counted: {}", export::metric(metric)));
    Some(report)
}

const fn tree_column(metric: Metric, cum: bool) -> &'static str {
    match (metric, cum) {
        (Metric::InUseBytes, true) => "cum_in_use_bytes",
        (Metric::InUseBytes, false) => "flat_in_use_bytes",
        (Metric::InUseObjects, true) => "cum_in_use_objects",
        (Metric::InUseObjects, false) => "flat_in_use_objects",
        (Metric::AllocatedBytes, true) => "cum_allocated_bytes",
        (Metric::AllocatedBytes, false) => "flat_allocated_bytes",
        (Metric::AllocatedObjects, true) => "cum_allocated_objects",
        (Metric::AllocatedObjects, false) => "flat_allocated_objects",
        (Metric::PromotedBytes, true) => "cum_promoted_bytes",
        (Metric::PromotedBytes, false) => "flat_promoted_bytes",
        (Metric::ShortLivedBytes, true) => "cum_short_lived_bytes",
        (Metric::ShortLivedBytes, false) => "flat_short_lived_bytes",
    }
}

/// The nodes of a tree that are larger than the others: `most` of them, by their paths,
/// and how many there are. No child is larger than its parent, so they hang together.
fn largest(tree: &Node, most: usize) -> (std::collections::HashSet<u64>, usize) {
    fn count(node: &Node) -> usize {
        1 + node.children.iter().map(count).sum::<usize>()
    }
    let mut shown = std::collections::HashSet::new();
    // Shares are not negative: their bits are in their order. Among equals the first.
    let mut waiting = BinaryHeap::new();
    let mut nodes: Vec<&Node> = vec![tree];
    waiting.push((tree.share.to_bits(), std::cmp::Reverse(0)));
    while let Some((_, std::cmp::Reverse(at))) = waiting.pop() {
        if shown.len() >= most {
            break;
        }
        let node = nodes[at];
        shown.insert(node.path);
        for child in &node.children {
            waiting.push((child.share.to_bits(), std::cmp::Reverse(nodes.len())));
            nodes.push(child);
        }
    }
    (shown, count(tree))
}

fn draw(
    node: &Node,
    depth: usize,
    shown: &std::collections::HashSet<u64>,
    one: &mut impl FnMut(&Node, usize),
) {
    if shown.contains(&node.path) {
        one(node, depth);
        for child in &node.children {
            draw(child, depth + 1, shown, one);
        }
    }
}

/// The nodes of functions: by their whole name, or else by a part of it that only one
/// has.
pub fn focus(session: &Session, functions: &[String]) -> Result<Vec<NodeKey>, String> {
    const NAMED: usize = 4;
    let nodes = session.book().nodes();
    functions
        .iter()
        .map(|wanted| {
            let of = |fits: &dyn Fn(&str) -> bool| -> Vec<(NodeKey, &str)> {
                let fitting = nodes.iter().filter(|node| fits(&node.label.function));
                fitting.map(|node| (node.key, &*node.label.function)).collect()
            };
            let mut found = of(&|name| name == wanted);
            if found.is_empty() {
                found = of(&|name| name.contains(wanted.as_str()));
            }
            match &found[..] {
                [] => Err(format!(
                    "no function is called {wanted}: the report of callsites names some"
                )),
                [(key, _)] => Ok(*key),
                // Lines of one function: the one that most stacks end in, or the first.
                many if many.iter().all(|(_, name)| *name == many[0].1) => {
                    let groups = session.book().groups();
                    let ends = |key: NodeKey| {
                        let group = session.book().node(key).and_then(|node| groups.at(node));
                        group.map_or(0, |group| groups.group(group).stacks().len())
                    };
                    let best = many.iter().rev().max_by_key(|(key, _)| ends(*key));
                    Ok(best.unwrap_or(&many[0]).0)
                }
                many => {
                    let mut names: Vec<&str> = many.iter().map(|(_, name)| *name).collect();
                    names.sort_unstable();
                    names.dedup();
                    let more = if names.len() > NAMED { ", …" } else { "" };
                    names.truncate(NAMED);
                    Err(format!(
                        "{wanted} is in the names of several functions: say which, {}{more}",
                        names.join(", ")
                    ))
                }
            }
        })
        .collect()
}
