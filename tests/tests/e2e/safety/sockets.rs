//! Directories and sockets that will not do: the agent says why, once and to who asks,
//! and the program runs as ever.

use super::{NOBODY, act, ends_as_unprofiled, is_root, same, started, usual_act};
use heaptop_protocol::endpoint;
use heaptop_tests::binaries;
use heaptop_tests::client::Client;
use heaptop_tests::deadline::{Deadline, poll};
use heaptop_tests::run::Run;
use heaptop_tests::target::{Target, socket_directory};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// Runs with sockets in `directory`, which must not do, for a reason that has
/// `because` in it. It is told on standard error in one sentence.
fn will_not_do(run: &Run, directory: &Path, because: &str) {
    let told = cannot_serve(run, directory, because);
    assert!(told.starts_with("heaptop: HEAPTOP_DIR: ") && told.contains(because), "{told:?}");
    assert!(told.ends_with(".\n") && told.lines().count() == 1, "{told:?}");
}

/// The same with what it says unasked.
fn cannot_serve(run: &Run, directory: &Path, because: &str) -> String {
    let notes = tempfile::tempdir().unwrap();
    std::fs::set_permissions(notes.path(), Permissions::from_mode(0o777)).unwrap();
    let reason = notes.path().join("reason");
    let run = run.clone().directory(directory).env("NASTY_REASON", reason.to_str().unwrap());
    let ended = same(&run);
    let reason = std::fs::read_to_string(reason).unwrap();
    assert!(reason.contains(because), "{because:?} is expected, and not {reason:?}");
    ended.stderr
}

#[test]
fn a_directory_that_cannot_be_made() {
    will_not_do(&act(&["work"]), Path::new("/nonexistent/sockets"), "cannot make the directory");
    will_not_do(&act(&["work"]), Path::new("/proc/sockets"), "cannot make the directory");
}

#[test]
fn a_directory_that_is_none() {
    let file = tempfile::NamedTempFile::new().unwrap();
    will_not_do(&act(&["work"]), file.path(), "is no directory");
    let directory = socket_directory();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(directory.path(), &link).unwrap();
    will_not_do(&act(&["work"]), &link, "is no directory");
}

#[test]
fn a_directory_that_is_open_to_others() {
    let directory = socket_directory();
    std::fs::set_permissions(directory.path(), Permissions::from_mode(0o750)).unwrap();
    will_not_do(&act(&["work"]), directory.path(), "is open to others");
}

#[test]
fn a_directory_of_another_user() {
    if is_root() {
        let directory = socket_directory();
        chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        will_not_do(&act(&["work"]), directory.path(), &format!("owner {NOBODY}"));
    }
}

/// Who starts a program with root's rights must not have it make directories.
#[test]
fn a_program_that_is_setuid_makes_none() {
    if !is_root() {
        return;
    }
    let directory = socket_directory();
    let (program, wanted) = (directory.path().join("setuid"), directory.path().join("made"));
    let reason = directory.path().join("reason");
    std::fs::copy(binaries::path("fixture-nasty"), &program).unwrap();
    let open = |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode));
    open(directory.path(), 0o755).unwrap();
    let mut run = Run::of(program.to_str().unwrap(), &["work"]).directory(&wanted);
    run = run.env("NASTY_REASON", reason.to_str().unwrap()).input("\n\n");
    run = run.setup(|| {
        // SAFETY: plain system calls.
        let dropped = unsafe { libc::setgid(NOBODY) == 0 && libc::setuid(NOBODY) == 0 };
        if dropped { Ok(()) } else { Err(io::Error::last_os_error()) }
    });
    open(&program, 0o4755).unwrap();
    let ended = run.to_end();
    assert!(ended.status.success(), "{ended:?}");
    assert!(std::fs::read_to_string(reason).unwrap().contains("is not profiled"));
    assert!(!wanted.exists());
}

#[test]
fn a_directory_that_is_read_only() {
    let directory = socket_directory();
    let mut run = act(&["work"]);
    if is_root() {
        // Root may write everywhere.
        run = run.user(NOBODY);
    }
    let path = directory.path().to_owned();
    let run = run.setup(move || std::fs::set_permissions(&path, Permissions::from_mode(0o500)));
    // That needs the socket itself, which the agent opens when it has descriptors of its own.
    assert_eq!(cannot_serve(&run, directory.path(), "cannot open the socket"), "");
    std::fs::set_permissions(directory.path(), Permissions::from_mode(0o700)).unwrap();
}

/// Mounts a file system without room for a socket at the path, for the calling
/// process alone.
fn mount_full(at: &Path) -> io::Result<()> {
    let path = std::ffi::CString::new(at.as_os_str().as_encoded_bytes())?;
    let options = c"nr_inodes=1,mode=700";
    let done = |result| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    // SAFETY: plain system calls on strings that end with a zero.
    unsafe {
        done(libc::unshare(libc::CLONE_NEWNS))?;
        let private = libc::MS_REC | libc::MS_PRIVATE;
        let none = std::ptr::null();
        done(libc::mount(none, c"/".as_ptr(), none, private, none.cast()))?;
        let options = options.as_ptr().cast();
        done(libc::mount(c"none".as_ptr(), path.as_ptr(), c"tmpfs".as_ptr(), 0, options))
    }
}

#[test]
fn a_directory_that_is_full() {
    let directory = socket_directory();
    let path = directory.path().to_owned();
    let run = act(&["work"]).setup(move || mount_full(&path));
    let try_it = Run::of("fixture-nasty-plain", &["work"]);
    let path = directory.path().to_owned();
    if is_root() && try_it.setup(move || mount_full(&path)).starts() {
        assert_eq!(cannot_serve(&run, directory.path(), "cannot open the socket"), "");
    } else {
        eprintln!("this test needs to mount: nothing was tested");
    }
}

#[test]
fn a_path_that_is_too_long() {
    let directory = socket_directory();
    let path = directory.path().join("d".repeat(100));
    will_not_do(&act(&["work"]), &path, "set HEAPTOP_DIR to a shorter one");
    let path = Path::new("/").join("d".repeat(5000));
    let told = cannot_serve(&act(&["work"]), &path, "set HEAPTOP_DIR to a shorter one");
    assert!(told.contains("a shorter one") && told.chars().count() < 500, "{told:?}");
}

#[test]
fn something_in_the_way_of_its_socket() {
    let directory = socket_directory();
    let path = directory.path().to_owned();
    let socket = move || endpoint::socket(&path, std::process::id());
    let run = act(&["work"]);
    let occupied = socket.clone();
    let file = run.clone().setup(move || std::fs::write(occupied(), "a file"));
    will_not_do(&file, directory.path(), "is in the way and is no socket");

    // What a process of this number left that is gone.
    let occupied = socket.clone();
    let stale = run.setup(move || UnixListener::bind(occupied()).map(drop));
    let mut target = Target::of(&stale, Arc::new(socket_directory()));
    target.wait_for("ready");
    drop(Client::attach(&target.socket()));
}

#[test]
fn two_targets_of_one_name() {
    let directory = Arc::new(socket_directory());
    let run = usual_act(&["work"]).env("HEAPTOP_NAME", "orders");
    let targets = [0, 1].map(|_| {
        let mut target = Target::of(&run, Arc::clone(&directory));
        target.wait_for("ready");
        let client = Client::attach(&target.socket());
        assert_eq!((client.hello.name.as_str(), client.hello.pid), ("orders", target.pid()));
        target
    });
    let mut list = Command::new(binaries::path("heaptop"));
    let list = list.arg("list").env("HEAPTOP_DIR", directory.path()).output().unwrap();
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    for target in targets {
        assert!(list.contains(&target.pid().to_string()), "{list}");
        ends_as_unprofiled(target, &run);
    }
}

#[test]
fn a_service_of_another_user_is_open_to_root_and_to_nobody_else() {
    if !is_root() {
        return;
    }
    let run = act(&["work"]).user(NOBODY);
    let target = started(&run);
    let mut client = Client::attach(&target.socket());
    client.snapshot();
    assert_eq!(client.hello.pid, target.pid());
    // Even one who could come to the socket.
    std::fs::set_permissions(target.directory(), Permissions::from_mode(0o711)).unwrap();
    std::fs::set_permissions(target.socket(), Permissions::from_mode(0o666)).unwrap();
    let socket = target.socket();
    let other = std::thread::spawn(move || {
        // SAFETY: a bare system call changes this thread's user alone.
        let changed = unsafe { libc::syscall(libc::SYS_setresuid, 65533, 65533, 65533) };
        assert_eq!(changed, 0);
        let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        io::Read::read(&mut stream, &mut [0; 64])
    });
    let read = other.join().unwrap();
    assert!(matches!(read, Ok(0)), "another user was told something: {read:?}");
    ends_as_unprofiled(target, &act(&["work"]));
}

#[test]
fn root_finds_a_service_of_another_user_where_that_user_puts_it() {
    if !is_root() {
        return;
    }
    let run = usual_act(&["work"])
        .user(NOBODY)
        .env("HEAPTOP_DIR", "")
        .env("XDG_RUNTIME_DIR", "")
        .env("TMPDIR", "/tmp");
    let target = started(&run);
    let pid = target.pid().to_string();
    // It says "ready" of itself: its agent may still be on the way.
    let listed = poll(Deadline::default(), || {
        let mut list = Command::new(binaries::path("heaptop"));
        let list = list.arg("list").env_remove("HEAPTOP_DIR").output().unwrap();
        String::from_utf8_lossy(&list.stdout).contains(&pid).then_some(())
    });
    assert!(listed.is_some(), "{pid} is not in the list");
    ends_as_unprofiled(target, &usual_act(&["work"]));
}
