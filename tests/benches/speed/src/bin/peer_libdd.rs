//! The programs under Datadog's sampling allocator, at `SPEED_INTERVAL` bytes.

use libdd_profiling_heap_allocator::{SampledAllocator, set_default_sampling_distance};
use std::alloc::System;

#[global_allocator]
static ALLOC: SampledAllocator<System> = SampledAllocator::<System>::DEFAULT;

fn main() {
    let bytes = std::env::var("SPEED_INTERVAL").ok().and_then(|v| v.parse().ok());
    set_default_sampling_distance(bytes.unwrap_or(512 << 10));
    heaptop_speed::main();
}
