//! The programs that are measured. They are compiled once and linked with one
//! allocator after another, so that two programs differ in that alone.
//!
//! ```text
//! loops      allocation and nothing else: what is counted and timed
//! programs   published crates at their work
//! ```

pub mod loops;
pub mod programs;
// Of the end-to-end tests' own package, which brings the whole viewer along.
#[path = "../../../src/ratio.rs"]
pub mod ratio;
#[path = "../../../src/usage.rs"]
pub mod usage;

/// Does what the program's arguments say: a name and how often. Prints a number
/// that depends on all that was done.
pub fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let times = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(1);
    if std::env::var_os("SPEED_IDLE_THREAD").is_some() {
        // A process of two threads, as one with an agent is.
        std::thread::spawn(std::thread::park);
    }
    match loops::run(&name, times).or_else(|| programs::run(&name, times)) {
        Some(result) => println!("{result}"),
        None => {
            eprintln!("there is no program {name:?}: see loops.rs and programs.rs");
            std::process::exit(2);
        }
    }
}
