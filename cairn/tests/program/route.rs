//! The routing service as an operator starts it, over the recorded pair of chains.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{Cairn, Played, command, get, get_text, post, printed, refused, repository, run, until};
use serde_json::{Value, json};

/// A deposit into the recorded bridge, and the transaction that finalized it on the rollup.
pub(crate) const DEPOSIT: &str = "6D83FA6F14D265F1168480841D3630011A81BA4B783EA9EB2EC17D69AD2CFC88";
const FINALIZED: &str = "166B05448A80AD4754C77231E06856D4015D1D268F57244BB3956D852FA41CAB";
pub(crate) const BRIDGED: &str = "l2/771d639f30fbe45e3fbca954ffbe2fcc26f915f5513c67a4a2d0bc1d635bdefd";

/// The two chains, replayed, and a copy of the example registry with their addresses.
pub(crate) struct Pair {
    _l1: Played,
    pub(crate) l2: Played,
    pub(crate) dir: tempfile::TempDir,
    pub(crate) registry: String,
    pub(crate) data: String,
}

impl Pair {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// The same with other options of the rollup's node.
    pub(crate) fn with(options: &[&str]) -> Self {
        let (l1, l2) = (Played::start("l1-l2/l1", &[]), Played::start("l1-l2/l2", options));
        let dir = tempfile::tempdir().unwrap();
        let registry = dir.path().join("registry");
        fs::create_dir(&registry).unwrap();
        for file in ["chains.toml", "bridges.toml", "assets.toml"] {
            let mut text = fs::read_to_string(repository("routing/registry/example").join(file)).unwrap();
            let (one, two) = (l1.services(), l2.services());
            let ports = [
                ("26657", one[1]),
                ("1317", one[3]),
                ("36657", two[1]),
                ("31317", two[3]),
                ("38545", two[5]),
            ];
            for (port, url) in ports {
                text = text.replace(&format!("http://127.0.0.1:{port}\""), &format!("{url}\""));
            }
            fs::write(registry.join(file), text).unwrap();
        }
        let data = dir.path().join("tracked").to_str().unwrap().to_owned();
        Self { _l1: l1, l2, registry: registry.to_str().unwrap().to_owned(), data, dir }
    }

    pub(crate) fn route(&self) -> (Cairn, String) {
        let args = ["route", "--registry", &self.registry, "--data", &self.data, "--listen", "127.0.0.1:0"];
        let mut cairn = Cairn::start(&args);
        let url = cairn.line("routing at ");
        (cairn, url)
    }
}

pub(crate) fn ended(url: &str) -> Value {
    until("the end of the transfer", || {
        let (code, status) = get(&format!("{url}/v2/tx/status?chain_id=e2e-l1-1&tx_hash={DEPOSIT}"));
        assert_eq!(code, 200, "{status}");
        (status["state"] == "STATE_COMPLETED_SUCCESS").then_some(status)
    })
}

#[test]
fn a_transfer_is_quoted_made_and_tracked_across_a_kill() {
    let pair = Pair::start();
    let (cairn, url) = pair.route();
    let ask = json!({
        "amount_in": "5000000", "source_asset_chain_id": "e2e-l1-1", "source_asset_denom": "uinit",
        "dest_asset_chain_id": "e2e-l2-1", "dest_asset_denom": BRIDGED,
    });
    let (code, route) = post(&format!("{url}/v2/fungible/route"), &ask);
    assert_eq!((code, &route["amount_out"], &route["txs_required"]), (200, &json!("5000000"), &json!(1)));
    let user = "init1rw0np4yxjtvlqsa89jn5yl9a4nkr0zx0kps2sd";
    let mut msgs = ask.clone();
    msgs["address_list"] = json!([user, user]);
    msgs["amount_out"] = route["amount_out"].clone();
    msgs["operations"] = route["operations"].clone();
    let (code, made) = post(&format!("{url}/v2/fungible/msgs"), &msgs);
    let msg = &made["txs"][0]["cosmos_tx"]["msgs"][0];
    assert_eq!((code, &msg["msg_type_url"]), (200, &json!("/opinit.ophost.v1.MsgInitiateTokenDeposit")));

    let id = json!({ "tx_hash": DEPOSIT, "chain_id": "e2e-l1-1" });
    assert_eq!(post(&format!("{url}/v2/tx/track"), &id).1["tx_hash"], DEPOSIT);
    // Right after the registration the status may be incomplete, but the transfer exists.
    assert_eq!(get(&format!("{url}/v2/tx/status?chain_id=e2e-l1-1&tx_hash={DEPOSIT}")).0, 200);
    cairn.kill();

    let (cairn, url) = pair.route();
    let status = ended(&url);
    let hop = &status["transfer_sequence"][0]["op_init_transfer"];
    assert_eq!(
        (&hop["txs"]["receive_tx"]["tx_hash"], &hop["state"]),
        (&json!(FINALIZED), &json!("OPINIT_TRANSFER_RECEIVED"))
    );
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));

    // The status of a finished transfer is available at once.
    let (again, url) = pair.route();
    assert_eq!(get(&format!("{url}/v2/tx/status?chain_id=e2e-l1-1&tx_hash={DEPOSIT}")).1, status);
    again.signal("INT");
    assert_eq!(again.ended().0, Some(0));
}

#[test]
fn at_most_twenty_registry_errors_are_logged_at_the_start_and_answers_contain_each() {
    let pair = Pair::start();
    let assets = Path::new(&pair.registry).join("assets.toml");
    let mut text = fs::read_to_string(&assets).unwrap();
    // The case of such a denomination is its checksum.
    let denom = |number: u32| format!("evm/5aaeb6053f3e94c9b9a09f33669435e7ef1bea{number:02}");
    for number in 0..25 {
        writeln!(
            text,
            "[[asset]]\nchain = \"e2e-l2-1\"\ndenom = \"{}\"\nsymbol = \"COIN{number}\"\ndecimals = 6",
            denom(number)
        )
        .unwrap();
    }
    fs::write(&assets, text).unwrap();
    let (mut cairn, url) = pair.route();
    let is_reason =
        |text: &str| text.contains("the case of denom is part of it") && text.ends_with("; no route uses it");
    for number in 0..20 {
        let logged = cairn.logged("registry problem");
        let place = format!("`{} of e2e-l2-1`", denom(number));
        assert_eq!((&logged["severity"], &logged["place"]), (&json!("error"), &json!(place)), "{logged}");
        assert!(is_reason(logged["problem"].as_str().unwrap()), "{logged}");
    }
    let rest = cairn.logged_about("registry problem");
    assert!(rest.contains("more registry problems") && rest.contains("\"more\":5"), "{rest}");
    // A problem that was not logged.
    let ask = json!({
        "amount_in": "5000000", "source_asset_chain_id": "e2e-l2-1", "source_asset_denom": denom(24),
        "dest_asset_chain_id": "e2e-l1-1", "dest_asset_denom": "uinit",
    });
    let (code, refusal) = post(&format!("{url}/v2/fungible/route"), &ask);
    let why = refusal["message"].as_str().unwrap();
    let of = format!("the registry has an error in {} on e2e-l2-1: ", denom(24));
    assert!(code == 400 && why.contains(&of) && is_reason(why), "{code} {refusal}");
}

#[test]
fn a_registry_is_read_again_on_sighup_and_a_broken_one_is_not() {
    let pair = Pair::start();
    let (mut cairn, url) = pair.route();
    let assets = Path::new(&pair.registry).join("assets.toml");
    let before = fs::read_to_string(&assets).unwrap();
    let symbol = |symbol: &str| {
        let (_, answer) = get(&format!("{url}/v2/fungible/assets?chain_ids=e2e-l2-1"));
        let list = answer["chain_to_assets_map"]["e2e-l2-1"]["assets"].as_array().unwrap().clone();
        list.iter().any(|asset| asset["symbol"] == symbol).then_some(())
    };

    fs::write(&assets, before.replace("\"INIT.op\"", "\"OPENED\"")).unwrap();
    cairn.signal("HUP");
    until("the new symbol", || symbol("OPENED"));

    fs::write(&assets, "[[asset]]\nchian = \"e2e-l2-1\"\n").unwrap();
    cairn.signal("HUP");
    let stderr_text = cairn.logged_about("the previous one stays in use");
    assert!(stderr_text.contains("assets.toml") && stderr_text.contains("chain"), "{stderr_text}");
    assert_eq!(symbol("OPENED"), Some(()));
    let (code, stderr_text) = refused(&["route", "check", "--registry", &pair.registry]);
    assert!(code == 1 && stderr_text.contains("assets.toml"), "{code} {stderr_text}");
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));
}

#[test]
fn a_public_file_that_does_not_parse_is_named_by_the_check_which_fails() {
    let files = tempfile::tempdir().unwrap();
    let copied = Command::new("cp")
        .arg("-r")
        .arg(repository("routing/registry/tests/shapes/chain-registry"))
        .arg(files.path())
        .status();
    assert!(copied.unwrap().success());
    let registry = files.path().join("chain-registry");
    let check = || run(&["route", "check", "--registry", registry.to_str().unwrap()]);
    assert_eq!(check().status.code(), Some(0));
    let chain = registry.join("zone/chain.json");
    let text = fs::read_to_string(&chain).unwrap();
    fs::write(&chain, text.replacen(',', ",,", 1)).unwrap();
    let output = check();
    let found = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{found}");
    assert!(found.starts_with("error: zone/chain.json: `*`: cannot be read: "), "{found}");
}

#[test]
fn a_registry_is_checked_against_itself_and_against_its_chains() {
    let example = repository("routing/registry/example");
    let example = example.to_str().unwrap();
    assert!(printed(&["route", "check", "--registry", example]).contains("4 chains, 16 assets, 2 channels"));

    let pair = Pair::start();
    let bridges = Path::new(&pair.registry).join("bridges.toml");
    let check = || {
        let output = run(&["route", "check", "--online", "--registry", &pair.registry]);
        let (stderr_text, wrong) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        (output.status.code(), stderr_text + &wrong)
    };
    let (code, stderr_text) = check();
    // The recording has no queries about the wrapper.
    let wrapper = "not checked: wrapper of evm/1EBEB4AA9d6b7ad48E093A336FEb6C17358250e2 of e2e-l2-1: ";
    // The two other chains are not played.
    let (others, found): (Vec<_>, Vec<_>) =
        stderr_text.lines().partition(|line| line.contains("31337") || line.contains("31338"));
    assert!(!others.is_empty() && others.iter().all(|line| line.starts_with("not checked: ")), "{others:?}");
    assert!(code == Some(0) && found.len() == 2 && found[0].starts_with(wrapper), "{stderr_text}");

    // Problems that only the chains show: the other end of a channel.
    let right = fs::read_to_string(&bridges).unwrap();
    fs::write(&bridges, right.replace("e2e-l2-1/nft-transfer/channel-1", "e2e-l2-1/nft-transfer/channel-7"))
        .unwrap();
    let (code, stderr_text) = check();
    let wrong = "channel nft-transfer/channel-1 of e2e-l1-1: its other end is nft-transfer/channel-1";
    assert!(code == Some(1) && stderr_text.contains(wrong), "{code:?} {stderr_text}");

    // Problems that the files show: a denomination that the bridge cannot produce.
    fs::write(&bridges, right.replace("id = 1\n", "id = 3\n")).unwrap();
    let (code, stderr_text) = check();
    assert!(
        code == Some(1) && stderr_text.contains("assets.toml") && stderr_text.contains("l2/771d"),
        "{code:?} {stderr_text}"
    );
}

#[test]
fn a_registration_beyond_the_limit_is_refused_with_the_limit_and_its_setting() {
    let pair = Pair::start();
    let service = |more: &[&str]| {
        let args = ["route", "--registry", &pair.registry, "--data", &pair.data, "--listen", "127.0.0.1:0"];
        let mut cairn = Cairn::start(&[&args[..], more].concat());
        let url = cairn.line("routing at ");
        (cairn, url)
    };
    let track = |url: &str, number: u32| {
        let id = json!({ "tx_hash": format!("{number:064x}"), "chain_id": "e2e-l1-1" });
        post(&format!("{url}/v2/tx/track"), &id)
    };
    let setting = |body: &Value| body["details"][0]["metadata"]["setting"].clone();

    let (cairn, url) = service(&["--route-unseen-per-client", "2", "--route-track-rate", "off"]);
    assert_eq!([track(&url, 1).0, track(&url, 2).0], [200, 200]);
    let (code, body) = track(&url, 3);
    assert_eq!((code, &body["code"], setting(&body)), (429, &json!(8), json!("route.unseen_per_client")));
    assert_eq!(body["details"][0]["metadata"]["limit"], "2");
    cairn.kill();

    // The default exceeds the needs of a person.
    let (cairn, url) = service(&[]);
    let refused = (10..100).map(|number| track(&url, number)).find(|(code, _)| *code == 429);
    assert_eq!(setting(&refused.unwrap().1), "route.track_rate");
    assert_eq!(get(&format!("{url}/v2/info/bridges")).0, 200, "nothing else is refused");
    cairn.kill();
}

#[test]
fn a_routing_service_has_its_settings_from_file_environment_and_flags() {
    let pair = Pair::start();
    let file = pair.dir.path().join("cairn.toml");
    let text = |log: &str| {
        let (registry, data) = (&pair.registry, &pair.data);
        format!(
            "log = \"{log}\"\n[route]\nregistry = \"{registry}\"\ndata = \"{data}\"\nlisten = \"nowhere\"\n"
        )
    };
    fs::write(&file, text("info")).unwrap();
    let at = ["--config", file.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let mut start = command(&[&["route"], &at[..]].concat());
    start.env("CAIRN_RATE_LIMIT", "1/s:2").env("CAIRN_TRUSTED_PROXIES", "10.0.0.1").env("CAIRN_CORS", "none");
    let mut cairn = Cairn::spawn(start);
    let url = cairn.line("routing at ");
    until("a refusal", || (get_text(&format!("{url}/v2/info/chains")).0 == 429).then_some(()));
    assert!(Path::new(&pair.data).join("CURRENT").exists());

    fs::write(&file, text("warn") + "# and more\n").unwrap();
    cairn.signal("HUP");
    assert!(cairn.logged_about("log filter reloaded").contains("warn"));
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));

    let (code, stderr_text) = refused(&["route", "--config", file.to_str().unwrap()]);
    assert!(code == 2 && stderr_text.contains("cairn.toml line 5: `route.listen`"), "{code} {stderr_text}");
    let (code, stderr_text) = refused(&["route"]);
    assert!(code == 2 && stderr_text.contains("`route.registry` is not set"), "{code} {stderr_text}");
}
