//! The first page of a routing service without an index: the route form.

use web::call::Call;
use web::http_error::HttpError;

use crate::explorer::Explorer;
use crate::view::{Answer, View};

pub(crate) struct Home;

impl View for Home {
    const PATH: &'static str = "/";
    const SUMMARY: &'static str = "Leads to the route form.";

    fn answer(_: &Explorer, _: &Call<'_>) -> Result<Answer, HttpError> {
        Ok(Answer::Redirect("/route".to_owned()))
    }
}
