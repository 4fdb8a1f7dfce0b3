//! The programs under dhat, which records each allocation.

#[global_allocator]
static ALLOC: dhat::Alloc = dhat::Alloc;

fn main() {
    let _profiler = dhat::Profiler::builder().file_name("/dev/null").build();
    heaptop_speed::main();
}
