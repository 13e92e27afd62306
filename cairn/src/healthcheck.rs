//! `cairn healthcheck`: a health check by exit code, for containers, which have no HTTP client.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::Context as _;

use crate::settings::sources::{LISTEN, Sources};

/// Time limit of each step; the response is made without IO.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum bytes of a response that are read.
const BODY: u64 = 16 << 10;

/// Flags of `cairn healthcheck`.
#[derive(Debug, clap::Args)]
pub(crate) struct Healthcheck {
    /// Also fails while the index is too far behind the node (`ready_lag`)
    #[arg(long)]
    ready: bool,
    #[command(flatten)]
    settings: Sources<LISTEN>,
}

/// Fails unless the process at the address `listen` answers that it is healthy.
pub(crate) fn run(args: Healthcheck) -> anyhow::Result<()> {
    let at = reachable(args.settings.settings()?.listen);
    let path = if args.ready { "/readyz" } else { "/healthz" };
    let response = get(at, path).with_context(|| format!("no response from http://{at}{path}"))?;
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
    let status = head.split_whitespace().nth(1).unwrap_or_default();
    anyhow::ensure!(status == "200", "http://{at}{path} answers {status}: {}", body.trim());
    Ok(())
}

/// The address of a local client for a server that listens on `listen`.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let host = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(host, listen.port())
}

fn get(at: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&at, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n")?;
    let mut response = Vec::new();
    stream.take(BODY).read_to_end(&mut response)?;
    Ok(String::from_utf8_lossy(&response).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_all_addresses_is_reached_by_loopback() {
        for (listen, at) in
            [("0.0.0.0:8080", "127.0.0.1:8080"), ("[::]:8080", "[::1]:8080"), ("10.0.0.1:80", "10.0.0.1:80")]
        {
            assert_eq!(reachable(listen.parse().unwrap()), at.parse().unwrap());
        }
    }
}
