//! The endpoints, grouped by subject.

pub(crate) mod balance;
pub(crate) mod balance_history;
pub(crate) mod block;
pub(crate) mod bridge;
pub(crate) mod collection;
pub(crate) mod evm_tx;
pub(crate) mod holders;
pub(crate) mod ibc;
pub(crate) mod internal_tx;
pub(crate) mod ledger;
pub(crate) mod ledger_token;
pub(crate) mod nft_tx;
pub(crate) mod rich_list;
pub(crate) mod status;
pub(crate) mod stream;
pub(crate) mod token;
pub(crate) mod tx;

use schema::keys::hash_prefix;
use schema::payload::Codec;
use schema::postings::Hashed;
use schemars::JsonSchema;
use store::Snapshot;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method, Param};
use web::http_error::HttpError;
use web::openapi::schema::of;
use web::reply::Reply;

use crate::array::Array;
use crate::cursor::{Row, Space};
use crate::indexer::{Indexer, View};
use crate::page::{Page, page};
use crate::page_writer::PageWriter;
use crate::params::Paging;

/// A group of endpoints, by its tag in the OpenAPI document.
#[derive(Clone, Copy)]
pub(crate) struct Tag(pub(crate) &'static str);

/// A handler, which reads one snapshot.
type ReadHandler = fn(&Indexer, &Call<'_>) -> Result<Reply, HttpError>;

impl Tag {
    /// A `GET` endpoint whose response changes with every block.
    pub(crate) const fn list<Response: JsonSchema + Sync + 'static>(
        self,
        path: &'static str,
        summary: &'static str,
        params: &'static [Param],
        handler: ReadHandler,
    ) -> Endpoint<Indexer> {
        let (response, handler) = (of::<Response>(), Handler::Sync(handler));
        Endpoint {
            method: Method::Get,
            path,
            tag: self.0,
            summary,
            params,
            response,
            handler,
            cache: MaxAge::LIST,
        }
    }

    /// A `GET` endpoint whose response is final once it exists.
    pub(crate) const fn record<Response: JsonSchema + Sync + 'static>(
        self,
        path: &'static str,
        summary: &'static str,
        params: &'static [Param],
        handler: ReadHandler,
    ) -> Endpoint<Indexer> {
        let endpoint = self.list::<Response>(path, summary, params, handler);
        Endpoint { cache: MaxAge::RECORD, ..endpoint }
    }
}

/// A function of [`crate::record`] that appends the records of sequences, as many as the page takes.
type WriteRecords = fn(&mut PageWriter, &dyn Snapshot, &Codec, &[u64]) -> Result<(), HttpError>;

/// A request for a page of a list: its snapshot and its `pagination.*` parameters.
struct ListRequest<'a, R> {
    indexer: &'a Indexer,
    view: View<'a>,
    paging: Paging<R>,
}

impl<'a, R: Row> ListRequest<'a, R> {
    /// Reads the parameters, then takes the snapshot.
    fn new(indexer: &'a Indexer, call: &Call<'_>, space: Space) -> Result<Self, HttpError> {
        Self::with(indexer, Paging::read(call, space)?)
    }

    /// A request with these parameters.
    fn with(indexer: &'a Indexer, paging: Paging<R>) -> Result<Self, HttpError> {
        Ok(Self { indexer, view: indexer.view()?, paging })
    }

    fn snapshot(&self) -> &dyn Snapshot {
        self.view.snapshot()
    }

    /// The response `{"<member>":[…],"pagination":{…}}` with the requested page of `array`. `write` appends the records
    /// of its rows, as many as the page takes: the others are behind its cursor.
    fn respond(
        &self,
        member: &str,
        array: &dyn Array<Row = R>,
        total: Option<u64>,
        write: impl FnOnce(&mut PageWriter, &[R]) -> Result<(), HttpError>,
    ) -> Result<Reply, HttpError> {
        self.respond_with(member, array, total, write, b"")
    }

    /// [`Self::respond`] with further members, each after a comma.
    fn respond_with(
        &self,
        member: &str,
        array: &dyn Array<Row = R>,
        total: Option<u64>,
        write: impl FnOnce(&mut PageWriter, &[R]) -> Result<(), HttpError>,
        further: &[u8],
    ) -> Result<Reply, HttpError> {
        let page = page(array, &self.paging.request).map_err(HttpError::internal)?;
        self.respond_page(member, page, total, write, further)
    }

    /// [`Self::respond_with`] for a page that is known.
    fn respond_page(
        &self,
        member: &str,
        mut page: Page<R>,
        total: Option<u64>,
        write: impl FnOnce(&mut PageWriter, &[R]) -> Result<(), HttpError>,
        further: &[u8],
    ) -> Result<Reply, HttpError> {
        let request = &self.paging.request;
        let lead = [b"{\"".as_slice(), member.as_bytes(), b"\":["].concat();
        let mut writer = PageWriter::new(lead, page.rows.len(), self.indexer.page_bytes);
        // A page that ends at a place loses its other end, so it is written from that place.
        let backward = request.is_backward();
        if backward {
            page.rows.reverse();
        }
        write(&mut writer, &page.rows)?;
        if backward {
            page.rows.reverse();
        }
        let (mut body, n) = writer.finish(backward);
        page.cut(n, request);
        body.extend_from_slice(b"],");
        self.paging.write(&mut body, page, total, self.indexer.empty_cursor);
        body.extend_from_slice(further);
        body.push(b'}');
        if body.capacity() / 2 > body.len() {
            body.shrink_to_fit();
        }
        Ok(Reply::json(body))
    }
}

impl ListRequest<'_, u64> {
    /// [`Self::respond`] with stored records.
    fn records(
        &self,
        member: &str,
        array: &dyn Array<Row = u64>,
        write: WriteRecords,
    ) -> Result<Reply, HttpError> {
        self.respond(member, array, None, |out, seqs| write(out, self.snapshot(), &self.indexer.codec, seqs))
    }
}

/// The response `{"<member>":…}` with one record.
fn one(member: &str, record: &[u8]) -> Reply {
    Reply::json([b"{\"".as_slice(), member.as_bytes(), b"\":", record, b"}"].concat())
}

/// Records of a hash prefix that a request reads. Random collisions of two hashes do not occur, and the same bytes are
/// rarely in several blocks.
const CANDIDATES: usize = 64;

/// The records that may be of the transaction `hash`, newest first: sequences with their numbers.
fn candidates<R: Hashed>(
    view: &View<'_>,
    hash: &[u8; 32],
) -> Result<impl ExactSizeIterator<Item = (u64, u64)> + use<R>, HttpError> {
    let found =
        store::table::read::<R::ByHash>(view.snapshot(), &hash_prefix(hash)).map_err(HttpError::internal)?;
    Ok(found.unwrap_or_default().into_newest_first().take(CANDIDATES))
}
