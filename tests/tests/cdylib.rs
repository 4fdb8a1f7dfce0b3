//! The engine in a shared object: no hook finds a thread-local of the engine's by a
//! call of `__tls_get_addr`, which may allocate, and is slow. What the compiler made of
//! it is disassembled and looked at. And it stays loaded, since its thread does.

use heaptop_tests::apart::{self, output};
use heaptop_tests::target::socket_directory;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn no_hook_calls_for_a_thread_local() {
    let library = apart::release("cdylib", "").join("libfixture_cdylib.so");
    let told = output(Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(&library));
    let relocations = output(Command::new("objdump").arg("-R").arg(&library));
    // Where calls go that are not by way of the linkage table.
    let slots: Vec<&str> = relocations
        .lines()
        .filter(|line| line.contains("__tls_get_addr"))
        .filter_map(|line| line.split_whitespace().next())
        .map(|address| address.trim_start_matches('0'))
        .collect();
    let (mut engine, mut hooks, mut elsewhere) = (0, 0, 0);
    for function in told.split("\n\n") {
        let Some(name) = function.lines().next().and_then(|line| line.split('<').nth(1)) else {
            continue;
        };
        let calls = function.lines().any(|line| {
            line.contains("<__tls_get_addr")
                || line.contains("call") && slots.iter().any(|s| line.contains(&format!("# {s} ")))
        });
        let is_agents = name.contains("heaptop_agent");
        let is_hook = name.starts_with("fixture_") || is_agents && name.contains("_slow");
        let is_engine = is_agents && name.contains("engine");
        hooks += usize::from(is_hook && function.contains("%fs:"));
        engine += usize::from(is_engine);
        elsewhere += usize::from(calls);
        assert!(!calls || !(is_hook || is_engine), "{name} calls __tls_get_addr:\n{function}");
    }
    assert!(hooks >= 3, "the countdown of each hook is a thread's own: {hooks}");
    assert!(engine >= 15, "these are the engine's functions: {engine}");
    assert!(elsewhere > 0, "std's panics do call it, and that is seen");
}

/// Unloaded at once, as who looks through plugins does it, and loaded again.
#[test]
#[cfg(target_env = "gnu")]
fn what_the_agents_thread_runs_in_stays() {
    let library = apart::release("cdylib", "").join("libfixture_cdylib.so");
    let path = CString::new(library.as_os_str().as_bytes()).unwrap();
    let sockets = socket_directory();
    // SAFETY: no other thread of this test reads the environment. The functions have the
    // types that they are called by.
    unsafe {
        std::env::set_var("HEAPTOP_DIR", sockets.path());
        for _ in 0..3 {
            let object = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
            assert!(!object.is_null());
            assert_eq!(libc::dlclose(object), 0);
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            assert!(maps.contains("libfixture_cdylib.so"), "the agent's thread has lost its code");
        }
    }
}
