//! `cairn init`: probes a node and writes the configuration file for it.
//!
//! # Invariants
//! * A value from a flag or a variable is kept, except for addresses that do not answer. Others are asked for on a
//!   terminal, probed, or left to their defaults.
//! * The file is loaded before it gets its name, and an existing one is replaced only with `--force`. It may hold
//!   passwords, so only its owner and group can read it.

mod probe;
mod questions;

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use chain::Vm;
use http::Uri;
use node::{Limits, Node};

use self::probe::Report;
use self::questions::Questions;
use crate::settings::print::{self, example_of};
use crate::settings::sources::{SERVICE, Sources, of_flag, over_defaults};
use crate::settings::values::{Values, missing};
use crate::settings::{Settings, values};
use crate::{output, runtime};

/// The file without `--config`.
const FILE: &str = "cairn.toml";

/// Permissions of the file, unless the umask takes more away.
const MODE: u32 = 0o640;

/// Flags of `cairn init`.
#[derive(Debug, clap::Args)]
pub(crate) struct Init {
    /// Replaces an existing file
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    sources: Sources<SERVICE>,
}

/// Probes the node, prints the findings and what the node lacks, and writes the file.
pub(crate) fn run(args: Init) -> anyhow::Result<()> {
    let path = args.sources.file().unwrap_or(Path::new(FILE));
    let shown = path.display();
    if !args.force && path.exists() {
        anyhow::bail!("{shown} exists: replace it by --force, or name another file by --config");
    }
    let mut values = args.sources.given().clone();
    settings(&values)?;
    let mut report = Report::default();
    let outcome = runtime::block_on(complete(&mut values, &mut report));
    // Before an error too: the findings are its reasons.
    output::print(&text_of(&report)?)?;
    outcome?;
    write(path, &values, args.force).with_context(|| format!("cannot write {shown}"))?;
    output::print(&format!(
        "{shown} is written; to index and serve the chain: cairn run --config {shown}\n"
    ))?;
    Ok(())
}

/// Adds to `values` the settings that an index of the node needs.
async fn complete(values: &mut Values, report: &mut Report) -> anyhow::Result<()> {
    let questions = Questions::of_terminal();
    questions.ask(values, "comet", Some(&example_of("comet")))?;
    let reported = probe::chain_id(&texts(values, "comet")).await?;
    questions.confirm(values, "chain_id", &reported)?;
    let chain_id = texts(values, "chain_id").concat();
    let comet = report.comet(&texts(values, "comet"), &chain_id).await?;
    set(values, "comet", comet.usable.clone());

    let given = settings(values)?;
    if let Some(vm) = report.vm(&comet.usable, given.vm, given.evm.0).await? {
        set(values, "vm", vec![vm.name().to_owned()]);
    }
    questions.ask(values, "vm", None)?;
    let vm = settings(values)?.vm.ok_or_else(|| missing("vm"))?;

    questions.offer(values, "rest", &beside(values, "rest"))?;
    let rest = report.rest(&texts(values, "rest"), &chain_id, &comet).await?;
    set(values, "rest", rest.usable);
    let theirs = match rest.prefix {
        Some(prefix) => Some(prefix),
        None => probe::prefix(&comet.usable).await?,
    };
    match (theirs, texts(values, "prefix").first()) {
        (Some(theirs), Some(ours)) if theirs != *ours => {
            let reason = format!("`{ours}` is not the prefix of the chain, which is `{theirs}`");
            return Err(values::bad(values, "prefix", reason).into());
        }
        (Some(theirs), None) => set(values, "prefix", vec![theirs]),
        _ => {}
    }
    let hint = "the prefix of account addresses is unknown: the node has it over REST, whose address must be reachable";
    questions.ask(values, "prefix", None).map_err(|error| error.context(hint))?;

    if vm != Vm::Evm && values.contains_key("json_rpc") {
        report.lacking.push(format!("`json_rpc` is not used and left out: the chain has no EVM (vm = {vm})"));
        set(values, "json_rpc", Vec::new());
    }
    if vm == Vm::Evm {
        let hint = "the chain has an EVM, which is indexed over JSON-RPC: set json-rpc.enable = true in the node's app.toml";
        let asked = questions.ask(values, "json_rpc", Some(&beside(values, "json_rpc")));
        asked.map_err(|error| error.context(hint))?;
        let evm = report.json_rpc(&texts(values, "json_rpc"), &comet).await?;
        set(values, "json_rpc", evm.usable);
        if !evm.has_traces && !values.contains_key("internal_txs") {
            set(values, "internal_txs", vec!["false".to_owned()]);
        }
    }

    questions.offer(values, "grpc", &beside(values, "grpc"))?;
    let grpc = report.grpc(&texts(values, "grpc")).await?;
    set(values, "grpc", grpc);
    questions.confirm(values, "data", &data_directory(&chain_id))?;

    let settings = settings(values)?;
    let node = Node::new(settings.endpoints()?, Limits::default())?;
    report.lacking.extend(ingest::advice::features_off(&settings.ingest(true)?, &node));
    Ok(())
}

/// The settings of `values` and the defaults.
fn settings(values: &Values) -> Result<Settings, values::Error> {
    Settings::new(&over_defaults(values))
}

fn texts(values: &Values, name: &str) -> Vec<String> {
    values.get(name).map(|value| value.texts.clone()).unwrap_or_default()
}

/// Sets `name` to `texts`; none of them removes it.
fn set(values: &mut Values, name: &str, texts: Vec<String>) {
    if texts.is_empty() {
        values.remove(name);
    } else {
        values.insert(name.to_owned(), of_flag(name, texts));
    }
}

/// The usual address of a service of the node: the host of its CometBFT RPC, with the port of the example.
fn beside(values: &Values, name: &str) -> String {
    let example = example_of(name);
    let comet = texts(values, "comet").first().and_then(|text| text.parse::<Uri>().ok());
    let host = comet.as_ref().and_then(Uri::host);
    let beside = host.zip(example.rsplit_once(':')).map(|(host, (_, port))| format!("http://{host}:{port}"));
    beside.unwrap_or(example)
}

/// The usual directory of the database, or one in the home directory of a user who cannot write there.
fn data_directory(chain_id: &str) -> String {
    let usual = example_of("data");
    let mut above = Path::new(&usual).ancestors().skip_while(|path| !path.exists());
    let is_writable =
        above.next().is_some_and(|path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok());
    if is_writable { usual } else { format!("~/.local/share/cairn/{chain_id}") }
}

/// Writes the settings to a file at `path`, once they can be loaded.
fn write(path: &Path, values: &Values, replace: bool) -> anyhow::Result<()> {
    let title = "The configuration of cairn for one chain, by `cairn init`: the settings without a value here are comments.";
    let text = print::documented(title, |name| Some(texts(values, name)).filter(|texts| !texts.is_empty()));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let permissions = Permissions::from_mode(MODE);
    let mut file = tempfile::Builder::new().permissions(permissions).tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    let written = Sources::<SERVICE>::of_file(file.path()).settings()?;
    written.ingest(true)?;
    written.endpoints()?;
    written.data()?;
    if replace {
        file.persist(path)?;
    } else {
        file.persist_noclobber(path)?;
    }
    Ok(())
}

/// The findings, and what the node lacks.
fn text_of(report: &Report) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for line in &report.found {
        writeln!(text, "{line}")?;
    }
    if !report.lacking.is_empty() {
        writeln!(text, "\nThe node lacks:")?;
    }
    for line in &report.lacking {
        writeln!(text, " * {line}")?;
    }
    if !text.is_empty() {
        writeln!(text)?;
    }
    Ok(text)
}
