//! The programs on jemalloc, whose profiler `_RJEM_MALLOC_CONF` switches on.

#[global_allocator]
static ALLOC: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() {
    heaptop_speed::main();
}
