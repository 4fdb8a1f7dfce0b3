//! Stopping for the shell's sake, and not where no shell would wake us.

use signal_hook::consts::SIGTSTP;

/// Asks the whole job to stop, as ^Z does on a terminal in its usual mode. Our
/// own answer to that signal is [`stop`].
pub(super) fn stop_group() {
    if continues() {
        // If it fails nothing stops.
        let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
    }
}

/// Stops this process; returns when it is continued. Without a shell that could
/// continue it, it does not stop (as the kernel has it for SIGTSTP).
pub(super) fn stop() {
    if continues() {
        let _ = signal_hook::low_level::emulate_default_handler(SIGTSTP);
    }
}

/// Whether somebody can continue us: a process outside our group, in our
/// session, is the parent of one of us. It is looked for among our ancestors.
fn continues() -> bool {
    let Some(own) = Ids::of("self") else { return false };
    let mut parent = own.parent;
    loop {
        match Ids::of(&parent.to_string()) {
            Some(ids) if ids.session != own.session => return false,
            Some(ids) if ids.group != own.group => return true,
            Some(ids) if ids.parent > 0 => parent = ids.parent,
            _ => return false,
        }
    }
}

struct Ids {
    parent: i32,
    group: i32,
    session: i32,
}

impl Ids {
    fn of(pid: &str) -> Option<Self> {
        parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }
}

/// `PID (NAME) STATE PARENT GROUP SESSION …`; the name may hold anything.
fn parse(stat: &str) -> Option<Ids> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(1).map(str::parse);
    let mut next = || fields.next()?.ok();
    Some(Ids { parent: next()?, group: next()?, session: next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_behind_any_name() {
        let ids = parse("7 (a) b) ) S 1 2 3 4 5").unwrap();
        assert_eq!((ids.parent, ids.group, ids.session), (1, 2, 3));
        assert!(parse("7 (a").is_none());
        let own = Ids::of("self").unwrap();
        assert_eq!(own.group, rustix::process::getpgrp().as_raw_nonzero().get());
    }
}
