//! heaptop agent.
