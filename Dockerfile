# syntax=docker/dockerfile:1
# The image of cairn: `docker build -t cairn .`, or compose.yaml. docs/src/install.md shows its use.

FROM rust:1.95-bookworm AS builder
WORKDIR /src
# A layer of its own: it changes less often than the sources.
COPY .ci/needs .ci/needs
RUN .ci/needs
COPY . .
# The context has no .git.
ARG CAIRN_COMMIT=unknown
# Cargo features, such as cairn/slate for databases on object storage.
ARG FEATURES=
# The caches keep RocksDB from one build to the next.
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/target \
    CARGO_TARGET_DIR=/target make build FEATURES="$FEATURES" && \
    packaging/generate /target/release/cairn /package && \
    cp /target/release/cairn /package/

FROM debian:bookworm-slim
LABEL org.opencontainers.image.title="cairn" \
    org.opencontainers.image.description="Indexer and routing service for Initia rollups" \
    org.opencontainers.image.licenses="Apache-2.0"
RUN apt-get update && \
    apt-get install --yes --no-install-recommends ca-certificates libstdc++6 && \
    rm -rf /var/lib/apt/lists/* && \
    groupadd --gid 10001 cairn && \
    useradd --uid 10001 --gid cairn --no-create-home --home-dir /var/lib/cairn --shell /usr/sbin/nologin cairn && \
    install --directory --owner cairn --group cairn --mode 0750 /etc/cairn /var/lib/cairn /var/lib/cairn-route
COPY LICENSE CHANGELOG.md config.example.toml /usr/share/doc/cairn/
COPY --from=builder /package/THIRD-PARTY-LICENSES /usr/share/doc/cairn/
COPY --from=builder /package/share/cairn /usr/share/cairn
COPY --from=builder /package/cairn /usr/bin/cairn

USER cairn
# On all addresses of the container; `--publish` decides which of them the host opens.
ENV CAIRN_DATA=/var/lib/cairn \
    CAIRN_LISTEN=0.0.0.0:8080 \
    CAIRN_METRICS=0.0.0.0:9464 \
    CAIRN_ROUTE_LISTEN=0.0.0.0:8081
EXPOSE 8080 8081 9464
VOLUME ["/etc/cairn", "/var/lib/cairn", "/var/lib/cairn-route"]
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["cairn", "healthcheck"]
ENTRYPOINT ["cairn"]
CMD ["run"]
