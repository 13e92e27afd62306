//! One writer and one reader of one chain: requests to the store and times, as functions of the measured constants.

use crate::inputs::{Measured, Polls, Quantity, Reader};

/// Milliseconds of a poll: the requests that wait for each other.
pub(crate) fn poll_ms(reader: &Reader, get_ms: f64) -> f64 {
    reader.poll_ms + reader.round_trips_per_poll * get_ms
}

/// Polls a second for a chain with a block each `1 / blocks_per_s` seconds, or none: the pause doubles from poll to poll until one
/// finds a block.
pub(crate) fn polls_per_s(polls: &Polls, poll_ms: f64, blocks_per_s: f64) -> f64 {
    if polls.announced {
        return blocks_per_s.min(1000.0 / (polls.shortest_ms + poll_ms)) + 1000.0 / polls.longest_ms;
    }
    if blocks_per_s == 0.0 {
        return 1000.0 / (polls.longest_ms + poll_ms);
    }
    let interval_ms = 1000.0 / blocks_per_s;
    let (mut passed, mut pause, mut count) = (0.0, polls.shortest_ms, 0.0);
    loop {
        passed += pause + poll_ms;
        count += 1.0;
        if passed >= interval_ms {
            return count * 1000.0 / passed;
        }
        pause = (2.0 * pause).min(polls.longest_ms);
        // The rest of a long interval is polls at the longest pause.
        if pause >= polls.longest_ms {
            let rest = ((interval_ms - passed) / (pause + poll_ms)).ceil();
            return (count + rest) * 1000.0 / (passed + rest * (pause + poll_ms));
        }
    }
}

/// GETs a second of a query server that polls `polls_per_s` times a second, while `commits_per_s` blocks are committed.
pub(crate) fn server_gets_per_s(measured: &Measured, polls_per_s: f64, commits_per_s: f64) -> f64 {
    let reader = &measured.reader;
    let files_per_s = commits_per_s * measured.writer.log_files_per_block;
    polls_per_s * reader.gets_per_poll + files_per_s * reader.gets_per_log_file * reader.views
}

/// Milliseconds from a commit until it is durable.
pub(crate) fn durable_ms(measured: &Measured, put_ms: f64) -> f64 {
    measured.writer.commit_ms + put_ms
}

/// Milliseconds from a commit until a reader shows it, at the median: half of a pause passes before the next poll.
pub(crate) fn lag_ms(measured: &Measured, pause_ms: f64, get_ms: f64, put_ms: f64) -> f64 {
    durable_ms(measured, put_ms) + pause_ms / 2.0 + poll_ms(&measured.reader, get_ms)
}

/// Milliseconds to open a database whose log has `files`.
pub(crate) fn open_ms(reader: &Reader, files: f64, get_ms: f64) -> f64 {
    let file_ms = reader.open_ms_per_file + reader.gets_per_log_file * get_ms / reader.open_parallel;
    poll_ms(reader, get_ms) + files * file_ms
}

/// What the model says about a measured case.
pub(crate) fn predict(measured: &Measured, of: &Quantity) -> f64 {
    match *of {
        Quantity::IdleGets { ref polls, get_ms } => {
            let rate = polls_per_s(polls, poll_ms(&measured.reader, get_ms), 0.0);
            server_gets_per_s(measured, rate, 0.0)
        }
        Quantity::BusyGets { ref polls, get_ms, blocks_per_s } => {
            let rate = polls_per_s(polls, poll_ms(&measured.reader, get_ms), blocks_per_s);
            server_gets_per_s(measured, rate, blocks_per_s)
        }
        Quantity::LagAfterWriter { pause_ms, get_ms } => {
            lag_ms(measured, pause_ms, get_ms, 0.0) - durable_ms(measured, 0.0)
        }
        Quantity::ReaderGets { poll_ms: pause, blocks_per_s, get_ms } => {
            let reader = &measured.reader;
            let rate = 1000.0 / (pause + poll_ms(reader, get_ms));
            rate * reader.gets_per_poll + blocks_per_s * reader.gets_per_log_file
        }
        Quantity::Lag { poll_ms: pause, get_ms, put_ms } => lag_ms(measured, pause, get_ms, put_ms),
        Quantity::Durable { put_ms } => durable_ms(measured, put_ms),
        Quantity::Open { files, get_ms } => open_ms(&measured.reader, files, get_ms),
        Quantity::LogPuts { blocks, seconds, flush_ms } => (seconds * 1000.0 / flush_ms).min(blocks) / blocks,
        Quantity::ColdRead { round_trips, warm_ms, get_ms } => warm_ms + round_trips * get_ms,
    }
}
