//! Errors of the construction of clients.

/// Failure to construct a client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// A service without addresses.
    #[error("no address for {service}; give at least one")]
    NoUrls {
        /// The service.
        service: &'static str,
    },
    /// A gRPC address with more than scheme, host and port.
    #[error("grpc address `{url}`: {reason}")]
    GrpcAddress {
        /// The address without credentials and path.
        url: String,
        /// The reason.
        reason: String,
    },
    /// An https address without root certificates.
    #[error(
        "no root certificates on this system ({reason}), needed for https addresses; install the package \
         `ca-certificates` or set SSL_CERT_FILE"
    )]
    NoRoots {
        /// Error text of the system.
        reason: String,
    },
    /// The TLS library rejects its own settings.
    #[error("TLS cannot be set up: {reason}")]
    Tls {
        /// Error text of the library.
        reason: String,
    },
}
