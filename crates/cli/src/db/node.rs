//! The node to compare a database with: endpoints from the settings, everything else from the database.

use std::sync::Arc;

use node::{Limits, Node};
use schema::meta::Identity;

use crate::settings::keys::Scope;
use crate::settings::sources::Group;
use crate::settings::{Error, Settings};

/// The settings of commands that work on a data directory and ask a node.
#[derive(Clone, Debug)]
pub(crate) struct DataAndNode;

impl Group for DataAndNode {
    const SCOPES: &'static [Scope] = &[Scope::Log, Scope::Data, Scope::Node];
}

/// Clients for the node of the chain that the database is of.
pub(super) fn node(settings: &Settings, identity: &Identity) -> anyhow::Result<Arc<Node>> {
    let settings = Settings { vm: Some(identity.vm.parse()?), ..settings.clone() };
    Ok(Arc::new(Node::new(settings.endpoints()?, Limits::default())?))
}

/// Fails early if an endpoint is missing that every database needs.
pub(super) fn require_endpoints(settings: &Settings) -> Result<(), Error> {
    settings.endpoints().map(|_| ())
}
