//! What columns, metrics and kinds of rows are called in a configuration: as `heaptop report`
//! calls them, where it has them.

use crate::query::{Column, Grouping, Metric};

/// A column's name.
pub const fn column(column: Column) -> &'static str {
    match column {
        Column::Callsite => "callsite",
        Column::InUseBytes => "in-use-bytes",
        Column::InUseObjects => "in-use-objects",
        Column::AllocatedBytes => "allocated-bytes",
        Column::AllocatedObjects => "allocated-objects",
        Column::AllocatedRate => "allocated-bytes-per-second",
        Column::ObjectRate => "allocated-objects-per-second",
        Column::Promoted => "promoted",
        Column::ShortLived => "dies-young",
        Column::Lifetime => "lifetime",
        Column::MeanLifetime => "mean-life",
        Column::Growth => "growth",
        Column::Cum => "cum",
        Column::Trend => "trend",
    }
}

/// What can be counted.
pub const METRICS: [(Metric, &str); 6] = [
    (Metric::InUseBytes, "in-use-bytes"),
    (Metric::InUseObjects, "in-use-objects"),
    (Metric::AllocatedBytes, "allocated-bytes"),
    (Metric::AllocatedObjects, "allocated-objects"),
    (Metric::PromotedBytes, "promoted-bytes"),
    (Metric::ShortLivedBytes, "short-lived-bytes"),
];

/// What a row can be.
pub const fn grouping(group: Grouping) -> &'static str {
    match group {
        Grouping::Callsite => "callsite",
        Grouping::Function => "function",
        Grouping::File => "file",
        Grouping::Crate => "crate",
        Grouping::Size => "size",
        Grouping::Thread => "thread",
    }
}
