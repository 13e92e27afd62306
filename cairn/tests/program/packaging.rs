//! Shell completions and man pages, of which packages are made, and the settings of the image.

use std::fs;
use std::process::Command;

use crate::support::{printed, repository};

#[test]
fn completions_are_scripts_that_know_the_commands() {
    let bash = printed(&["completions", "bash"]);
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, &bash).unwrap();
    let script = format!(
        "source {}; COMP_WORDS=(cairn healthc); COMP_CWORD=1; _cairn cairn healthc cairn; echo \"${{COMPREPLY[*]}}\"",
        file.path().display()
    );
    let output = Command::new("bash").args(["--norc", "-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "healthcheck\n");
    for shell in ["zsh", "fish"] {
        assert!(printed(&["completions", shell]).contains("healthcheck"), "{shell}");
    }
}

#[test]
fn every_command_has_a_man_page() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("man");
    printed(&["man", folder.to_str().unwrap()]);
    for page in ["cairn", "cairn-run", "cairn-init", "cairn-db-verify", "cairn-route-check", "cairn-man"] {
        assert!(folder.join(format!("{page}.1")).exists(), "{page}");
    }
    let run = fs::read_to_string(folder.join("cairn-run.1")).unwrap();
    assert!(run.contains("CAIRN_CHAIN_ID") && run.contains(".TH cairn-run 1"), "{run}");
}

#[test]
fn the_image_and_compose_set_variables_that_exist() {
    let help = printed(&["run", "--help"]);
    for path in ["Dockerfile", "compose.yaml"] {
        let text = fs::read_to_string(repository(path)).unwrap();
        let words = text.split(|c: char| !c.is_ascii_uppercase() && c != '_');
        // The commit is an argument of the build.
        let names: Vec<_> =
            words.filter(|word| word.starts_with("CAIRN_") && *word != "CAIRN_COMMIT").collect();
        assert!(!names.is_empty(), "{path}");
        for name in names {
            assert!(help.contains(&format!("{name}]")), "{path}: {name}");
        }
    }
}
