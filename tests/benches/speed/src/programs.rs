//! Published crates that allocate much, on inputs that are made here, the same each
//! time; the parser of Rust reads heaptop's own sources.

use std::fmt::Write;
use std::path::Path;

/// Runs the program of this name so many times over; `None` if there is none.
pub fn run(name: &str, times: u64) -> Option<u64> {
    let once: Box<dyn Fn() -> u64> = match name {
        "syn" => syn_over(sources()),
        "serde_json" => serde_json_of(people(20_000)),
        "jaq" => jaq_over(&people(4_000)),
        "sqlparser" => sqlparser_over(statements(2_000)),
        _ => return None,
    };
    Some((0..times).fold(0, |sum, _| sum.wrapping_mul(31).wrapping_add(once())))
}

/// Names of the programs, each with how often it is run for some tenths of a second.
pub const PROGRAMS: [(&str, u64); 4] =
    [("syn", 3), ("serde_json", 12), ("jaq", 16), ("sqlparser", 16)];

/// All Rust sources of the repository.
fn sources() -> Vec<String> {
    fn collect(at: &Path, into: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(at).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                collect(&path, into);
            } else if path.extension().is_some_and(|e| e == "rs") {
                into.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut paths = Vec::new();
    for package in ["agent/src", "protocol/src", "tui/src", "tests/src"] {
        collect(&root.join(package), &mut paths);
    }
    paths.sort();
    paths.iter().filter_map(|path| std::fs::read_to_string(path).ok()).collect()
}

fn syn_over(sources: Vec<String>) -> Box<dyn Fn() -> u64> {
    Box::new(move || {
        sources
            .iter()
            .filter_map(|source| syn::parse_file(source).ok())
            .map(|file| file.items.len() as u64)
            .sum()
    })
}

/// xorshift64*: the same numbers each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound
    }
}

/// So many records as JSON.
fn people(records: usize) -> String {
    let mut numbers = Numbers(7);
    let mut text = String::from("[");
    for i in 0..records {
        let comma = if i == 0 { "" } else { "," };
        let (age, city) = (numbers.below(90), numbers.below(40));
        let _ = write!(
            text,
            r#"{comma}{{"id":{i},"name":"name {}","age":{age},"address":{{"city":"city {city}","street":"street {}","number":{}}},"tags":["a{}","b{}","c{}"],"scores":[{},{}.5,{}]}}"#,
            numbers.below(1000),
            numbers.below(500),
            numbers.below(200),
            numbers.below(9),
            numbers.below(99),
            numbers.below(999),
            numbers.below(100),
            numbers.below(100),
            numbers.below(100),
        );
    }
    text.push(']');
    text
}

fn serde_json_of(text: String) -> Box<dyn Fn() -> u64> {
    use serde_json::Value;
    fn values(of: &Value) -> u64 {
        match of {
            Value::Array(of) => of.iter().map(values).sum(),
            Value::Object(of) => of.values().map(values).sum(),
            _ => 1,
        }
    }
    Box::new(move || serde_json::from_str(&text).as_ref().map_or(0, values))
}

const QUERY: &str = r#"
[.[] | select(.age > 30) | {name, city: .address.city, tags: (.tags | map(ascii_upcase)), n: (.scores | add)}]
| group_by(.city) | map({city: .[0].city, n: (map(.n) | add), names: (map(.name) | unique | length)})
| length"#;

fn jaq_over(text: &str) -> Box<dyn Fn() -> u64> {
    use jaq_core::load::{Arena, File, Loader};
    use jaq_core::{Compiler, Ctx, Vars, data, unwrap_valr};
    use jaq_json::{Val, read};
    let input = read::parse_single(text.as_bytes()).expect("it is JSON");
    let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let arena = Arena::default();
    let modules = Loader::new(defs).load(&arena, File { code: QUERY, path: () });
    let modules = modules.unwrap_or_else(|_| panic!("the query is wrong"));
    let filter = Compiler::default().with_funs(funs).compile(modules);
    let filter = filter.unwrap_or_else(|_| panic!("the query is wrong"));
    Box::new(move || {
        let ctx = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
        let out = filter.id.run((ctx, input.clone())).map(unwrap_valr);
        out.map(|value| value.map_or(0, |v| v.to_string().len() as u64)).sum()
    })
}

/// So many statements of SQL, one after another.
fn statements(count: usize) -> String {
    let mut numbers = Numbers(11);
    let mut text = String::new();
    for i in 0..count {
        let [a, b, c, d] = [(); 4].map(|()| numbers.below(1000));
        let _ = writeln!(
            text,
            "SELECT t{a}.x, sum(t{a}.y * {b} + coalesce(u.z, {c})) AS total FROM t{a} \
             LEFT JOIN u ON t{a}.id = u.id AND u.kind IN ('k{b}', 'k{c}', 'k{d}') \
             WHERE t{a}.x BETWEEN {c} AND {d} OR t{a}.name LIKE 'n{i}%' \
             GROUP BY t{a}.x HAVING count(*) > {d} ORDER BY total DESC LIMIT {b};"
        );
    }
    text
}

fn sqlparser_over(text: String) -> Box<dyn Fn() -> u64> {
    use sqlparser::{dialect::GenericDialect, parser::Parser};
    Box::new(move || {
        Parser::parse_sql(&GenericDialect {}, &text).map_or(0, |parsed| parsed.len() as u64)
    })
}
