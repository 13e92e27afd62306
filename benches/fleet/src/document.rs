//! The tables of the model in `docs/scale.md`, between two markers.

use std::fmt::Write as _;
use std::num::NonZeroUsize;

use anyhow::Context as _;

use crate::cache;
use crate::engine;
use crate::inputs::{Measured, Model, Scenario};
use crate::prediction::{self, Prediction};

/// The document, from the root of the repository.
pub(crate) const PATH: &str = "docs/scale.md";

const START: &str = "<!-- Written by `cargo run --release --bin fleet`; tests compare it. -->";
const END: &str = "<!-- End of the written part. -->";

/// `document` with `tables` between its markers.
pub(crate) fn replace(document: &str, tables: &str) -> anyhow::Result<String> {
    let (before, rest) =
        document.split_once(START).with_context(|| format!("{PATH} lacks the line `{START}`"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("{PATH} lacks the line `{END}`"))?;
    Ok(format!("{before}{START}\n\n{tables}\n{END}{after}"))
}

/// All tables.
pub(crate) fn tables(measured: &Measured, model: &Model) -> anyhow::Result<String> {
    let mut out = String::new();
    check(&mut out, measured);
    caches(&mut out);
    let outcomes = model.scenario.iter().map(|scenario| prediction::predict(measured, model, scenario));
    let outcomes = outcomes.collect::<anyhow::Result<Vec<_>>>()?;
    let scenarios: Vec<_> = model.scenario.iter().zip(&outcomes).collect();
    load(&mut out, &scenarios);
    fleet(&mut out, &scenarios);
    cost(&mut out, &scenarios);
    levers(&mut out, measured, model)?;
    sources(&mut out, measured, model);
    Ok(out)
}

fn check(out: &mut String, measured: &Measured) {
    heading(out, "The model beside measured cases");
    table(out, &["case", "predicted", "measured", "ratio"]);
    for case in &measured.case {
        let predicted = engine::predict(measured, &case.of);
        let ratio = predicted / case.measured;
        row(out, &[&case.name, &figure(predicted), &figure(case.measured), &format!("{ratio:.2}")]);
    }
}

/// Blocks, exponent and share of cached blocks of the simulated caches.
const CACHES: [(u32, f64, u32); 6] = [
    (100_000, 0.6, 1),
    (100_000, 0.8, 1),
    (100_000, 0.8, 10),
    (100_000, 1.0, 1),
    (100_000, 1.0, 10),
    (1_000_000, 0.8, 1),
];

fn caches(out: &mut String) {
    heading(out, "Hit ratio: Che's approximation beside a simulated LRU cache");
    table(out, &["blocks", "Zipf exponent", "cached", "simulated, 1,000,000 reads", "Che"]);
    for (blocks, exponent, percent) in CACHES {
        let capacity = blocks / 100 * percent;
        let capacity_of =
            NonZeroUsize::try_from(usize::try_from(capacity).unwrap_or(1)).unwrap_or(NonZeroUsize::MIN);
        let simulated = cache::simulate(blocks, exponent, capacity_of, 1_000_000, 1);
        let (predicted, _) = cache::che(&cache::zipf(f64::from(blocks), exponent, 1.0), f64::from(capacity));
        let cells =
            [format!("{exponent:.1}"), format!("{percent} %"), percentage(simulated), percentage(predicted)];
        let [exponent, cached, simulated, predicted] = &cells;
        row(out, &[&figure(f64::from(blocks)), exponent, cached, simulated, predicted]);
    }
}

fn load(out: &mut String, scenarios: &[(&Scenario, &Prediction)]) {
    heading(out, "Requests to the store, a second");
    table(
        out,
        &[
            "scenario",
            "rows",
            "requests/s",
            "hit ratio",
            "GETs: polls",
            "GETs: misses",
            "GETs: writers",
            "PUTs",
            "LISTs",
            "partitions",
        ],
    );
    for (scenario, found) in scenarios {
        row(
            out,
            &[
                &scenario.name,
                &format!("{:e}", scenario.rows),
                &figure(scenario.requests_per_s),
                &percentage(found.hit_ratio),
                &figure(found.gets.polls),
                &figure(found.gets.misses),
                &figure(found.gets.writers),
                &figure(found.puts),
                &figure(found.lists),
                &figure(found.partitions),
            ],
        );
    }
}

fn fleet(out: &mut String, scenarios: &[(&Scenario, &Prediction)]) {
    heading(out, "Servers, and the first limit");
    table(
        out,
        &[
            "scenario",
            "servers",
            "writers' machines",
            "first limit",
            "its use",
            "second limit",
            "lag, busy",
            "lag, quiet",
            "start of a server",
        ],
    );
    for (scenario, found) in scenarios {
        let (first, second) = found.limits();
        row(
            out,
            &[
                &scenario.name,
                &servers(found),
                &figure(found.writers),
                first.of,
                &percentage(first.share),
                &format!("{}, {}", second.of, percentage(second.share)),
                &format!("{} ms", figure(found.lag_ms.0)),
                &format!("{} ms", figure(found.lag_ms.1)),
                &format!("{} s", figure(found.start_s)),
            ],
        );
    }
}

fn cost(out: &mut String, scenarios: &[(&Scenario, &Prediction)]) {
    heading(out, "Cost, USD a month");
    let parts: Vec<_> =
        scenarios.first().map(|(_, found)| found.cost.parts().map(|(name, _)| name)).into_iter().collect();
    let names = parts.into_iter().flatten();
    let columns: Vec<_> =
        ["scenario"].into_iter().chain(names).chain(["all", "a chain", "a million requests"]).collect();
    table(out, &columns);
    for (scenario, found) in scenarios {
        let all = found.cost.total();
        let mut cells = vec![scenario.name.clone()];
        cells.extend(found.cost.parts().iter().map(|(_, usd)| figure(*usd)));
        cells.push(figure(all));
        cells.push(figure(all / f64::from(scenario.chains)));
        cells.push(figure(all / prediction::monthly(scenario.requests_per_s) * 1e6));
        row(out, &cells.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

fn levers(out: &mut String, measured: &Measured, model: &Model) -> anyhow::Result<()> {
    let Some(base) = model.scenario.last() else { return Ok(()) };
    heading(out, &format!("Single changes to \"{}\"", base.name));
    table(
        out,
        &["change", "exists", "servers", "writers' machines", "first limit", "USD a month", "largest part"],
    );
    let unchanged = prediction::predict(measured, model, base)?;
    let mut outcomes = vec![("none", true, unchanged)];
    for lever in &model.lever {
        let scenario = base.with(lever)?;
        outcomes.push((&lever.name, lever.exists, prediction::predict(measured, model, &scenario)?));
    }
    for (name, exists, found) in &outcomes {
        let (first, _) = found.limits();
        row(
            out,
            &[
                name,
                if *exists { "yes" } else { "no" },
                &servers(found),
                &figure(found.writers),
                &format!("{}, {}", first.of, percentage(first.share)),
                &figure(found.cost.total()),
                found.largest_cost(),
            ],
        );
    }
    Ok(())
}

fn sources(out: &mut String, measured: &Measured, model: &Model) {
    heading(out, "Sources of the inputs");
    let _ = writeln!(out, "* Measured: {}.", measured.source);
    for price in &model.price {
        let _ = writeln!(
            out,
            "* {}: {} USD a million PUTs or LISTs, {} a million GETs, {} a GB and month ({}).",
            price.name, price.put_per_million, price.get_per_million, price.gb_month, price.source
        );
    }
    let machine = &model.machine;
    let _ = writeln!(
        out,
        "* Machine: {}, {} cores, {} GiB, {} Gbit/s, {} USD an hour ({}); {} of each resource is planned for.",
        machine.name,
        machine.cores,
        machine.memory_gib,
        machine.network_gbit_per_s,
        machine.hour,
        machine.source,
        percentage(machine.target)
    );
    let mix = model.mix.iter().map(|part| format!("{} {}", percentage(part.share), part.request));
    let _ = writeln!(out, "* Requests: {}.", mix.collect::<Vec<_>>().join(", "));
}

fn servers(found: &Prediction) -> String {
    let fits = found.limits().0.share <= 1.0;
    if fits { figure(f64::from(found.servers)) } else { "no number fits".to_owned() }
}

fn heading(out: &mut String, title: &str) {
    let before = if out.is_empty() { "" } else { "\n" };
    let _ = writeln!(out, "{before}### {title}\n");
}

fn table(out: &mut String, columns: &[&str]) {
    row(out, columns);
    row(out, &vec!["---"; columns.len()]);
}

fn row(out: &mut String, cells: &[&str]) {
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

fn percentage(share: f64) -> String {
    format!("{} %", figure(100.0 * share))
}

/// `value` with two or three digits that count, thousands separated.
fn figure(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if value < 100.0 {
        let digits = if value >= 10.0 {
            0
        } else if value >= 1.0 {
            1
        } else if value >= 0.1 {
            2
        } else {
            4
        };
        let text = format!("{value:.digits$}");
        return if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text
        };
    }
    let step = 10_f64.powf(value.log10().floor() - 2.0);
    let text = format!("{:.0}", (value / step).round() * step);
    let mut out = String::new();
    for (at, digit) in text.chars().enumerate() {
        if at > 0 && (text.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
