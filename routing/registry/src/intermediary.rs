//! Accounts in whose name IBC middlewares act, instead of a packet's sender.
//!
//! These accounts have no private keys. They are derived from the receiving chain's end of the channel and the sender
//! in the packet (packet-forward-middleware `GetReceiver`, initia `x/ibc-hooks`
//! `DeriveIntermediateSender`).

use chain::{Account, Vm};
use sha2::{Digest as _, Sha256};

/// The account of a packet's tokens while they are forwarded: 20 bytes.
///
/// `channel` is the forwarding chain's end; `sender` is the packet's sender, as text.
pub fn forwarder(channel: &str, sender: &str) -> Account {
    // The module's name is misspelt in its source, and so in the derivation of every address.
    let hash = derived("packetfowardmiddleware", channel, sender);
    let mut short = [0; 20];
    short.copy_from_slice(&hash[..20]);
    Account::from(short)
}

/// The account that calls a contract or module for a packet with a memo: 32 bytes, of which the EVM uses the last 20.
/// `None` for a chain without Initia's hooks.
pub fn hook_caller(vm: Vm, channel: &str, sender: &str) -> Option<Account> {
    let kind = match vm {
        Vm::Evm => "ibc-evm-hook-intermediary",
        Vm::Move => "ibc-move-hook-intermediary",
        Vm::Wasm => "ibc-wasm-hook-intermediary",
        Vm::None => return None,
    };
    Account::from_bytes(&derived(kind, channel, sender))
}

/// The receiver that a packet must name to call a Move function (initia `x/ibc-hooks/move-hooks/util.go`
/// `validateReceiver`): 32 bytes. `path` is `address::module::function`, with the address as the memo spells it.
pub fn move_hook_receiver(path: &str) -> Account {
    let hash: [u8; 32] = Sha256::digest(path).into();
    Account::from(hash)
}

/// `address.Hash` of the cosmos-sdk over `<channel>/<sender>`.
fn derived(kind: &str, channel: &str, sender: &str) -> [u8; 32] {
    let kind = Sha256::digest(kind.as_bytes());
    Sha256::new().chain_update(kind).chain_update(format!("{channel}/{sender}")).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receiver_of_a_call_is_that_of_recorded_packets() {
        let module = "0xd921c61c7e7d2eead33bdff4c5c2941e66d488f0a15fe7fbc432565dc04b3710::entry_point";
        let receiver = |function| move_hook_receiver(&format!("{module}::{function}")).to_bech32("init");
        let plain = "init1222ugqjstnx03xg48c49hf3eau2e592wpkp8ag0x59gsjugemuvs65u8jh";
        assert_eq!(receiver("swap_and_action"), plain);
        let with_recover = "init1kvms7tk5dpg9v2e24f3k69v6gwwu8vls0q3dahxluw5g0qwp02nsm8934k";
        assert_eq!(receiver("swap_and_action_with_recover"), with_recover);
    }

    const SENDER: &str = "noble1pyq6amga29zfsldw8k26kgvl7a0fhf3k07uyg0";

    #[test]
    fn a_forwarded_packet_is_held_by_the_account_that_the_chain_derives() {
        let held = forwarder("channel-3", SENDER).to_bech32("init");
        assert_eq!(held, "init1h8ec302kh6s2fmy8cxv0rt5nzv8nh5gassfhqe");
    }

    #[test]
    fn a_hook_is_called_by_the_account_that_the_chain_derives() {
        let sender = forwarder("channel-3", SENDER).to_bech32("init");
        let caller = hook_caller(Vm::Evm, "channel-0", &sender).unwrap();
        assert_eq!(
            caller.to_bech32("init"),
            "init1cqmatt9hq4m3wuahsahrk5dvwpzrsps5sl4tmaytl9u9whnzgvwqaxztq8"
        );
        assert!(caller.to_hex().ends_with("3b51ac704438061487eabdf48bf978575e62431c"));
        assert_ne!(hook_caller(Vm::Move, "channel-0", &sender), Some(caller));
        assert_ne!(hook_caller(Vm::Wasm, "channel-0", &sender), Some(caller));
        assert_eq!(hook_caller(Vm::None, "channel-0", &sender), None);
    }
}
