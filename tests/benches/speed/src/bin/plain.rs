//! The programs on the system's allocator, declared as any other would be.

#[global_allocator]
static ALLOC: std::alloc::System = std::alloc::System;

fn main() {
    heaptop_speed::main();
}
