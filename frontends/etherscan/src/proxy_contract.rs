//! Verification of proxies: that the contract behind one is known. The id of a verification is what it is about, so that nothing
//! is remembered.

use crate::contracts::Contract;
use crate::form::{Form, bytes};
use crate::outcome::{Failure, Outcome, Success};
use crate::reads::Reads;

/// Digits of an address.
const DIGITS: usize = 40;

/// The id: the proxy, and the contract that is expected behind it, if any.
pub(crate) fn verifyproxycontract(reads: &Reads<'_>) -> Outcome {
    let proxy = match reads.form.address("address")? {
        Some(proxy) => proxy,
        None => reads.form.one_address("contractaddress")?,
    };
    let expected = reads.form.address("expectedimplementation")?;
    Ok(Success::text(&hex::encode([&proxy[..], expected.as_ref().map_or(&[], |it| &it[..])].concat())))
}

/// The two addresses in an id.
fn addresses(form: &Form) -> Result<([u8; 20], Option<[u8; 20]>), Failure> {
    let invalid = || Failure::Text("Error! Invalid guid".to_owned());
    let address = |digits: &str| bytes(&format!("0x{digits}")).ok_or_else(invalid);
    let (proxy, expected) = form.required("guid")?.split_at_checked(DIGITS).ok_or_else(invalid)?;
    Ok((address(proxy)?, if expected.is_empty() { None } else { Some(address(expected)?) }))
}

/// The proxy in an id.
pub(crate) fn of_guid(form: &Form) -> Result<[u8; 20], Failure> {
    Ok(addresses(form)?.0)
}

pub(crate) fn checkproxyverification(form: &Form, contract: Option<&Contract>) -> Outcome {
    let (proxy, expected) = addresses(form)?;
    let found = contract.map(Contract::implementation).and_then(bytes::<20>);
    match found.filter(|found| expected.is_none_or(|expected| expected == *found)) {
        Some(found) => Ok(Success::text(&format!(
            "The proxy's (0x{}) implementation contract is found at 0x{} and is successfully updated.",
            hex::encode(proxy),
            hex::encode(found)
        ))),
        None => Err(Failure::Text(
            "A corresponding implementation contract was unfortunately not detected for the proxy address."
                .to_owned(),
        )),
    }
}
