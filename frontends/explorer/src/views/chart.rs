//! Bar charts as inline SVG, with their axes as text around it.

use maud::{Markup, html};

/// Size of the drawing in its own units; the page scales it.
const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 120.0;

/// A bar: its value, and a text for a pointer and for assistive technology.
pub(crate) struct Bar {
    pub(crate) value: f64,
    pub(crate) label: String,
}

/// What stands at the axes.
pub(crate) struct Axes {
    /// The value of the highest bar.
    pub(crate) top: String,
    /// The first bar and the last one.
    pub(crate) ends: [String; 2],
}

/// A chart of bars from left to right; `summary` describes it in one sentence.
pub(crate) fn bars(title: &str, summary: &str, bars: &[Bar], axes: &Axes) -> Markup {
    let top = bars.iter().map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max);
    // A page has at most a few hundred bars.
    #[expect(clippy::cast_precision_loss)]
    let (step, place) = (WIDTH / bars.len().max(1) as f64, |n: usize| n as f64);
    html! {
        figure.chart {
            figcaption { strong { (title) } " " span.dim { (summary) } }
            div.plot {
                div.values { span { (axes.top) } span { "0" } }
                svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img"
                    aria-label=(format!("{title}: {summary}")) {
                    @for (n, bar) in bars.iter().enumerate() {
                        @let height = (bar.value / top * (HEIGHT - 2.0)).max(1.0);
                        rect x=(format!("{:.1}", place(n) * step)) y=(format!("{:.1}", HEIGHT - height))
                            width=(format!("{:.1}", (step - 1.5).max(1.0))) height=(format!("{height:.1}")) {
                            title { (bar.label) }
                        }
                    }
                }
                div.ends { span { (axes.ends[0]) } span { (axes.ends[1]) } }
            }
        }
    }
}
