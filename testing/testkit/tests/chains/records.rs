//! A served record has one declaration: its message in `proto/cairn/index/v1`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Where records are served and read.
const FOLDERS: [&str; 3] = ["query/src", "frontends/explorer/src", "frontends/grpc/src"];

/// Members of an object and its name.
type Object = (String, BTreeSet<String>);

/// The objects of a text: each begins with `keyword` and its name, and `member` finds a member in a line.
fn objects(text: &str, keyword: &str, member: fn(&str) -> Option<&str>) -> Vec<Object> {
    let mut objects: Vec<Object> = Vec::new();
    let mut end = None;
    for line in text.lines() {
        let inner = line.trim_start();
        let indent = line.len() - inner.len();
        if let Some((_, rest)) = inner.split_once(keyword).filter(|(before, _)| before.len() < 12) {
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric()).collect();
            end = rest.ends_with('{').then_some(indent);
            objects.extend(end.map(|_| (name, BTreeSet::new())));
        } else if inner.starts_with('}') && end == Some(indent) {
            end = None;
        } else if let (Some(_), Some((_, members)), Some(name)) = (end, objects.last_mut(), member(inner)) {
            members.insert(name.trim_start_matches("r#").to_owned());
        }
    }
    objects
}

/// `string name = 1;`
fn of_message(line: &str) -> Option<&str> {
    let (before, number) = line.strip_suffix(';')?.split_once(" = ")?;
    number.parse::<u32>().ok().and(before.rsplit(' ').next())
}

/// `pub name: Type,`
fn of_struct(line: &str) -> Option<&str> {
    let (name, _) = line.trim_end_matches(',').split_once(": ")?;
    let name = name.rsplit(' ').next()?;
    name.chars().all(|c| c.is_ascii_lowercase() || "_#0123456789".contains(c)).then_some(name)
}

/// The texts of the files in a folder and below it, with their paths.
fn texts(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            texts(&path, found);
        } else {
            found.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The structs of `sources` that have three members or more, all of them of one message.
fn repeated(messages: &[Object], sources: &[(String, String)]) -> Vec<String> {
    let mut repeated = Vec::new();
    for (path, text) in sources {
        for (name, members) in objects(text, "struct ", of_struct) {
            let of = messages.iter().find(|(_, record)| members.len() >= 3 && members.is_subset(record));
            repeated
                .extend(of.map(|(message, _)| format!("{path}: `{name}` repeats the record `{message}`")));
        }
    }
    repeated
}

fn messages() -> Vec<Object> {
    let mut files = Vec::new();
    texts(&testkit::root().join("proto/cairn/index/v1"), &mut files);
    let of_files = files.iter().flat_map(|(_, text)| objects(text, "message ", of_message));
    of_files.filter(|(name, _)| !name.ends_with("Request")).collect()
}

#[test]
fn no_record_has_a_second_declaration() {
    let mut sources = Vec::new();
    for folder in FOLDERS {
        texts(&testkit::root().join(folder), &mut sources);
    }
    let messages = messages();
    let block = messages.iter().find(|(name, _)| name == "Block").unwrap();
    assert!(block.1.len() == 10 && block.1.contains("total_fee"), "{block:?}");
    assert_eq!(repeated(&messages, &sources), [""; 0]);
}

#[test]
fn a_second_declaration_is_named() {
    let text = "#[derive(Deserialize)]\npub(crate) struct Shown<'a> {\n    pub(crate) height: u64,\n    r#type: &'a str,\n    \
                gas_used: String,\n}\nstruct Other {\n    height: u64,\n    index: i64,\n    name: String,\n}\n";
    let found = repeated(&messages(), &[("a.rs".to_owned(), text.to_owned())]);
    assert_eq!(found, ["a.rs: `Shown` repeats the record `InternalTx`"]);
}
