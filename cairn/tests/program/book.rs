//! The book in `docs/src`: its commands run, its links and includes resolve, its lists equal the sources.

mod commands;
mod links;
mod log_lines;
mod markdown;
