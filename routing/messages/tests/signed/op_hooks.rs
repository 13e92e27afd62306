//! Op hooks: conditions for a hook, and the signed hooks that a deposit accepts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use messages::{BuildError, Msg, OpHookRequest, SignedHook, op_hook};
use planner::{Hop, Step};
use proto::tx::{Any, AuthInfo, Message as _, SignerInfo, TxBody, TxRaw};

use crate::support::proto_form::{self, encode};
use crate::support::world::{self, *};
use crate::support::{NOBLE, OTHER, Scenario, USER, USER_HEX, json, recorded};

const L1: &str = "interwoven-1";

fn hook_of(
    scenario: &Scenario,
    source: (&str, &str),
    dest: (&str, &str),
    signer: &str,
) -> Result<Vec<Msg>, BuildError> {
    let ask = OpHookRequest {
        registry: &scenario.registry,
        facts: &scenario.facts,
        source: scenario.asset(source.0, source.1),
        source_address: signer,
        dest: scenario.asset(dest.0, dest.1),
        dest_address: OTHER,
    };
    op_hook(&ask).map(|hook| hook.hook)
}

const INIT: (&str, &str) = (L1, "uinit");
const WRAPPED: (&str, &str) = ("yominet-1", INIT_WRAPPED);

#[test]
fn a_hook_exists_only_if_a_deposit_ends_wrapped_and_no_packet_can_wrap() {
    let scenario = world::mainnet();
    assert!(hook_of(&scenario, INIT, WRAPPED, USER).is_ok());
    for (source, dest) in [
        (INIT, ("yominet-1", INIT_L2)),
        (("yominet-1", INIT_L2), WRAPPED),
        ((L1, USDC_L1), ("cabal-1", USDC_WRAPPED)),
        (WRAPPED, INIT),
    ] {
        let refused = hook_of(&scenario, source, dest, USER).unwrap_err();
        assert_eq!(refused, BuildError::HookNotRequired);
        assert_eq!(refused.to_string(), "op hook is not required for this route");
    }
    let mut scenario = world::migrated();
    assert_eq!(hook_of(&scenario, INIT, WRAPPED, USER), Err(BuildError::HookNotRequired));
    scenario.facts.hooks.clear();
    assert!(
        hook_of(&scenario, INIT, WRAPPED, USER).is_ok(),
        "migrated, but packets may not call the wrapper"
    );
}

#[test]
fn a_refused_hook_names_the_missing_part() {
    let scenario = world::mainnet();
    let refused = hook_of(&scenario, INIT, WRAPPED, NOBLE).unwrap_err().to_string();
    assert!(refused.starts_with("source_address `noble1") && refused.contains("`yominet-1`"), "{refused}");

    let mut made = world::WorldBuilder::new();
    let l1 = made.cosmos("l-1", "init", chain::Vm::Move, true);
    let l2 = made.cosmos("r-1", "init", chain::Vm::Evm, false);
    let bridge = made.bridge(1, l1, l2);
    let parent = made.native(l1, "uinit", 6);
    let coin = made.came(l2, 6, registry::Origin::Bridged { bridge, parent });
    let denom = made.builder.so_far()[coin].denom.clone();
    let origin = registry::Origin::Wrapped { contract: INIT_WRAPPER.to_owned(), parent: coin };
    made.asset(l2, INIT_WRAPPED, 18, origin, None);
    let mut scenario = Scenario::new(made.finish(), registry::Facts::default());
    let (from, to) = (("l-1", "uinit"), ("r-1", INIT_WRAPPED));
    let missing = BuildError::NoContract { denom: denom.clone(), chain: "r-1".to_owned() };
    assert_eq!(hook_of(&scenario, from, to, USER), Err(missing));
    scenario.facts.contracts.insert(("r-1".to_owned(), denom), INIT_L2_ERC20.to_owned());
    assert!(hook_of(&scenario, from, to, USER).is_ok(), "the chain's word is enough");
}

/// Change of a call after it was built.
type Change = fn(&mut proto_form::Call);

/// A transaction that can be changed before it is signed.
struct Signing {
    messages: Vec<Any>,
    key: Option<Any>,
    signatures: Vec<Vec<u8>>,
    signers: usize,
}

impl Signing {
    fn of(hook: &[Msg]) -> Self {
        let any = |msg: &Msg| Any { type_url: msg.type_url.to_owned(), value: encode(msg) };
        let messages = hook.iter().map(any).collect();
        Self { messages, key: None, signatures: vec![vec![7; 65]], signers: 1 }
    }

    fn bytes(&self) -> Vec<u8> {
        let info = SignerInfo { public_key: self.key.clone(), mode_info: None, sequence: 7 };
        let auth = AuthInfo { signer_infos: vec![info; self.signers], ..AuthInfo::default() };
        let body = TxBody { messages: self.messages.clone(), ..TxBody::default() };
        let raw = TxRaw {
            body_bytes: body.encode_to_vec(),
            auth_info_bytes: auth.encode_to_vec(),
            signatures: self.signatures.clone(),
        };
        raw.encode_to_vec()
    }
}

fn deposit(scenario: &Scenario) -> Vec<Hop> {
    let bridge = scenario.registry.bridge_of(scenario.chain(L1), 11).unwrap();
    let coin = ("yominet-1", INIT_L2);
    vec![
        scenario.hop(Step::Deposit { bridge }, INIT, coin, 1_000_000, 1_000_000),
        scenario.hop(Step::Wrap, coin, WRAPPED, 1_000_000, finer(1_000_000)),
    ]
}

/// A deposit for `OTHER` with these bytes as its hook.
fn deposited(signer: &str, own: &str, hook: String) -> Result<Msg, BuildError> {
    let mut scenario = world::mainnet();
    scenario.hook = Some(SignedHook { signer: signer.to_owned(), hook });
    let hops = deposit(&scenario);
    let made = scenario.make(hops, &[own, OTHER])?;
    let messages::Tx::Cosmos { msgs, .. } = &made.txs[0] else { panic!("{made:?}") };
    Ok(msgs[0].clone())
}

fn signed(change: impl FnOnce(&mut Signing)) -> Result<Msg, BuildError> {
    let hook = hook_of(&world::mainnet(), INIT, WRAPPED, USER).unwrap();
    let mut signing = Signing::of(&hook);
    change(&mut signing);
    deposited(USER, USER, STANDARD.encode(signing.bytes()))
}

#[test]
fn a_deposit_carries_exactly_the_signed_bytes_and_credits_the_signer() {
    let hook = hook_of(&world::mainnet(), INIT, WRAPPED, USER).unwrap();
    let data = STANDARD.encode(Signing::of(&hook).bytes());
    let msg = deposited(USER, USER, data.clone()).unwrap();
    assert_eq!(
        msg.msg,
        format!(
            r#"{{"sender":"{USER}","bridge_id":"11","to":"{USER}","amount":{{"denom":"uinit","amount":"1000000"}},"data":"{data}"}}"#
        )
    );
    assert_eq!(deposited(USER_HEX, USER_HEX, data).unwrap(), msg, "hex is the same account");
}

#[test]
fn a_deposit_without_its_required_hook_is_refused() {
    let scenario = world::mainnet();
    let refusal = scenario.refusal(deposit(&scenario), &[USER, OTHER]);
    assert_eq!(refusal, "signed_op_hook is required for this route");
}

#[test]
fn a_hook_that_is_not_needed_is_ignored() {
    let mut scenario = world::mainnet();
    scenario.hook = Some(SignedHook { signer: String::new(), hook: "?".to_owned() });
    let plain = vec![deposit(&scenario).remove(0)];
    assert!(!scenario.msgs(plain, &[USER, USER])[0].msg.contains("data"));
}

#[test]
fn any_other_signed_content_is_refused_by_name() {
    let why = |change: fn(&mut Signing)| match signed(change) {
        Err(BuildError::Hook(why)) => why,
        other => panic!("{other:?}"),
    };
    let change = |signing: &mut Signing, index: usize, change: fn(&mut proto_form::Call)| {
        use prost::Message as _;
        let mut call = proto_form::Call::decode(signing.messages[index].value.as_slice()).unwrap();
        change(&mut call);
        signing.messages[index].value = call.encode_to_vec();
    };
    assert!(signed(|_| {}).is_ok());
    assert_eq!(why(|signing| signing.messages.truncate(1)), "it has 1 messages, not 2");
    assert_eq!(why(|signing| signing.messages.push(signing.messages[0].clone())), "it has 3 messages, not 2");
    assert_eq!(
        why(|signing| signing.messages.swap(0, 1)),
        "its message 0 has another contract_addr than this route needs"
    );
    assert_eq!(
        why(|signing| signing.messages[1].type_url = "/minievm.evm.v1.MsgCreate".to_owned()),
        "its message 1 is no /minievm.evm.v1.MsgCall"
    );
    assert!(
        why(|signing| signing.messages[1].value = vec![0xff]).starts_with("its message 1 does not decode (")
    );
    assert_eq!(why(|signing| signing.signers = 0), "it has 0 signers, not 1");
    assert_eq!(why(|signing| signing.signers = 2), "it has 2 signers, not 1");
    assert_eq!(why(|signing| signing.signatures.clear()), "it has 0 signatures, not 1");
    assert_eq!(why(|signing| signing.signatures = vec![vec![1], vec![2]]), "it has 2 signatures, not 1");
    assert_eq!(why(|signing| signing.signatures = vec![vec![]]), "its signature is empty");
    let members: [(&str, Change); 5] = [
        ("sender", |call| call.sender = OTHER.to_owned()),
        ("contract_addr", |call| call.contract_addr = call.contract_addr.to_ascii_lowercase()),
        ("input", |call| call.input.push('0')),
        ("value", |call| call.value = "1".to_owned()),
        ("access_list", |call| call.access_list = vec![String::new()]),
    ];
    for (member, with) in members {
        let refused = signed(|signing| change(signing, 1, with)).unwrap_err();
        let why = format!("its message 1 has another {member} than this route needs");
        assert_eq!(refused, BuildError::Hook(why));
    }
    let text = signed(|signing| signing.signers = 2).unwrap_err().to_string();
    assert_eq!(text, "signed_op_hook: it has 2 signers, not 1; ask /op-hook again and sign what it answers");
}

#[test]
fn a_hook_for_another_receiver_is_refused() {
    let scenario = world::mainnet();
    let mut hook = hook_of(&scenario, INIT, WRAPPED, USER).unwrap();
    let theirs = json(&hook[1])["input"].as_str().unwrap().to_owned();
    let ours =
        theirs.replace(&crate::support::word(crate::support::OTHER_HEX), &crate::support::word(USER_HEX));
    assert_ne!(ours, theirs);
    hook[1].msg = hook[1].msg.replace(&theirs, &ours);
    let refused = deposited(USER, USER, STANDARD.encode(Signing::of(&hook).bytes())).unwrap_err();
    assert_eq!(refused, BuildError::Hook("its message 1 has another input than this route needs".to_owned()));
}

#[test]
fn only_the_depositor_can_have_signed_it() {
    let hook = hook_of(&world::mainnet(), INIT, WRAPPED, OTHER).unwrap();
    let data = STANDARD.encode(Signing::of(&hook).bytes());
    let refused = deposited(OTHER, USER, data.clone()).unwrap_err();
    assert_eq!(refused, BuildError::Hook(format!("signer `{OTHER}` is not `{USER}`, who sends the deposit")));
    let refused = deposited(USER, USER, data).unwrap_err();
    assert_eq!(
        refused,
        BuildError::Hook("its message 0 has another sender than this route needs".to_owned())
    );
    let refused = deposited("init1nobody", USER, String::new()).unwrap_err().to_string();
    assert!(refused.starts_with("signed_op_hook.signer `init1nobody` is no address of chain `yominet-1`"));
}

#[test]
fn the_key_of_the_signature_is_that_of_the_depositor() {
    // A real key and its account on both recorded chains.
    let simulated = recorded::simulated("l1").remove(0);
    let auth = AuthInfo::decode(simulated.raw.auth_info_bytes.as_slice()).unwrap();
    let key = auth.signer_infos[0].public_key.clone().unwrap();
    let owner = "init1rw0np4yxjtvlqsa89jn5yl9a4nkr0zx0kps2sd";
    let hook = |signer: &str| {
        let mut signing = Signing::of(&hook_of(&world::mainnet(), INIT, WRAPPED, signer).unwrap());
        signing.key = Some(key.clone());
        deposited(signer, signer, STANDARD.encode(signing.bytes()))
    };
    assert!(hook(owner).is_ok());
    assert_eq!(hook(USER), Err(BuildError::Hook(format!("its key is that of `{owner}`, not of `{USER}`"))));
}

#[test]
fn an_invalid_or_too_long_transaction_is_refused_with_the_limit() {
    let why = |hook: String| match deposited(USER, USER, hook) {
        Err(BuildError::Hook(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(why("%".to_owned()).starts_with("hook is no base64 ("));
    assert!(why(STANDARD.encode("not a tx")).starts_with("hook is no cosmos.tx.v1beta1.Tx ("));
    assert_eq!(why(String::new()), "it has 0 messages, not 2");
    let long = |bytes: usize| {
        let hook = hook_of(&world::mainnet(), INIT, WRAPPED, USER).unwrap();
        let mut signing = Signing::of(&hook);
        let rest = signing.bytes().len() - 65;
        // One byte of the length's own varint more than for the signature of 65 bytes.
        signing.signatures = vec![vec![7; bytes - rest - 1]];
        assert_eq!(signing.bytes().len(), bytes);
        deposited(USER, USER, STANDARD.encode(signing.bytes()))
    };
    assert!(long(10_240).is_ok());
    assert_eq!(
        long(10_241),
        Err(BuildError::Hook("hook has 10241 bytes, more than the 10240 that the L1 takes".to_owned()))
    );
}

#[test]
fn recorded_transactions_of_other_signers_are_refused() {
    let deposits =
        recorded::messages("l1").into_iter().filter(|any| any.type_url.ends_with("MsgInitiateTokenDeposit"));
    let mut refused = Vec::new();
    for any in deposits {
        use prost::Message as _;
        let deposit = proto_form::Deposit::decode(any.value.as_slice()).unwrap();
        if deposit.data.is_empty() {
            continue;
        }
        let Err(BuildError::Hook(why)) = deposited(USER, USER, STANDARD.encode(&deposit.data)) else {
            panic!()
        };
        refused.push(why.split(" (").next().unwrap().to_owned());
    }
    let one = "it has 1 messages, not 2";
    assert_eq!(refused, [one, one, "hook is no cosmos.tx.v1beta1.Tx"]);
}
