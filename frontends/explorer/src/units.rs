//! Display units of denoms: those of the registry, else what a token says of itself.
//!
//! A page has the same few denoms many times, so what was read of a token is kept for a while.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::routing::Unit;

/// How long a unit is kept: a token may rename itself.
const KEPT: Duration = Duration::from_secs(30);

/// Denoms that are kept. Strangers make denoms, so all are forgotten when there are more.
const MOST: usize = 1024;

/// What was read of tokens, by denom.
#[derive(Default)]
pub(crate) struct Units(Mutex<HashMap<String, (Instant, Option<Unit>)>>);

impl Units {
    /// The unit of a denom, which `read` reads if it is not kept.
    pub(crate) fn get(&self, denom: &str, read: impl FnOnce() -> Option<Unit>) -> Option<Unit> {
        // A panic leaves the map as it was.
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, unit)) = lock().get(denom)
            && at.elapsed() < KEPT
        {
            return unit.clone();
        }
        let unit = read();
        let mut kept = lock();
        if kept.len() >= MOST {
            kept.clear();
        }
        kept.insert(denom.to_owned(), (Instant::now(), unit.clone()));
        unit
    }
}

/// A unit of which both parts are known.
pub(crate) fn unit_of(symbol: Option<String>, decimals: Option<u32>) -> Option<Unit> {
    let symbol = symbol.filter(|symbol| !symbol.is_empty())?;
    Some(Unit { symbol, decimals: u8::try_from(decimals?).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_read_once_and_the_map_does_not_grow_without_end() {
        let units = Units::default();
        let unit = Unit { symbol: "GAS".to_owned(), decimals: 18 };
        assert_eq!(units.get("a", || Some(unit.clone())), Some(unit.clone()));
        assert_eq!(units.get("a", || None), Some(unit));
        for n in 0..3 * MOST {
            units.get(&n.to_string(), || None);
        }
        assert!(units.0.lock().unwrap().len() <= MOST);
    }
}
