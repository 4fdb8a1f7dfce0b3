//! The picture is well-formed whatever names are in it, and its widths are the
//! query's numbers.

use super::*;
use proptest::prelude::*;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use std::collections::BTreeMap;

fn label(function: &str) -> Label {
    Label { function: function.into(), location: "".into(), named: true }
}

fn stack(names: &[&str], weight: f64) -> (Vec<Label>, f64) {
    (names.iter().map(|n| label(n)).collect(), weight)
}

fn attribute(e: &BytesStart<'_>, name: &str) -> Option<u64> {
    let value = e.try_get_attribute(name).unwrap()?;
    std::str::from_utf8(&value.value).unwrap().parse().ok()
}

/// Parses the picture whole: its total, and the widths of frames by name.
fn read(svg: &[u8]) -> (u64, BTreeMap<String, Vec<u64>>) {
    let mut reader = Reader::from_reader(svg);
    reader.config_mut().check_end_names = true;
    let mut total = 0;
    let mut frames: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut title = String::new();
    let mut in_title = false;
    let mut depth = 0;
    let text = std::str::from_utf8(svg).unwrap();
    assert!(!text.chars().any(|c| c.is_control() && !"\n\r\t".contains(c)), "controls are no XML");
    loop {
        match reader.read_event().expect("well-formed") {
            Event::Start(e) => {
                depth += 1;
                in_title = e.name().as_ref() == b"title";
                if in_title {
                    title.clear();
                }
                total = attribute(&e, "total_samples").unwrap_or(total);
            }
            Event::Empty(e) => {
                if let Some(width) = attribute(&e, "fg:w") {
                    frames.entry(title.clone()).or_default().push(width);
                }
            }
            Event::Text(t) if in_title => title.push_str(&t.xml10_content().unwrap()),
            Event::GeneralRef(r) if in_title => {
                title.push_str(
                    &quick_xml::escape::unescape(&format!("&{};", r.decode().unwrap())).unwrap(),
                );
            }
            Event::End(_) => {
                depth -= 1;
                in_title = false;
            }
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(depth, 0, "every element is closed");
    let frames = frames
        .into_iter()
        .map(|(title, widths)| {
            (title.rsplit_once(" (").map_or(title.clone(), |(n, _)| n.to_owned()), widths)
        })
        .collect();
    (total, frames)
}

fn draw(stacks: &[(Vec<Label>, f64)]) -> (u64, BTreeMap<String, Vec<u64>>) {
    read(&svg(stacks, "t", "s", "bytes", Shape::default()).unwrap())
}

#[test]
fn widths_are_the_querys() {
    let (total, frames) = draw(&[
        stack(&["main", "serve", "parse"], 600.4),
        stack(&["main", "serve"], 100.4),
        stack(&["main", "fill"], 299.2),
    ]);
    assert_eq!(total, 1000);
    assert_eq!(frames["all"], [1000]);
    assert_eq!(frames["main"], [1000]);
    assert_eq!(frames["serve"], [701]);
    assert_eq!(frames["parse"], [600]);
    assert_eq!(frames["fill"], [299]);
}

#[test]
fn a_frame_is_never_torn() {
    // Sorted as lines, `a b;…` comes between `a` and `a;…`.
    let (_, frames) = draw(&[
        stack(&["a"], 5.0),
        stack(&["a b", "x"], 3.0),
        stack(&["a", "y"], 2.0),
        stack(&["a::b"], 1.0),
    ]);
    assert_eq!(frames["a"], [7]);
}

#[test]
fn hostile_names_are_data() {
    let names = [
        "<script>alert(\"&'\")</script>",
        "f<[u8; 4]>",
        "\x1b[2J\0",
        "foo 12",
        "# x",
        "x_[k]",
        "",
        "]]>",
    ];
    let stacks: Vec<_> = names.iter().map(|n| stack(&[n], 10.0)).collect();
    let (total, frames) = draw(&stacks);
    assert_eq!(total, 80);
    for name in
        ["<script>alert(\"&'\")</script>", "f<[u8, 4]>", "foo_12", "\u{B7}# x", "(unnamed)", "]]>"]
    {
        assert_eq!(frames.get(name), Some(&vec![10]), "{name} in {frames:?}");
    }
    read(&svg(&stacks, "<&\x07>", "--> ]]>", "bytes", Shape::default()).unwrap());
}

/// Two halves of a character are no text: `tests/browser` looks at what it is for.
#[test]
fn no_text_is_cut_in_the_midst_of_a_character() {
    let picture = svg(&[stack(&["a"], 5.0)], "t", "s", "bytes", Shape::default()).unwrap();
    let picture = String::from_utf8(picture).unwrap();
    for cut in CUTS {
        assert_eq!(picture.matches(cut).count(), 1, "inferno's script is another: {cut}");
        assert!(picture.contains(&format!("{cut}.replace(/[\\uD800-\\uDBFF]$/, \"\")")));
    }
}

#[test]
fn the_same_stacks_make_the_same_picture() {
    let mut stacks = vec![stack(&["a", "b"], 5.0), stack(&["a", "c"], 3.0), stack(&["d"], 2.0)];
    let first = svg(&stacks, "t", "s", "bytes", Shape::default()).unwrap();
    stacks.reverse();
    assert!(first == svg(&stacks, "t", "s", "bytes", Shape::default()).unwrap());
}

#[test]
fn nothing_and_too_much_are_errors() {
    assert!(matches!(svg(&[], "t", "s", "bytes", Shape::default()), Err(ExportError::Empty)));
    let bad = [stack(&["a"], f64::NAN), stack(&["a"], -5.0), stack(&[], 5.0)];
    assert!(matches!(svg(&bad, "t", "s", "bytes", Shape::default()), Err(ExportError::Empty)));
    let huge = [stack(&["a"], f64::MAX), stack(&["b"], 1.0)];
    assert!(matches!(svg(&huge, "t", "s", "bytes", Shape::default()), Err(ExportError::TooLarge)));
}

#[test]
fn a_huge_picture_is_pruned_and_its_total_stands() {
    let mut stacks: Vec<_> =
        (0..20_000).map(|i| stack(&["main", &format!("small{i}")], 1.0)).collect();
    stacks.push(stack(&["main", "large"], 80_000.0));
    let (total, frames) = draw(&stacks);
    assert_eq!(total, 100_000);
    assert_eq!(frames["large"], [80_000]);
    assert_eq!(frames["(smaller)"], [20_000]);
    assert_eq!(frames.len(), 4);
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: proptest::test_runner::RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn any_name_makes_valid_xml(names in proptest::collection::vec(".{0,12}", 1..6), weight in 1.0f64..1e12) {
        let labels: Vec<Label> = names.iter().map(|n| label(n)).collect();
        let (total, _) = draw(&[(labels, weight)]);
        prop_assert_eq!(total, weight.round() as u64);
    }
}

#[test]
fn a_difference_keeps_widths_and_says_the_change() {
    let now = [stack(&["main", "grows"], 300.0), stack(&["main", "stays"], 100.0)];
    let before = [
        stack(&["main", "grows"], 50.0),
        stack(&["main", "stays"], 100.0),
        stack(&["main", "gone"], 70.0),
    ];
    let shape = Shape { icicle: true, before: Some(&before) };
    let bytes = svg(&now, "t", "s", "bytes", shape).unwrap();
    let (total, frames) = read(&bytes);
    assert_eq!((total, &frames["grows"], &frames["stays"]), (400, &vec![300], &vec![100]));
    assert!(!frames.contains_key("gone"));
    let text = String::from_utf8(bytes).unwrap();
    assert_ne!(
        svg(&now, "t", "s", "bytes", Shape { icicle: true, before: None }).unwrap(),
        text.as_bytes(),
        "colours differ"
    );
}
