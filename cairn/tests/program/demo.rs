//! `cairn demo`: a whole chain with one command.

use std::process::Command;

use crate::support::{Cairn, command, get, get_text, repository};

#[test]
fn the_demo_prints_addresses_that_answer_and_leaves_nothing_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = command(&["demo", "--listen", "127.0.0.1:0", "--route-listen", "127.0.0.1:0"]);
    command.env("TMPDIR", temporary.path());
    let mut demo = Cairn::spawn(command);
    demo.line("e2e-evm-1 is indexed: 655 transactions in heights 1 to 226");
    let page = demo.line("Open http://");
    let (code, answer) = get_text(&format!("http://{}", page.split(' ').next().unwrap()));
    assert!(
        code == 200 && answer.contains("e2e-evm-1") && answer.contains("/route"),
        "{page}: {code} {answer}"
    );
    let api = page.split(' ').find_map(|word| word.strip_prefix("http://")).unwrap();
    assert!(get_text(&format!("http://{api}")).1.contains("../openapi.json"), "{page}");
    let paths: Vec<_> = (0..10).map(|_| demo.line("http://")).collect();
    for path in &paths {
        let (code, answer) = get(&format!("http://{path}"));
        assert!(code == 200 && answer.is_object(), "{path}: {code} {answer}");
    }
    let has = |part: &str| paths.iter().any(|path| path.contains(part));
    let shown = [
        "/status",
        "/evm-internal-txs",
        "/txs/by_account/init1",
        "/openapi.json",
        "/richlist/",
        "/nft/v1/tokens/",
    ];
    assert!(shown.into_iter().all(has), "{paths:?}");

    let routes: Vec<_> = (0..7).map(|_| demo.line("http://")).collect();
    for path in &routes {
        let (code, answer) = get(&format!("http://{path}"));
        assert!(code == 200 && answer.is_object(), "{path}: {code} {answer}");
    }

    demo.signal("INT");
    let (code, log) = demo.ended_with_log();
    assert_eq!(code, Some(0));
    assert!(!log.contains("WARN") && !log.contains("ERROR"), "{log}");
    assert_eq!(temporary.path().read_dir().unwrap().count(), 0);
}

#[test]
fn the_demo_shows_chains_of_every_kind() {
    for (recording, chain) in [("move-scenario", "e2e-move-1"), ("wasm-scenario", "e2e-wasm-1")] {
        let dir = format!("testing/recordings/{recording}");
        let mut demo = Cairn::start(&[
            "demo",
            "--recording",
            &dir,
            "--listen",
            "127.0.0.1:0",
            "--route-listen",
            "127.0.0.1:0",
        ]);
        demo.line(&format!("{chain} is indexed"));
        let status = demo.line("http://");
        assert_eq!(get(&format!("http://{status}")).1["chain_id"], chain);
        demo.line("Routes between the recorded chains");
    }
}

#[test]
fn the_demo_of_a_recording_without_a_registry_says_that_it_has_no_routes() {
    let dir = tempfile::tempdir().unwrap();
    let copied = dir.path().join("chain");
    std::fs::create_dir(&copied).unwrap();
    for file in repository("testing/recordings/evm-weth-rebase").read_dir().unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copied.join(file.file_name())).unwrap();
    }
    let any = "127.0.0.1:0";
    let copied = copied.to_str().unwrap();
    let mut demo = Cairn::start(&["demo", "--recording", copied, "--listen", any, "--route-listen", any]);
    demo.line("weth-evm-1 is indexed");
    demo.line("No routes are served");
}

#[test]
fn an_installed_program_has_all_that_the_demo_plays() {
    let prefix = tempfile::tempdir().unwrap();
    let (bin, share) = (prefix.path().join("bin"), prefix.path().join("share/cairn"));
    std::fs::create_dir(&bin).unwrap();
    // Copied by another process: a file that this one has open for writing cannot be executed while a test forks.
    let mut program = Command::new("cp");
    program.arg(env!("CARGO_BIN_EXE_cairn")).arg(&bin);
    let mut shared = Command::new(repository("packaging/demo"));
    shared.arg(&share);
    assert!(program.status().unwrap().success() && shared.status().unwrap().success());
    let any = "127.0.0.1:0";
    let mut command = Command::new(bin.join("cairn"));
    command
        .args(["demo", "--listen", any, "--route-listen", any])
        .current_dir(&bin)
        .env("TMPDIR", prefix.path());
    let mut demo = Cairn::spawn(command);
    demo.line("e2e-evm-1 is indexed: 655 transactions");
    demo.line("Routes between the recorded chains");
    let chains = demo.line("http://");
    let (code, answer) = get(&format!("http://{chains}"));
    assert!(code == 200 && answer["chains"].as_array().unwrap().len() == 4, "{chains}: {code} {answer}");

    // The context of the image has the same recordings.
    let ignored = std::fs::read_to_string(repository(".dockerignore")).unwrap();
    for recording in share.join("recordings").read_dir().unwrap() {
        let name = recording.unwrap().file_name().into_string().unwrap();
        assert!(ignored.lines().any(|line| line == format!("!testing/recordings/{name}")), "{name}");
    }
}
