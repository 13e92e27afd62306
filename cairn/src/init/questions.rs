//! Questions on a terminal, for settings that neither a flag nor a variable gives.
//!
//! # Invariants
//! * Without a terminal nothing is asked: a setting without a default is an error that names the flag.
//! * An answer that the setting does not accept is asked for again, with the reason.

use std::io::{self, BufRead as _, IsTerminal as _};

use crate::output;
use crate::settings::Settings;
use crate::settings::print;
use crate::settings::sources::{of_flag, over_defaults, texts_of};
use crate::settings::values::{Values, missing};

/// The answer for no value.
const NONE: &str = "-";

/// Asks, if standard input is a terminal.
pub(super) struct Questions {
    is_terminal: bool,
}

impl Questions {
    pub(super) fn of_terminal() -> Self {
        Self { is_terminal: io::stdin().is_terminal() }
    }

    /// Asks for a setting that is required and has no default.
    pub(super) fn ask(&self, values: &mut Values, name: &str, suggested: Option<&str>) -> anyhow::Result<()> {
        if values.contains_key(name) {
            return Ok(());
        }
        if !self.is_terminal {
            return Err(missing(name).into());
        }
        answer(values, name, suggested, false)
    }

    /// Asks for a setting that has a default.
    pub(super) fn confirm(&self, values: &mut Values, name: &str, default: &str) -> anyhow::Result<()> {
        if !self.is_terminal && !values.contains_key(name) {
            values.insert(name.to_owned(), of_flag(name, texts_of(name, default)));
        }
        self.ask(values, name, Some(default))
    }

    /// Asks for a setting that is optional.
    pub(super) fn offer(&self, values: &mut Values, name: &str, suggested: &str) -> anyhow::Result<()> {
        if values.contains_key(name) || !self.is_terminal {
            return Ok(());
        }
        answer(values, name, Some(suggested), true)
    }
}

/// Sets `name` to the answer. An empty one means `suggested`, and [`NONE`] that an optional setting is left out.
fn answer(values: &mut Values, name: &str, suggested: Option<&str>, is_optional: bool) -> anyhow::Result<()> {
    let none = if is_optional { format!(", {NONE} for none") } else { String::new() };
    let hint = suggested.map(|suggested| format!(" [{suggested}{none}]")).unwrap_or_default();
    loop {
        output::print(&format!("{}{hint}: ", print::summary(name)))?;
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line)? == 0 {
            return Err(missing(name).into());
        }
        let text = Some(line.trim()).filter(|text| !text.is_empty()).or(suggested).unwrap_or_default();
        if is_optional && text == NONE {
            values.remove(name);
            return Ok(());
        }
        values.insert(name.to_owned(), of_flag(name, texts_of(name, text)));
        match Settings::new(&over_defaults(values)) {
            Ok(_) => return Ok(()),
            Err(error) => output::print(&format!("{error}\n"))?,
        }
    }
}
