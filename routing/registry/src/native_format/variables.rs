//! Environment variables in node addresses: `${NAME}`, which keeps API keys out of files.
//!
//! # Invariants
//!
//! * No message contains a variable's value.

/// Lookup of a variable.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The text with every `${NAME}` replaced.
pub(crate) fn expand(text: &str, environment: Environment<'_>) -> Result<String, String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let (name, behind) =
            after.split_once('}').ok_or_else(|| "`${` has no `}`: write `${NAME}`".to_owned())?;
        let letters = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if name.is_empty() || !name.bytes().all(letters) {
            return Err("`${…}` holds no name of letters, digits and `_`".to_owned());
        }
        let value = environment(name).ok_or_else(|| {
            format!("the environment variable `{name}` is not set: set it, or write the value")
        })?;
        out.push_str(before);
        out.push_str(&value);
        rest = behind;
    }
    Ok(out + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, String> {
        expand(text, &|name| (name == "KEY_1").then(|| "s3cret${X}".to_owned()))
    }

    #[test]
    fn variables_are_replaced_once() {
        assert_eq!(expanded("https://n/${KEY_1}/${KEY_1}$").unwrap(), "https://n/s3cret${X}/s3cret${X}$");
        assert_eq!(expanded("https://n").unwrap(), "https://n");
    }

    #[test]
    fn an_unset_variable_is_named_and_no_value_is_quoted() {
        let error = expanded("${KEY_1}${KEY_2}").unwrap_err();
        assert!(error.contains("`KEY_2` is not set") && !error.contains("s3cret"), "{error}");
        assert!(expanded("${KEY_1").unwrap_err().contains("has no `}`"));
        assert!(expanded("${a b}").unwrap_err().contains("no name"));
    }
}
