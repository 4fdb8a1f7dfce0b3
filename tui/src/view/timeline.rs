//! Screen 4: the target over time.

use ratatui::Frame;
use ratatui::text::Line;

use super::{Parts, spark};
use crate::app::App;
use crate::app::timeline::Timeline;

/// Draws it.
pub fn draw(app: &App, timeline: &Timeline, parts: &Parts, frame: &mut Frame) {
    let area = parts.body;
    let Some(curve) = &timeline.answer else { return super::empty(app, area, frame) };
    if curve.points.is_empty() {
        return super::empty(app, area, frame);
    }
    let values: Vec<f64> = curve.points.iter().map(|point| point.in_use_bytes).collect();
    let lines = spark::lines(&values, usize::from(area.width), usize::from(area.height));
    for (y, line) in (area.y..).zip(lines) {
        frame.render_widget(Line::from(line), ratatui::layout::Rect { y, height: 1, ..area });
    }
}
