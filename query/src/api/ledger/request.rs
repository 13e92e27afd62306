//! A request for a page of movements.

use schema::ledger::{self, LEDGER};
use schema::movement::Place;
use store::{List, Snapshot};
use web::call::Call;
use web::endpoint::Param;
use web::http_error::HttpError;
use web::limits::lane;
use web::reply::Reply;

use super::range;
use crate::api::ListRequest;
use crate::array::union::Union;
use crate::array::{Array, Run};
use crate::cursor::{Space, Start};
use crate::filtered_page::filtered_page;
use crate::indexer::Indexer;
use crate::movement_filter::MovementFilter;
use crate::movement_params;
use crate::page::{Page, page};
use crate::page_writer::PageWriter;
use crate::params::{self, Paging};
use crate::transfer_record::Records;

/// Bytes of a row of movements, about.
const ROW: u64 = 1 << 10;

/// A request for movements, whose index is complete.
pub(super) struct Request<'a> {
    pub(super) list: ListRequest<'a, u64>,
    pub(super) filter: MovementFilter,
}

impl<'a> Request<'a> {
    /// Reads the parameters that every list has, of which the endpoint declares `params`.
    pub(super) fn new(indexer: &'a Indexer, call: &Call<'_>, params: &[Param]) -> Result<Self, HttpError> {
        Self::with_limits(indexer, call, params, (params::DEFAULT_LIMIT, params::MAX_LIMIT))
    }

    pub(super) fn with_limits(
        indexer: &'a Indexer,
        call: &Call<'_>,
        params: &[Param],
        limits: (u64, u64),
    ) -> Result<Self, HttpError> {
        params::check(call, params)?;
        let paging = Paging::read_within(call, Space::Transfers, limits)?;
        let filter = MovementFilter { kinds: movement_params::kinds(call)?, ..MovementFilter::default() };
        let list = ListRequest::with(indexer, paging)?;
        list.view.require(&LEDGER)?;
        Ok(Self { list, filter })
    }

    pub(super) fn snapshot(&self) -> &dyn Snapshot {
        self.list.snapshot()
    }

    pub(super) fn records(&self) -> Records<'_> {
        let Indexer { identity, codec, .. } = self.list.indexer;
        Records::new(identity, codec, self.snapshot())
    }

    pub(super) fn all(&self) -> Result<Run, HttpError> {
        let state = LEDGER.state(self.snapshot()).map_err(HttpError::internal)?;
        Ok(Run { first: 1, len: state.map_or(0, |state| state.numbered) })
    }

    /// The movements from one place on and before another one.
    pub(super) fn between(&self, from: (u64, Place), to: (u64, Place)) -> Result<Run, HttpError> {
        let len = self.all()?.len;
        let before = |(height, place): (u64, Place)| {
            ledger::position(self.snapshot(), len, height, place).map_err(HttpError::internal)
        };
        let (start, end) = (before(from)?, before(to)?);
        Ok(Run { first: start + 1, len: end.saturating_sub(start) })
    }

    /// The movements of the blocks that the parameters select; `None` without them.
    pub(super) fn range(&self, call: &Call<'_>) -> Result<Option<Run>, HttpError> {
        let heights = range::heights(call, self.list.indexer, &self.list.view)?;
        heights.map(|(from, end)| self.between((from, Place::Begin), (end, Place::Begin))).transpose()
    }

    /// The union of disjoint lists, within the blocks that the parameters select.
    pub(super) fn union<L: List>(
        &self,
        call: &Call<'_>,
        owners: Vec<L::Owner>,
    ) -> Result<Union<'_, L>, HttpError> {
        let union = Union::<L>::new(self.snapshot(), owners).map_err(HttpError::internal)?;
        match self.range(call)? {
            None => Ok(union),
            Some(run) => union.within(run).map_err(HttpError::internal),
        }
    }

    /// The requested page of `array`, or of the rows that pass the filter.
    pub(super) fn page(&self, array: &dyn Array<Row = u64>) -> Result<Page<u64>, HttpError> {
        let request = &self.list.paging.request;
        if self.filter.is_none() {
            return page(array, request).map_err(HttpError::internal);
        }
        if matches!(request.at, Start::Offset(1..)) {
            return Err(HttpError::bad_request(
                "pagination.offset does not go with kind, counterparty or token_id, which are searched for: follow next_key",
            ));
        }
        filtered_page(array, request, |numbers| {
            lane::spend(ROW * numbers.len() as u64)?;
            let placed = ledger::movements(self.snapshot(), numbers).map_err(HttpError::internal)?;
            Ok(placed.iter().map(|placed| self.filter.passes(&placed.movement)).collect())
        })
    }

    pub(super) fn respond(&self, array: &dyn Array<Row = u64>) -> Result<Reply, HttpError> {
        let write = |out: &mut PageWriter, numbers: &[u64]| self.records().write(out, numbers);
        self.list.respond_page("transfers", self.page(array)?, None, write, b"")
    }
}
