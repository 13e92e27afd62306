//! The first page of a routing service without an index: the route form.

use web::call::Call;
use web::http_error::HttpError;

use crate::explorer::Explorer;
use crate::view::{Response, View};

pub(crate) struct Home;

impl View for Home {
    const PATH: &'static str = "/";
    const SUMMARY: &'static str = "Leads to the route form.";

    fn respond(_: &Explorer, _: &Call<'_>) -> Result<Response, HttpError> {
        Ok(Response::Redirect("/route".to_owned()))
    }
}
