//! The names of the target's threads, read from /proc on the agent's own thread.

use crate::engine::Engine;
use heaptop_protocol::ids::ThreadId;
use heaptop_protocol::message::Thread;

/// Threads looked at again in one round: names are set late, and change.
const AGAIN: usize = 64;

/// All threads that were seen.
#[derive(Default)]
pub struct Threads {
    /// With the version that changed it last.
    known: Vec<(Thread, u64)>,
    version: u64,
    again: usize,
}

impl Threads {
    /// Takes up new threads, and looks at some known ones again.
    pub fn refresh(&mut self, engine: &Engine) {
        for (i, tid) in engine.tids().enumerate().skip(self.known.len()) {
            if tid == 0 {
                break;
            }
            self.version += 1;
            let thread =
                Thread { id: ThreadId(i as u32), tid, name: name(tid).unwrap_or_default() };
            self.known.push((thread, self.version));
        }
        for _ in 0..AGAIN.min(self.known.len()) {
            self.again = (self.again + 1) % self.known.len();
            let (thread, version) = &mut self.known[self.again];
            if let Some(now) = name(thread.tid)
                && now != thread.name
            {
                self.version += 1;
                thread.name = now;
                *version = self.version;
            }
        }
    }

    /// The version of the last change.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Threads that changed after `version`.
    pub fn changed_since(&self, version: u64) -> impl Iterator<Item = &Thread> {
        self.known.iter().filter(move |(_, v)| *v > version).map(|(t, _)| t)
    }
}

/// Whether nobody is left in the program but the agent's thread, which calls this: its first
/// thread has ended, and so have all others. Then no thread can be made any more, so that
/// this is final.
pub fn all_have_ended() -> bool {
    let path = format!("/proc/self/task/{}/stat", std::process::id());
    std::fs::read_to_string(path).is_ok_and(|stat| is_last_but_one(&stat))
}

/// Whether the first thread's `stat` says so. It stays, as a zombie, until the others are
/// gone.
fn is_last_but_one(stat: &str) -> bool {
    // The name may have spaces and parentheses of its own.
    let Some((_, fields)) = stat.rsplit_once(')') else { return false };
    let mut fields = fields.split_ascii_whitespace();
    fields.next() == Some("Z") && fields.nth(16) == Some("2")
}

fn name(tid: u32) -> Option<String> {
    let name = std::fs::read(format!("/proc/self/task/{tid}/comm")).ok()?;
    Some(String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_left_is_read_from_the_first_threads_stat() {
        let stat = |state: &str, threads: u32| {
            let between = "1 ".repeat(16);
            format!("7 (a) Z 2 (b) {state} {between}{threads} 0 2\n")
        };
        assert!(is_last_but_one(&stat("Z", 2)));
        assert!(!is_last_but_one(&stat("Z", 3)));
        assert!(!is_last_but_one(&stat("S", 2)));
        assert!(!is_last_but_one("7 (a"));
        assert!(!all_have_ended());
    }
}
