//! Whether the settings agree with the node, before the first row is written: rows that a wrong setting made stay wrong.

use chain::Vm;
use chain::evm::flavour::Flavour;
use node::Node;
use node::retry::{self, Backoff};
use proto::json::Registry;

use crate::config::Config;
use crate::{Error, advice};

/// The prefix of account addresses: the node's, which `known`, from the settings or the database, must equal. A node that
/// cannot say it leaves `known`. Waits for a node that is down, unless there is a database (`exists`), which was compared
/// when it was created.
pub(crate) async fn prefix(node: &Node, known: Option<&str>, exists: bool) -> Result<String, Error> {
    let asked = if exists {
        node.bech32_prefix().await
    } else {
        retry::until(Backoff::default(), "bech32 prefix", || node.bech32_prefix()).await
    };
    match (asked, known) {
        (Ok(theirs), Some(ours)) if theirs != ours => Err(Error::Contradiction {
            key: "prefix",
            ours: ours.to_owned(),
            theirs,
            remedy: "correct or remove the setting; a database of the other prefix cannot be used",
        }),
        // It is part of the database's identity.
        (Ok(theirs), _) if !chain::address::is_prefix(&theirs) => Err(Error::Unusable {
            what: "prefix of account addresses",
            value: chain::excerpt(&theirs),
            remedy: "give `prefix`, or correct the REST address",
        }),
        (Ok(theirs), _) => Ok(theirs),
        (Err(_), Some(ours)) => Ok(ours.to_owned()),
        (Err(source), None) if node.rest.is_some() => Err(Error::start("bech32 prefix", source)),
        (Err(_), None) => Err(Error::Setup(
            "no prefix of account addresses: give `prefix`, or a REST address to query it from",
        )),
    }
}

/// The virtual machine must be one of those that the chain has. Returns the software of its EVM, which must be the one that the
/// chain's messages name, if they name any.
pub(crate) fn vm(config: &Config, registry: &Registry) -> Result<Flavour, Error> {
    let evm = advice::flavour(registry);
    if let (Vm::Evm, Some(ours), Some(theirs)) = (config.vm, config.evm, evm)
        && ours != theirs
    {
        return Err(Error::Contradiction {
            key: "evm",
            ours: ours.name().to_owned(),
            theirs: theirs.name().to_owned(),
            remedy: "correct or remove the setting",
        });
    }
    let theirs = advice::vms_of(registry);
    let is_unnamed = config.vm == Vm::Evm && config.evm.is_some() && theirs == [Vm::None];
    if is_unnamed || theirs.contains(&config.vm) {
        return Ok(evm.or(config.evm).unwrap_or_default());
    }
    let theirs: Vec<_> = theirs.into_iter().map(Vm::name).collect();
    Err(Error::Contradiction {
        key: "vm",
        ours: config.vm.name().to_owned(),
        theirs: theirs.join(", "),
        remedy: "correct the setting, and index into a new directory if there are rows of the other",
    })
}
