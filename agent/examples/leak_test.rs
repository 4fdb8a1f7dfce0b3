//! A leak test for a library, as it would stand in its `tests/`.
//!
//! ```text
//! cargo run -p heaptop-agent --example leak_test
//! ```

use heaptop_agent::testing::measure;

#[global_allocator]
static ALLOC: heaptop_agent::Heaptop = heaptop_agent::Heaptop::system();

/// The library: a cache that forgets to forget.
mod library {
    use std::collections::HashMap;

    #[derive(Default)]
    pub struct Cache {
        entries: HashMap<u64, Vec<u8>>,
        is_forgetful: bool,
    }

    impl Cache {
        pub fn new(is_forgetful: bool) -> Self {
            Self { entries: HashMap::new(), is_forgetful }
        }

        pub fn serve(&mut self, key: u64) -> usize {
            let entry = self.entries.entry(key).or_insert_with(|| vec![0; 512]);
            let len = entry.len();
            if self.is_forgetful {
                self.entries.remove(&key);
            }
            len
        }
    }
}

/// Uses a cache that is warm already; what it has more afterwards has leaked into it.
fn serves_without_growing(is_forgetful: bool) {
    let mut cache = library::Cache::new(is_forgetful);
    cache.serve(0);
    let ((), measured) = measure(|| {
        for key in 1..=100 {
            cache.serve(key);
        }
    });
    measured.assert_peak(64 << 10);
    measured.assert_no_leak();
}

fn main() {
    serves_without_growing(true);
    println!("the forgetful cache: no leak");
    let failed = std::panic::catch_unwind(|| serves_without_growing(false));
    match failed {
        Ok(()) => println!("the other one: no leak seen, which is wrong"),
        Err(_) => println!("the other one: leaks, as the message above says"),
    }
}
