//! The viewer's program.

use std::process::ExitCode;

fn main() -> ExitCode {
    heaptop::cli::main()
}
