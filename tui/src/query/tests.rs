use super::*;
use crate::session::fixture::Fixture;

fn value(estimate: Estimate) -> f64 {
    match estimate {
        Estimate::Exact { value } | Estimate::Interval { value, .. } => value,
        other => panic!("no value: {other:?}"),
    }
}

fn names(table: &Table) -> Vec<&str> {
    table.rows.iter().map(|row| &*row.label.function).collect()
}

fn key(session: &Session, function: &str) -> NodeKey {
    let node = session.book().nodes().iter().find(|n| &*n.label.function == function);
    node.unwrap_or_else(|| panic!("no node {function}")).key
}

/// Function, cum and flat of a tree, indented by depth.
fn picture(node: &Node) -> String {
    fn draw(node: &Node, depth: usize, out: &mut String) {
        let flat = match node.flat {
            Estimate::Unknown => "–".to_owned(),
            flat => value(flat).to_string(),
        };
        *out +=
            &format!("{}{} {} {flat}\n", "  ".repeat(depth), node.label.function, value(node.cum));
        for child in &node.children {
            draw(child, depth + 1, out);
        }
    }
    let mut out = String::new();
    draw(node, 0, &mut out);
    out
}

/// main ─► serve ─┬─► parse ─► (alloc)     100
///                └─► fill ─► parse        20
/// main ─► fill                            7
/// main ─► fill ─► fill ─► fill            300
fn orders() -> Fixture {
    let mut f = Fixture::new(1);
    let lib = "alloc::vec::Vec<T>::push@/rustc/59/library/alloc/src/vec/mod.rs:10";
    let stacks: [(&[&str], u64); 4] = [
        (
            &[
                "main",
                "serve@/home/me/orders/src/http.rs:5",
                "parse@/x/httparse/src/lib.rs:9",
                lib,
                "malloc",
            ],
            100,
        ),
        (
            &[
                "main",
                "serve@/home/me/orders/src/http.rs:5",
                "fill",
                "parse@/x/httparse/src/lib.rs:9",
                lib,
            ],
            20,
        ),
        (&["std::rt::lang_start", "main", "fill", "malloc"], 7),
        (&["main", "fill", "fill", "fill", lib], 300),
    ];
    for (functions, size) in stacks {
        let stack = f.stack(functions);
        f.alloc(stack, size);
    }
    f.report();
    f
}

#[test]
fn rows_are_callsites_in_order() {
    let f = orders();
    let table = callsites(&f.session, &Question::default());
    assert_eq!(names(&table), ["fill", "parse"]);
    assert_eq!(value(table.rows[0].figures.in_use_bytes), 307.0);
    assert_eq!(value(table.rows[1].figures.in_use_bytes), 120.0);
    assert_eq!(value(table.total.in_use_bytes), 427.0);
    assert_eq!(&*table.rows[1].label.location, "httparse/src/lib.rs:9");
}

#[test]
fn callers_are_a_tree_from_the_callsite_to_the_root() {
    let f = orders();
    let focus = [key(&f.session, "fill")];
    let tree = callers(&f.session, &focus, Direction::Callers, Metric::InUseBytes, "").unwrap();
    assert_eq!(
        picture(&tree),
        "fill 307 307\n  fill 300 300\n    fill 300 300\n      main 300 –\n  \
         main 7 –\n    std::rt::lang_start 7 –\n"
    );
}
