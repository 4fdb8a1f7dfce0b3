//! The environment: any text in any of the variables. A value is taken or refused,
//! and what is in force is within its bounds.

#![no_main]

#[path = "../../../protocol/fuzz/src/seeds.rs"]
mod seeds;

use heaptop_agent::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: seeds::write(|| {
        ["on", "1", "512K", "2MiB", "3G", "4GB", "128", "64M", "99999999999999999999", "1KK", "x"]
            .iter()
            .flat_map(|value| (0..9).map(move |i| [&[i], value.as_bytes()].concat()))
            .collect()
    }),
    |data: &[u8]| {
        let Some((&variable, value)) = data.split_first() else { return };
        fuzzing::settings(variable.into(), value);
        if let Some(bytes) = fuzzing::size(value) {
            // What was taken is a number and a suffix.
            let digits = value.iter().take_while(|c| c.is_ascii_digit()).count();
            let number: u64 = std::str::from_utf8(&value[..digits])
                .ok()
                .and_then(|n| n.parse().ok())
                .expect("a size begins with a number");
            assert!(bytes >= number && (number == 0 || bytes % number == 0));
            assert!(value.len() - digits <= 3);
        }
    }
);
