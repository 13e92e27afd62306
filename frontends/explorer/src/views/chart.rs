//! Bar charts as inline SVG.

use maud::{Markup, html};

/// Size of the drawing in its own units; the page scales it.
const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 120.0;

/// A bar: its value, and a text for a pointer and for assistive technology.
pub(crate) struct Bar {
    pub(crate) value: f64,
    pub(crate) label: String,
}

/// A chart of bars from left to right; `summary` describes it in one sentence.
pub(crate) fn bars(title: &str, summary: &str, bars: &[Bar]) -> Markup {
    let top = bars.iter().map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max);
    // A page has at most a few hundred bars.
    #[expect(clippy::cast_precision_loss)]
    let (step, place) = (WIDTH / bars.len().max(1) as f64, |n: usize| n as f64);
    html! {
        figure.chart {
            figcaption { strong { (title) } " " span.dim { (summary) } }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img"
                aria-label=(format!("{title}: {summary}")) {
                @for (n, bar) in bars.iter().enumerate() {
                    @let height = (bar.value / top * (HEIGHT - 2.0)).max(1.0);
                    rect x=(format!("{:.2}", place(n) * step)) y=(format!("{:.2}", HEIGHT - height))
                        width=(format!("{:.2}", (step - 1.5).max(1.0))) height=(format!("{height:.2}")) {
                        title { (bar.label) }
                    }
                }
            }
        }
    }
}
