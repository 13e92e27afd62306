//! Sessions of the stand-in that always have a request in flight.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result};
use benches::client::Load;
use postgres::types::ToSql;
use postgres::{Client, Statement};

use crate::cases::{Parameter, Query};
use crate::postgres::Postgres;

/// Sessions with a thread each.
pub(crate) struct Sessions(Vec<Session>);

/// A session and the statements that it has prepared.
struct Session {
    client: Client,
    prepared: Vec<(&'static str, Statement)>,
}

/// Answer of the stand-in.
pub(crate) struct Answer {
    /// The JSON of each record.
    pub(crate) records: Vec<String>,
    /// The total, if the query counts.
    pub(crate) total: Option<i64>,
}

impl Sessions {
    /// Opens `sessions`.
    pub(crate) fn connect(server: &Postgres, sessions: usize) -> Result<Self> {
        let session = |_| Ok(Session { client: server.connect()?, prepared: Vec::new() });
        Ok(Self((0..sessions).map(session).collect::<Result<_>>()?))
    }

    /// Sends `count` queries, starting at `first`; each session sends its next query after its reply.
    pub(crate) fn run(&mut self, queries: &[Query], first: usize, count: usize) -> Result<Load> {
        let next = AtomicUsize::new(0);
        let started = Instant::now();
        let parts: Vec<Result<(u64, Vec<_>)>> = std::thread::scope(|scope| {
            let next = &next;
            let work = |session: &mut Session| {
                let (mut bytes, mut waits) = (0, Vec::new());
                loop {
                    let turn = next.fetch_add(1, Ordering::Relaxed);
                    if turn >= count {
                        return Ok((bytes, waits));
                    }
                    let sent = Instant::now();
                    let answer = session.answer(&queries[(first + turn) % queries.len()])?;
                    bytes += answer.records.iter().map(String::len).sum::<usize>() as u64;
                    waits.push(sent.elapsed());
                }
            };
            let threads: Vec<_> =
                self.0.iter_mut().map(|session| scope.spawn(move || work(session))).collect();
            let end = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a session's thread panicked")))
            };
            threads.into_iter().map(end).collect()
        });
        let mut load = Load { elapsed: started.elapsed(), body_bytes: 0, waits: Vec::with_capacity(count) };
        for part in parts {
            let (bytes, waits) = part?;
            load.body_bytes += bytes;
            load.waits.extend(waits);
        }
        load.waits.sort_unstable();
        Ok(load)
    }

    /// The answer to one query.
    pub(crate) fn answer(&mut self, query: &Query) -> Result<Answer> {
        self.0.first_mut().context("no session")?.answer(query)
    }
}

impl Session {
    fn answer(&mut self, query: &Query) -> Result<Answer> {
        let total = match query.count {
            Some((count, parameters)) => {
                let rows = self.rows(count, &query.parameters[..parameters])?;
                Some(rows.first().context("a count has a row")?.get(0))
            }
            None => None,
        };
        let records = self.rows(query.page, &query.parameters)?.iter().map(|row| row.get(0)).collect();
        Ok(Answer { records, total })
    }

    fn rows(&mut self, sql: &'static str, parameters: &[Parameter]) -> Result<Vec<postgres::Row>> {
        let known = self.prepared.iter().position(|(known, _)| *known == sql);
        let place = if let Some(place) = known {
            place
        } else {
            self.prepared.push((sql, self.client.prepare(sql)?));
            self.prepared.len() - 1
        };
        let parameters: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(Parameter::as_sql).collect();
        Ok(self.client.query(&self.prepared[place].1, &parameters)?)
    }
}
