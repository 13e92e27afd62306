//! Plots as SVG.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

/// Size of a plot in pixels.
const SIZE: (u32, u32) = (760, 380);

/// Colours of the series, in their order; distinguishable without colour vision.
const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(213, 94, 0), RGBColor(86, 180, 233), RGBColor(230, 159, 0)];

/// Titles of a plot.
pub(crate) struct Titles {
    pub(crate) plot: &'static str,
    pub(crate) x: &'static str,
    pub(crate) y: &'static str,
}

/// A named line.
pub(crate) struct Line {
    pub(crate) name: &'static str,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Draws `lines` over a linear horizontal axis; the vertical axis is logarithmic.
pub(crate) fn lines(file: &Path, titles: &Titles, lines: &[Line]) -> Result<()> {
    let (x, y) = extent(lines)?;
    draw(file, titles, lines, x, y)
}

/// Draws `lines` over logarithmic axes.
pub(crate) fn log_lines(file: &Path, titles: &Titles, lines: &[Line]) -> Result<()> {
    let (x, y) = extent(lines)?;
    draw(file, titles, lines, x.log_scale(), y)
}

/// The ranges of both axes.
fn extent(lines: &[Line]) -> Result<(std::ops::Range<f64>, std::ops::Range<f64>)> {
    let mut points = lines.iter().flat_map(|line| &line.points);
    let &(x, y) = points.next().context("a plot without points")?;
    let (mut xs, mut ys) = ((x, x), (y, y));
    for &(x, y) in points {
        xs = (xs.0.min(x), xs.1.max(x));
        ys = (ys.0.min(y), ys.1.max(y));
    }
    Ok((xs.0..xs.1, ys.0 / 1.5..ys.1 * 1.5))
}

fn draw<X>(file: &Path, titles: &Titles, lines: &[Line], x: X, y: std::ops::Range<f64>) -> Result<()>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
{
    let root = SVGBackend::new(file, SIZE).into_drawing_area();
    root.fill(&WHITE).map_err(failed)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(titles.plot, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(x, y.log_scale())
        .map_err(failed)?;
    chart
        .configure_mesh()
        .x_desc(titles.x)
        .y_desc(titles.y)
        .x_label_formatter(&|x| short(*x))
        .y_label_formatter(&|y| short(*y))
        .light_line_style(WHITE)
        .draw()
        .map_err(failed)?;
    for (line, colour) in lines.iter().zip(COLOURS.into_iter().cycle()) {
        let style = colour.stroke_width(2);
        let series = LineSeries::new(line.points.iter().copied(), style).point_size(3);
        chart
            .draw_series(series)
            .map_err(failed)?
            .label(line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .draw()
        .map_err(failed)?;
    root.present().map_err(failed)
}

/// Draws a horizontal bar for each of `bars`, the first one on top.
pub(crate) fn bars(file: &Path, titles: &Titles, bars: &[(String, f64)], first_group: usize) -> Result<()> {
    let most = bars.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let count = bars.len();
    let height = 90 + 22 * u32::try_from(count)?;
    let root = SVGBackend::new(file, (SIZE.0, height)).into_drawing_area();
    root.fill(&WHITE).map_err(failed)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(titles.plot, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(230)
        .build_cartesian_2d(0.0..most * 1.1, (0..count.saturating_sub(1)).into_segmented())
        .map_err(failed)?;
    let name = |segment: &SegmentValue<usize>| match segment {
        SegmentValue::CenterOf(row) => {
            bars.get(count - 1 - row).map_or(String::new(), |(name, _)| name.clone())
        }
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .x_desc(titles.x)
        .y_labels(count)
        .y_label_formatter(&name)
        .x_label_formatter(&|x| short(*x))
        .light_line_style(WHITE)
        .draw()
        .map_err(failed)?;
    let rectangles = bars.iter().enumerate().map(|(place, (_, value))| {
        let row = count - 1 - place;
        let colour = COLOURS[usize::from(place >= first_group)];
        let above = if row + 1 == count { SegmentValue::Last } else { SegmentValue::Exact(row + 1) };
        let corners = [(0.0, SegmentValue::Exact(row)), (*value, above)];
        let mut bar = Rectangle::new(corners, colour.filled());
        bar.set_margin(3, 3, 0, 0);
        bar
    });
    chart.draw_series(rectangles).map_err(failed)?;
    root.present().map_err(failed)
}

/// A number with few digits: `1.2k`, `0.35`.
fn short(number: f64) -> String {
    let (number, unit) = match number.abs() {
        size if size >= 1e6 => (number / 1e6, "M"),
        size if size >= 1e3 => (number / 1e3, "k"),
        _ => (number, ""),
    };
    let digits = usize::from(number.abs() < 10.0 && number.fract() != 0.0)
        + usize::from(number.abs() < 1.0 && number.fract() != 0.0);
    format!("{number:.digits$}{unit}")
}

fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("drawing a plot: {error}")
}
