//! What the kernel says of the target's threads, read from /proc on the agent's own thread:
//! their names, and whether any is left.

use crate::engine::{Engine, OTHER_THREADS};
use heaptop_protocol::ids::ThreadId;
use heaptop_protocol::message::Thread;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Threads looked at again in one round: names are set late, and change.
const AGAIN: usize = 64;
/// A `stat` is far shorter.
const STAT_BYTES: usize = 2048;

/// What the threads are called that share a number.
const OTHERS: &str = "(other threads)";

/// All threads that were seen.
#[derive(Default)]
pub struct Threads {
    known: Vec<Seen>,
    version: u64,
    again: usize,
}

struct Seen {
    thread: Thread,
    /// The version that changed it last.
    version: u64,
    /// When it began, in the kernel's ticks. Another thread that has its number has begun
    /// at another time. `None` once it is gone: who has the number then is another.
    began: Option<u64>,
}

impl Threads {
    /// Takes up new threads, and looks at some known ones again.
    pub fn refresh(&mut self, engine: &Engine) {
        self.look(engine.tids(), name);
    }

    /// The same, with the numbers of all threads ever and a way to ask for a thread's name
    /// and beginning.
    fn look(
        &mut self,
        tids: impl Iterator<Item = u32>,
        ask: impl Fn(u32) -> Option<(String, u64)>,
    ) {
        for (i, tid) in tids.enumerate().skip(self.known.len()) {
            let id = ThreadId(i as u32);
            let (name, began) = match tid {
                // Nobody of that name is asked for again.
                0 if id.0 == OTHER_THREADS => (Some(OTHERS.to_owned()), None),
                0 => break,
                _ => ask(tid).unzip(),
            };
            self.version += 1;
            let thread = Thread { id, tid, name: name.unwrap_or_default() };
            self.known.push(Seen { thread, version: self.version, began });
        }
        let mut looks = 0;
        for _ in 0..self.known.len() {
            self.again = (self.again + 1) % self.known.len();
            let seen = &mut self.known[self.again];
            if seen.began.is_none() {
                continue;
            }
            let now = ask(seen.thread.tid).filter(|&(_, began)| Some(began) == seen.began);
            match now {
                Some((name, _)) if name != seen.thread.name => {
                    self.version += 1;
                    seen.thread.name = name;
                    seen.version = self.version;
                }
                Some(_) => {}
                None => seen.began = None,
            }
            looks += 1;
            if looks == AGAIN {
                break;
            }
        }
    }

    /// The version of the last change.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Threads that changed after `version`.
    pub fn changed_since(&self, version: u64) -> impl Iterator<Item = &Thread> {
        self.known.iter().filter(move |seen| seen.version > version).map(|seen| &seen.thread)
    }
}

/// What the kernel says of the process as a whole.
///
/// The file is kept open: a program may go where there is no /proc, as by `chroot`. It is
/// a file and no directory, by which the program could leave that place. And it is the
/// process's own by whatever number it has there: of a process in a pid namespace of its
/// own, an outer /proc knows another one than the process does.
pub struct Process {
    file: Option<File>,
    /// Whether the last look that found somebody found others than the first thread.
    others: bool,
    /// Threads that the engine knew of then.
    begun: usize,
}

/// Who is left in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    Somebody,
    /// The first thread has ended, and so have all others. Then no thread can be made any
    /// more, so that this is final.
    Nobody(Ending),
    /// There is no /proc.
    Unknown,
}

/// How a process ends that nobody is left in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By `exit(0)`, as the C library has it when it ends the last thread.
    Exit,
    /// With this status and no more: the first thread has ended by a system call of its
    /// own, so that the C library waits for it for ever. Only a status other than 0 shows it.
    Bare(u8),
}

impl Ending {
    /// What is told of it.
    pub const fn status(self) -> u8 {
        match self {
            Self::Exit => 0,
            Self::Bare(status) => status,
        }
    }
}

const OF_THE_PROCESS: &str = "/proc/self/stat";

impl Process {
    /// `keeps` the file open where it is in the way of nobody: in a table of descriptors
    /// of this thread's own.
    pub fn open(keeps: bool) -> Self {
        let file = keeps.then(|| File::open(OF_THE_PROCESS).ok()).flatten();
        Self { file, others: false, begun: 0 }
    }

    /// Who is left in the process besides the agent's thread, which calls this.
    pub fn left(&mut self, engine: &Engine) -> Left {
        let line = self.read();
        line.as_deref().and_then(Stat::of).map_or(Left::Unknown, |stat| {
            self.take_up(&stat, || engine.tids()).unwrap_or(Left::Unknown)
        })
    }

    /// What the process's `stat`, which speaks of its first thread, says of its end. That
    /// thread stays, as a zombie, until the others are gone. The status of the process is
    /// that of whoever ends last, which is 0 of threads that the C library ends.
    fn take_up<I: Iterator<Item = u32>>(
        &mut self,
        stat: &Stat<'_>,
        tids: impl Fn() -> I,
    ) -> Option<Left> {
        let threads: u32 = stat.field(20)?.parse().ok()?;
        if stat.field(3)? != "Z" || threads != 2 {
            self.others = threads > 2;
            self.begun = tids().count();
            return Some(Left::Somebody);
        }
        // As `wait` gives it.
        let first: i32 = stat.field(52).and_then(|status| status.parse().ok()).unwrap_or(0);
        if first == 0 {
            return Some(Left::Nobody(Ending::Exit));
        }
        let others = self.others || tids().skip(self.begun).any(|tid| tid != std::process::id());
        Some(Left::Nobody(Ending::Bare(if others { 0 } else { (first >> 8) as u8 })))
    }

    fn read(&self) -> Option<String> {
        let Some(file) = &self.file else { return std::fs::read_to_string(OF_THE_PROCESS).ok() };
        let mut bytes = [0; STAT_BYTES];
        let read = file.read_at(&mut bytes, 0).ok()?;
        Some(String::from_utf8_lossy(&bytes[..read]).into_owned())
    }
}

/// A line that the kernel writes of a thread or a process.
struct Stat<'a> {
    name: &'a str,
    /// From the third one on.
    fields: Vec<&'a str>,
}

impl<'a> Stat<'a> {
    fn of(line: &'a str) -> Option<Self> {
        // The name may have spaces and parentheses of its own.
        let (before, fields) = line.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        Some(Self { name, fields: fields.split_ascii_whitespace().collect() })
    }

    /// By its number in the kernel's manual.
    fn field(&self, number: usize) -> Option<&'a str> {
        self.fields.get(number.checked_sub(3)?).copied()
    }

    /// The name as it was given: these two are escaped.
    fn name(&self) -> String {
        let mut name = String::with_capacity(self.name.len());
        let mut rest = self.name.chars();
        while let Some(c) = rest.next() {
            name.push(match (c, rest.as_str().chars().next()) {
                ('\\', Some('n')) => {
                    rest.next();
                    '\n'
                }
                ('\\', Some('\\')) => {
                    rest.next();
                    c
                }
                _ => c,
            });
        }
        name
    }
}

/// A thread's name, and when it began: of one moment, and so of one thread.
fn name(tid: u32) -> Option<(String, u64)> {
    let line = std::fs::read(format!("/proc/self/task/{tid}/stat")).ok()?;
    let line = String::from_utf8_lossy(&line);
    let stat = Stat::of(&line)?;
    Some((stat.name(), stat.field(22)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Builder, Settings};
    use crate::engine::domain::Domain;

    fn line(state: &str, threads: u32, status: i32) -> String {
        let [between, behind] = [16, 31].map(|n| "1 ".repeat(n));
        format!("7 (a) Z 2 (b) {state} {between}{threads} {behind}{status}\n")
    }

    #[test]
    fn threads_beyond_the_last_number_are_told_as_others() {
        let settings = Settings::from_builder(&Builder::DEFAULT);
        let engine = Engine::with(&settings).unwrap();
        let begin = || assert!(engine.begin_domain(&Domain::new()));
        (0..OTHER_THREADS).for_each(|_| begin());
        let mut threads = Threads::default();
        let ask = |tid: u32| (tid != 0).then(|| ("one".to_owned(), 1));
        threads.look(engine.tids(), ask);
        assert_eq!(threads.known.len(), OTHER_THREADS as usize, "each has its own");
        let version = threads.version();
        (0..3).for_each(|_| begin());
        // Known threads are looked at again, a few at a time.
        (0..=OTHER_THREADS as usize / AGAIN).for_each(|_| threads.look(engine.tids(), ask));
        let told: Vec<_> = threads.changed_since(version).collect();
        let others = Thread { id: ThreadId(OTHER_THREADS), tid: 0, name: OTHERS.to_owned() };
        assert_eq!(told, [&others]);
        assert_eq!(engine.tid(OTHER_THREADS), 0);
    }

    #[test]
    fn who_is_left_is_read_from_the_first_threads_stat() {
        let own = std::process::id();
        let left = |lines: &[String], tids: &[u32]| {
            let mut process = Process::open(false);
            let look = |_, line: &String| {
                process.take_up(&Stat::of(line).unwrap(), || tids.iter().copied()).unwrap()
            };
            lines.iter().fold(Left::Unknown, look)
        };
        let ended = |status| line("Z", 2, status << 8);
        let is = |ending| Left::Nobody(ending);
        assert_eq!(left(&[ended(0)], &[own]), is(Ending::Exit));
        assert_eq!(left(&[ended(3)], &[own]), is(Ending::Bare(3)));
        assert_eq!(left(&[line("S", 2, 0), ended(255)], &[own]), is(Ending::Bare(255)));
        assert_eq!(left(&[line("Z", 3, 0)], &[own]), Left::Somebody);
        assert_eq!(left(&[line("S", 2, 0)], &[own]), Left::Somebody);
        // Another thread was there to the end, or has come since; or was there long ago.
        assert_eq!(left(&[line("S", 3, 0), ended(3)], &[own, 9]), is(Ending::Bare(0)));
        assert_eq!(left(&[ended(3)], &[own, 9]), is(Ending::Bare(0)));
        assert_eq!(left(&[line("S", 2, 0), ended(3)], &[own, 9]), is(Ending::Bare(3)));
        assert!(Stat::of("7 (a").is_none());
    }

    #[test]
    fn a_process_is_known_by_the_open_file_and_by_its_path() {
        let process = Process::open(true);
        let line = process.read().unwrap();
        let of = format!("{} (", std::process::id());
        assert!(line.starts_with(&of) && line.ends_with('\n'), "{line}");
        let stat = Stat::of(&line).unwrap();
        assert_eq!(stat.fields.len(), 50);
        assert!(Process::open(false).read().unwrap().starts_with(&of));
    }

    #[test]
    fn a_number_that_is_used_again_renames_nobody() {
        let mut threads = Threads::default();
        let names = |threads: &Threads| -> Vec<String> {
            threads.changed_since(0).map(|t| t.name.clone()).collect()
        };
        let at = |name: &str, began: u64| Some((name.to_owned(), began));
        threads.look([70].into_iter(), |_| at("starts", 5));
        threads.look([70].into_iter(), |_| at("early", 5));
        assert_eq!(names(&threads), ["early"]);
        threads.look([70].into_iter(), |_| at("late", 6));
        assert_eq!(names(&threads), ["early"]);
        // It is gone: even if a third one began at that tick, it is another.
        threads.look([70, 70].into_iter(), |_| at("third", 5));
        assert_eq!(names(&threads), ["early", "third"]);
        // One that was gone before it was looked at has no name, and gets none.
        threads.look([70, 70, 71].into_iter(), |_| None);
        threads.look([70, 70, 71].into_iter(), |_| at("other", 9));
        assert_eq!(names(&threads), ["early", "third", ""]);
    }

    #[test]
    fn a_thread_has_the_name_that_it_was_given() {
        for given in ["a (b) c", "back\\slash", "two\nlines", "plain"] {
            let thread = std::thread::Builder::new().name(given.to_owned()).spawn(|| {
                // SAFETY: no memory involved.
                name(unsafe { libc::gettid() }.cast_unsigned()).map(|(name, _)| name)
            });
            assert_eq!(thread.unwrap().join().unwrap().as_deref(), Some(given));
        }
    }
}
