//! The known contracts: a folder with a file for each of them, `<address>.json`.
//!
//! A file is the ABI (a JSON array), an artifact of a compiler (an object with `abi`), or a contract of Sourcify's API
//! (docs.sourcify.dev, v2). It is read when a request needs it, so a file that is added counts at once.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Maximum bytes of a file: the sources of the largest contracts have a few megabytes.
const MAX_FILE: u64 = 16 << 20;

/// The folder.
#[derive(Clone, Debug)]
pub struct Contracts {
    folder: PathBuf,
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ContractError {
    /// It cannot be read or written.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// It is too large.
    #[error("{0}: over {MAX_FILE} bytes, which is more than the file of a contract may have")]
    TooLarge(PathBuf),
    /// It has no ABI.
    #[error(
        "{0}: it is neither an ABI (a JSON array) nor an object with `abi`, as compilers and Sourcify write it"
    )]
    NoAbi(PathBuf),
}

/// An address in hex, and its contract.
pub type Listed = (String, Result<Contract, ContractError>);

/// What is known of a contract.
#[derive(Clone, Debug, PartialEq)]
pub struct Contract(Value);

impl Contracts {
    /// Those in `folder`, which need not exist yet.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// A contract; `None` without a file.
    ///
    /// # Errors
    /// If the file cannot be used.
    pub fn get(&self, address: &[u8; 20]) -> Result<Option<Contract>, ContractError> {
        let path = self.path(address);
        if !path.exists() {
            return Ok(None);
        }
        Contract::read(&path).map(Some)
    }

    /// As [`Self::get`]; an error is also in the log.
    pub(crate) fn get_logged(&self, address: &[u8; 20]) -> Result<Option<Contract>, ContractError> {
        self.get(address).inspect_err(|error| tracing::warn!(%error, "the file of a contract cannot be used"))
    }

    /// Takes the contract in the file `from` as the one at `address`.
    ///
    /// # Errors
    /// If the file cannot be used, or the folder not written.
    pub fn add(&self, address: &[u8; 20], from: &Path) -> Result<(), ContractError> {
        self.put(address, &Contract::read(from)?)
    }

    /// Takes these bytes as the contract at `address`.
    ///
    /// # Errors
    /// If they are none, or the folder cannot be written.
    pub fn add_bytes(&self, address: &[u8; 20], bytes: &[u8]) -> Result<(), ContractError> {
        let contract = Contract::parse(bytes).ok_or_else(|| ContractError::NoAbi(self.path(address)))?;
        self.put(address, &contract)
    }

    fn put(&self, address: &[u8; 20], contract: &Contract) -> Result<(), ContractError> {
        let path = self.path(address);
        let io = |error| ContractError::Io { path: path.clone(), error };
        fs::create_dir_all(&self.folder).map_err(io)?;
        // A reader sees the file before or after, and never a part of it.
        let part = path.with_extension("json.part");
        let mut file = File::create(&part).map_err(io)?;
        file.write_all(contract.0.to_string().as_bytes()).map_err(io)?;
        file.sync_all().map_err(io)?;
        fs::rename(&part, &path).map_err(io)
    }

    /// The addresses of all contracts, in their order.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn addresses(&self) -> Result<Vec<[u8; 20]>, ContractError> {
        let io = |error| ContractError::Io { path: self.folder.clone(), error };
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(io)? {
            let name = entry.map_err(io)?.file_name().to_string_lossy().into_owned();
            let address = name.strip_suffix(".json").and_then(crate::form::bytes::<20>);
            all.extend(address.filter(|address| self.path(address).ends_with(&name)));
        }
        all.sort_unstable();
        Ok(all)
    }

    /// All contracts, each with its address, in their order, and files that cannot be used.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn list(&self) -> Result<Vec<Listed>, ContractError> {
        let listed =
            |address: [u8; 20]| (format!("0x{}", hex::encode(address)), Contract::read(&self.path(&address)));
        Ok(self.addresses()?.into_iter().map(listed).collect())
    }

    fn path(&self, address: &[u8; 20]) -> PathBuf {
        self.folder.join(format!("0x{}.json", hex::encode(address)))
    }
}

impl Contract {
    fn read(path: &Path) -> Result<Self, ContractError> {
        let io = |error| ContractError::Io { path: path.to_owned(), error };
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(io)?;
        file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(io)?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(ContractError::TooLarge(path.to_owned()));
        }
        Self::parse(&bytes).ok_or_else(|| ContractError::NoAbi(path.to_owned()))
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        match serde_json::from_slice(bytes).ok()? {
            abi @ Value::Array(_) => Some(Self(json!({ "abi": abi }))),
            contract => contract.get("abi")?.is_array().then_some(Self(contract)),
        }
    }

    /// Its file, as an object.
    pub(crate) fn into_json(self) -> Value {
        self.0
    }

    /// Its ABI.
    pub fn abi(&self) -> &Value {
        &self.0["abi"]
    }

    fn text(&self, path: &str) -> &str {
        self.0.pointer(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// Its name; empty if the file has none.
    pub fn name(&self) -> &str {
        let name = self.text("/compilation/name");
        if name.is_empty() { self.text("/contractName") } else { name }
    }

    /// The contract behind it, if it is a proxy whose target is known.
    pub(crate) fn implementation(&self) -> &str {
        self.text("/proxyResolution/implementations/0/address")
    }

    /// The source: the text of a single file, or the input of the compiler for several, in braces of its own.
    fn source(&self) -> String {
        let Some(sources) = self.0["sources"].as_object() else { return String::new() };
        let content = |source: &Value| source["content"].as_str().unwrap_or_default().to_owned();
        if let Some(only) = sources.values().next().filter(|_| sources.len() == 1) {
            return content(only);
        }
        let language = match self.text("/compilation/language") {
            "" => "Solidity",
            language => language,
        };
        let input = json!({
            "language": language,
            "sources": sources,
            "settings": self.0["compilation"]["compilerSettings"],
        });
        if sources.is_empty() { String::new() } else { format!("{{{input}}}") }
    }

    /// It as the row of `getsourcecode`.
    pub(crate) fn row(&self) -> Value {
        let optimizer = &self.0["compilation"]["compilerSettings"]["optimizer"];
        let version = self.text("/compilation/compilerVersion").trim_start_matches('v');
        let arguments = self.text("/creationBytecode/transformationValues/constructorArguments");
        let evm = self.text("/compilation/compilerSettings/evmVersion");
        let runs = optimizer["runs"].as_u64();
        json!({
            "SourceCode": self.source(),
            "ABI": self.abi().to_string(),
            "ContractName": self.name(),
            "CompilerVersion": if version.is_empty() { String::new() } else { format!("v{version}") },
            "OptimizationUsed": if optimizer["enabled"] == true { "1" } else { "0" },
            "Runs": runs.map_or_else(|| "200".to_owned(), |runs| runs.to_string()),
            "ConstructorArguments": arguments.trim_start_matches("0x"),
            "EVMVersion": if evm.is_empty() { "Default" } else { evm },
            "Library": "",
            "LicenseType": "Unknown",
            "Proxy": if self.0["proxyResolution"]["isProxy"] == true { "1" } else { "0" },
            "Implementation": self.implementation(),
            "SwarmSource": "",
            "SimilarMatch": "",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCIFY: &str = r#"{"match":"exact_match","abi":[{"type":"function","name":"f","inputs":[]}],
        "compilation":{"language":"Solidity","compilerVersion":"0.8.28+commit.7893614a","name":"Token",
        "compilerSettings":{"optimizer":{"enabled":true,"runs":999},"evmVersion":"cancun"}},
        "sources":{"a.sol":{"content":"contract A {}"},"b.sol":{"content":"contract B {}"}},
        "proxyResolution":{"isProxy":true,"implementations":[{"address":"0xabab","name":"Inner"}]}}"#;

    #[test]
    fn a_contract_is_an_abi_an_artifact_or_one_of_sourcify() {
        let folder = tempfile::tempdir().unwrap();
        let contracts = Contracts::new(folder.path().join("abi"));
        let file = folder.path().join("file");
        let add = |number: u8, text: &str| {
            fs::write(&file, text).unwrap();
            contracts.add(&[number; 20], &file)
        };
        add(1, r#"[{"type":"event"}]"#).unwrap();
        add(2, r#"{"contractName":"Artifact","abi":[]}"#).unwrap();
        add(3, SOURCIFY).unwrap();
        for text in ["{}", "7", "no JSON", r#"{"abi":"[]"}"#] {
            let error = add(4, text).unwrap_err().to_string();
            assert!(error.contains("neither an ABI"), "{error}");
        }
        assert_eq!(contracts.get(&[4; 20]).unwrap(), None);
        let listed = contracts.list().unwrap();
        let names: Vec<_> = listed.iter().map(|(_, contract)| contract.as_ref().unwrap().name()).collect();
        assert_eq!(names, ["", "Artifact", "Token"]);
        assert_eq!(listed[0].0, format!("0x{}", "01".repeat(20)));
        let row = contracts.get(&[1; 20]).unwrap().unwrap().row();
        assert_eq!((&row["ABI"], &row["SourceCode"]), (&json!(r#"[{"type":"event"}]"#), &json!("")));
        let row = contracts.get(&[3; 20]).unwrap().unwrap().row();
        let source = row["SourceCode"].as_str().unwrap();
        let inner = source.strip_prefix('{').unwrap().strip_suffix('}').unwrap();
        let input: Value = serde_json::from_str(inner).unwrap();
        assert_eq!(input["sources"]["b.sol"]["content"], "contract B {}");
        for (member, value) in [
            ("ContractName", "Token"),
            ("CompilerVersion", "v0.8.28+commit.7893614a"),
            ("OptimizationUsed", "1"),
            ("Runs", "999"),
            ("EVMVersion", "cancun"),
            ("Proxy", "1"),
            ("Implementation", "0xabab"),
        ] {
            assert_eq!(row[member], value, "{member}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let contracts = Contracts::new(folder.path().to_owned());
        fs::write(contracts.path(&[7; 20]), "{").unwrap();
        let error = contracts.get(&[7; 20]).unwrap_err().to_string();
        assert!(error.contains("0707.json"), "{error}");
        assert!(contracts.list().unwrap()[0].1.is_err());
        fs::write(contracts.path(&[8; 20]), vec![b' '; 17 << 20]).unwrap();
        assert!(matches!(contracts.get(&[8; 20]), Err(ContractError::TooLarge(_))));
    }
}
