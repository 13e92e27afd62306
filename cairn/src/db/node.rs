//! The node to compare a database with: endpoints from the settings, everything else from the database.

use std::sync::Arc;

use node::{Limits, Node};
use schema::meta::Identity;

use crate::settings::Settings;
use crate::settings::values::Error;

/// Clients for the node of the chain that the database is of.
pub(super) fn node(settings: &Settings, identity: &Identity) -> anyhow::Result<Arc<Node>> {
    let mut settings = settings.clone();
    settings.vm = Some(identity.vm.parse()?);
    Ok(Arc::new(Node::new(settings.endpoints()?, Limits::default())?))
}

/// Fails early if an endpoint is missing that every database needs.
pub(super) fn require_endpoints(settings: &Settings) -> Result<(), Error> {
    settings.endpoints().map(|_| ())
}
