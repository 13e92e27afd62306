//! CPU, memory and writes of a process, and load of the machine, from `/proc`.
//!
//! # Invariants
//!
//! - An unreadable figure is an error, never a zero.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::param::clock_ticks_per_second;

/// CPU time, user and system, of the live threads whose names satisfy `wanted`.
///
/// Ended threads are not included, so keep a runtime alive between two readings. The kernel updates the time of a
/// thread when it leaves its core, at least 100 times a second.
pub fn cpu(wanted: impl Fn(&str) -> bool) -> Result<Duration> {
    let mut nanos = 0;
    for task in fs::read_dir("/proc/self/task").context("listing the threads")? {
        let path = task?.path();
        // A thread may end while its file is read.
        let (Ok(name), Ok(times)) =
            (fs::read_to_string(path.join("comm")), fs::read_to_string(path.join("schedstat")))
        else {
            continue;
        };
        if wanted(name.trim_end()) {
            // Time on a core in ns, time of waiting for a core, time slices.
            let on_core = times.split(' ').next().context("schedstat is empty")?;
            nanos += on_core.parse::<u64>().with_context(|| format!("schedstat says `{times}`"))?;
        }
    }
    Ok(Duration::from_nanos(nanos))
}

/// CPU time of a process, user and system, with that of its ended threads; in ticks, usually of 10 ms.
pub fn process_cpu(id: u32) -> Result<Duration> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).context("reading the CPU time of a process")?;
    // The name of the program, in parentheses, may contain anything.
    let after = text.rsplit_once(')').map_or("", |(_, after)| after).split_whitespace();
    let ticks: Vec<u64> = after.skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
    Ok(Duration::from_millis(ticks.iter().sum::<u64>() * 1_000 / clock_ticks_per_second()))
}

/// Bytes that this process has caused to be written to a device.
pub fn written() -> Result<u64> {
    let text = fs::read_to_string("/proc/self/io").context("reading the bytes of this process")?;
    let line = text.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.context("no write_bytes")?.parse().context("write_bytes")
}

/// Peak resident memory of another process since its start, in bytes.
pub fn peak_resident_of(id: u32) -> Result<u64> {
    status(&id.to_string(), "VmHWM:")
}

/// Current resident memory of the process, in bytes.
pub fn resident() -> Result<u64> {
    status("self", "VmRSS:")
}

/// Peak resident memory since the start or the last [`forget_peak`], in bytes.
pub fn peak_resident() -> Result<u64> {
    status("self", "VmHWM:")
}

/// Resets [`peak_resident`].
pub fn forget_peak() -> Result<()> {
    fs::write("/proc/self/clear_refs", "5").context("resetting the peak of memory")
}

/// Load averages of the machine over 1, 5 and 15 minutes.
pub fn load() -> Result<String> {
    let text = fs::read_to_string("/proc/loadavg").context("reading the load average")?;
    Ok(text.split(' ').take(3).collect::<Vec<_>>().join(" "))
}

fn status(process: &str, name: &str) -> Result<u64> {
    let text =
        fs::read_to_string(format!("/proc/{process}/status")).context("reading the memory of a process")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("no {name}"))?;
    let kib: u64 =
        line.trim().trim_end_matches(" kB").parse().with_context(|| format!("{name} is `{line}`"))?;
    Ok(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_of_a_thread_counts_under_its_name_only() {
        let working = std::thread::Builder::new().name("meter-works".to_owned()).spawn(|| {
            let started = std::time::Instant::now();
            while started.elapsed() < Duration::from_millis(50) {
                std::hint::black_box(0);
            }
            std::thread::yield_now();
            cpu(|name| name == "meter-works").unwrap()
        });
        let used = working.unwrap().join().unwrap();
        assert!(used > Duration::ZERO);
        assert_eq!(cpu(|name| name == "nobody").unwrap(), Duration::ZERO);
    }

    #[test]
    fn the_cpu_of_the_process_is_at_least_that_of_its_threads() {
        let started = std::time::Instant::now();
        while started.elapsed() < Duration::from_millis(50) {
            std::hint::black_box(0);
        }
        std::thread::yield_now();
        let threads = cpu(|_| true).unwrap();
        let tick = Duration::from_millis(20);
        assert!(process_cpu(std::process::id()).unwrap() + tick >= threads, "{threads:?}");
    }

    #[test]
    fn the_peak_is_not_below_the_current_memory() {
        forget_peak().unwrap();
        assert!(peak_resident_of(std::process::id()).unwrap() > 1 << 20);
        assert!(peak_resident().unwrap() >= resident().unwrap() / 2);
        assert!(resident().unwrap() > 1 << 20);
    }
}
