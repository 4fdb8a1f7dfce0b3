//! The programs with heaptop's agent.

#[global_allocator]
static ALLOC: heaptop_agent::Heaptop = heaptop_agent::Heaptop::system();

fn main() {
    heaptop_speed::main();
}
