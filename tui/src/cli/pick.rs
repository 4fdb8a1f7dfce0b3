//! Which target? Asked in lines, before the screen starts.

use std::io::{self, BufRead, Write};

use super::list;
use crate::source::discover::Found;

/// What to do without a target.
pub(super) const NONE: &str =
    "no target runs: link heaptop-agent into a program and start it, or try `heaptop demo`";
/// Lines read of a stream that never says anything useful.
const PATIENCE: usize = 100;
/// Bytes of a line that are looked at.
const LINE: u64 = 256;

/// What was chosen.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The target with this index.
    Target(usize),
    /// The demo.
    Demo,
    /// To leave.
    Nothing,
}

/// With one target there is nothing to ask.
pub(super) fn choose(
    targets: &[Found],
    answers: &mut impl BufRead,
    out: &mut impl Write,
) -> io::Result<Choice> {
    match targets {
        [] => {
            writeln!(out, "{NONE}")?;
            let answer = ask("Start the demo now? [y/N] ", answers, out)?;
            let yes = answer.is_some_and(|a| ["y", "yes"].contains(&a.to_lowercase().as_str()));
            Ok(if yes { Choice::Demo } else { Choice::Nothing })
        }
        [_] => Ok(Choice::Target(0)),
        _ => {
            list::table(targets, Some(1), out)?;
            for _ in 0..PATIENCE {
                let question = "Which? Number or pid, empty to leave: ";
                let Some(answer) = ask(question, answers, out)?.filter(|a| !a.is_empty()) else {
                    return Ok(Choice::Nothing);
                };
                if let Some(index) = chosen(targets, &answer) {
                    return Ok(Choice::Target(index));
                }
                writeln!(out, "There is no such target.")?;
            }
            Ok(Choice::Nothing)
        }
    }
}

/// A number on the list, or else a pid.
fn chosen(targets: &[Found], answer: &str) -> Option<usize> {
    let number: usize = answer.parse().ok()?;
    let on_list = number.checked_sub(1).filter(|&index| index < targets.len());
    on_list.or_else(|| targets.iter().position(|found| found.target.pid as usize == number))
}

/// `None` at the end of the answers.
fn ask(
    question: &str,
    answers: &mut impl BufRead,
    out: &mut impl Write,
) -> io::Result<Option<String>> {
    write!(out, "{question}")?;
    out.flush()?;
    let mut line = Vec::new();
    io::Read::take(answers, LINE).read_until(b'\n', &mut line)?;
    let text = String::from_utf8_lossy(&line);
    Ok((!line.is_empty()).then(|| text.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::list::tests::found;

    fn with(targets: &[Found], answers: &str) -> (Choice, String) {
        let mut out = Vec::new();
        let choice = choose(targets, &mut answers.as_bytes(), &mut out).unwrap();
        (choice, String::from_utf8(out).unwrap())
    }

    #[test]
    fn one_target_is_taken_unasked() {
        assert_eq!(with(&[found(5, "a")], ""), (Choice::Target(0), String::new()));
    }

    #[test]
    fn without_targets_the_demo_is_offered() {
        assert_eq!(with(&[], "y\n").0, Choice::Demo);
        assert_eq!(with(&[], "Yes\n").0, Choice::Demo);
        assert_eq!(with(&[], "\n").0, Choice::Nothing);
        let (choice, said) = with(&[], "");
        assert_eq!(choice, Choice::Nothing);
        assert!(said.contains("heaptop demo"), "{said}");
    }

    #[test]
    fn several_are_asked_for_by_number_or_pid() {
        let targets = [found(2, "a"), found(700, "b"), found(800, "c")];
        let (choice, said) = with(&targets, "9\nb\n700\n");
        assert_eq!(choice, Choice::Target(1));
        assert!(said.contains(" 1)") && said.contains(" 3)"), "{said}");
        assert_eq!(said.matches("no such target").count(), 2);
        // The number on the list goes before a pid.
        assert_eq!(with(&targets, "2\n").0, Choice::Target(1));
        assert_eq!(with(&targets, "0\n\n").0, Choice::Nothing);
        assert_eq!(with(&targets, "").0, Choice::Nothing);
        assert_eq!(with(&targets, &"x\n".repeat(1000)).0, Choice::Nothing);
    }
}
