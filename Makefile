# The commands of this repository.
#
# One profile (release, for tests less optimised) and one selection of packages (the whole workspace), everywhere: Cargo resolves features for
# what is selected, and another selection would compile RocksDB's C++ a second time.

CARGO_TARGET_DIR ?= $(HOME)/.cache/cairn/target
export CARGO_TARGET_DIR

CARGO_DENY_VERSION := 0.20.2
CARGO_AUDIT_VERSION := 0.22.2
CARGO_FUZZ_VERSION := 0.13.2
CARGO_DEB_VERSION := 3.8.0
CARGO_CYCLONEDX_VERSION := 0.5.9
MDBOOK_VERSION := 0.5.4
VERSITYGW_VERSION := v1.8.0
# What the tests run is compiled in a fifth of the time.
LITTLE_OPTIMISED := --config testing/profile.toml
# Beside the target directory, so that a cache of one keeps the other.
TOOLS := $(CARGO_TARGET_DIR)/../tools
# Looks for faults of accessibility in the pages.
AXE_VERSION := 4.10.3

.PHONY: demo build test tests test-slate check api-test otterscan-test deny advisories book bench bench-slate side-by-side soak fuzz dictionaries deb packages image \
    needs test-needs

# Indexes a recorded chain and serves it at http://127.0.0.1:8080.
demo: build
	"$(CARGO_TARGET_DIR)/release/cairn" demo

# The program: $(CARGO_TARGET_DIR)/release/cairn; FEATURES are cargo features that are off by default.
build: needs
	cargo build --release --workspace --bin cairn $(if $(FEATURES),--features $(FEATURES))

# Everything that must be green before a change is merged. Formats and lints first: they fail fastest.
test: check tests api-test deny

# Every test; those of generated files (SCHEMA.md, docs/openapi/indexer.json, config.example.toml) among them.
tests: export AXE := $(abspath $(TOOLS))/axe/node_modules/axe-core/axe.min.js
tests: test-needs
	test -f "$(AXE)" || npm install --silent --ignore-scripts --prefix "$(TOOLS)/axe" axe-core@$(AXE_VERSION)
	cargo $(LITTLE_OPTIMISED) test --release --workspace --no-fail-fast

define get_versitygw
test -x "$$VERSITYGW" || GOBIN="$(abspath $(TOOLS))/bin" GOFLAGS=-mod=mod \
    go install github.com/versity/versitygw/cmd/versitygw@$(VERSITYGW_VERSION)
endef

# The engine on object storage (the cargo feature `slate`, not in the default build), in memory and on a real S3 interface:
# versitygw, which Go builds; and the fleet, with nginx. Compiles 100 more crates, and RocksDB again in a target directory of its
# own.
test-slate: export CARGO_TARGET_DIR := $(CARGO_TARGET_DIR)/slate
test-slate: export VERSITYGW ?= $(abspath $(TOOLS))/bin/versitygw
test-slate: needs
	@.ci/needs fleet
	$(get_versitygw)
	cargo clippy --release --workspace --features cairn/slate --all-targets -- -D warnings
	cargo test --release --workspace --features cairn/slate --test in_memory --test on_s3 --test object_storage

# What a change must pass beside the tests: format, lints (of benches too), documentation. The feature `otlp` is left out:
# its features of shared build dependencies would compile RocksDB again.
check: needs
	cargo fmt --all --check
	cargo clippy --release --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --release --workspace --no-deps

# Published clients against the demo: schemathesis (PyPI) over both OpenAPI documents, and a generated TypeScript client. They
# need Node, Python and Chromium, which are installed where apt-get can.
api-test: needs
	@.ci/needs_clients
	cargo $(LITTLE_OPTIMISED) build --release --workspace --bin cairn
	testing/clients/run "$(CARGO_TARGET_DIR)/release/cairn" "$(TOOLS)"

# Otterscan's pages in Chromium. OTTERSCAN is the folder of a build, which no registry has and which is no part of this repository; `make
# test` counts the test as ignored.
otterscan-test: test-needs
	@test -f "$(OTTERSCAN)/index.html" || { echo "OTTERSCAN=DIR: the folder of a build of Otterscan" >&2; exit 1; }
	OTTERSCAN="$(abspath $(OTTERSCAN))" cargo $(LITTLE_OPTIMISED) test --release --workspace --test browser -- --ignored otterscan

# Licences, sources and duplicates of dependencies. Advisories are a target of their own.
deny:
	command -v cargo-deny >/dev/null || test -x "$(TOOLS)/bin/cargo-deny" || \
	    cargo install --debug --locked --version $(CARGO_DENY_VERSION) --root "$(TOOLS)" cargo-deny
	PATH="$$PATH:$(TOOLS)/bin" cargo deny --workspace check licenses bans sources

# Known vulnerabilities of dependencies, in the RustSec database at a pinned commit: the result does not change with the day.
# ADVISORIES is where to clone it from, a URL or a directory; whoever moves the pin reads what is new.
ADVISORIES ?= https://github.com/rustsec/advisory-db
ADVISORIES_COMMIT := bf5c0d245a92671908518d7e765914d437954ed6
advisories:
	command -v cargo-audit >/dev/null || test -x "$(TOOLS)/bin/cargo-audit" || \
	    cargo install --debug --locked --version $(CARGO_AUDIT_VERSION) --root "$(TOOLS)" cargo-audit
	test -d "$(TOOLS)/advisory-db" || git clone --quiet --no-checkout "$(ADVISORIES)" "$(TOOLS)/advisory-db"
	git -C "$(TOOLS)/advisory-db" checkout --quiet --detach $(ADVISORIES_COMMIT) || \
	    { git -C "$(TOOLS)/advisory-db" fetch --quiet "$(ADVISORIES)" && \
	    git -C "$(TOOLS)/advisory-db" checkout --quiet --detach $(ADVISORIES_COMMIT); }
	PATH="$$PATH:$(TOOLS)/bin" cargo audit --no-fetch --stale --db "$(TOOLS)/advisory-db"

# The Debian package: $(CARGO_TARGET_DIR)/debian/cairn_*.deb. Its maintainer is who builds it. cargo-deb builds nothing: its
# selection of packages would compile RocksDB again.
MAINTAINER ?= $(shell git log -1 --format='%an <%ae>')
deb: build
	command -v cargo-deb >/dev/null || test -x "$(TOOLS)/bin/cargo-deb" || \
	    cargo install --locked --version $(CARGO_DEB_VERSION) --root "$(TOOLS)" cargo-deb
	packaging/generate "$(CARGO_TARGET_DIR)/release/cairn" "$(CARGO_TARGET_DIR)/release/package"
	rm -f "$(CARGO_TARGET_DIR)"/debian/cairn_*.deb
	PATH="$$PATH:$(TOOLS)/bin" cargo deb --package cairn --no-build --maintainer "$(MAINTAINER)"

# What a release has (RELEASING.md): $(CARGO_TARGET_DIR)/packages with archive, Debian package, SBOM and checksums.
packages: deb
	command -v cargo-cyclonedx >/dev/null || test -x "$(TOOLS)/bin/cargo-cyclonedx" || \
	    cargo install --locked --version $(CARGO_CYCLONEDX_VERSION) --root "$(TOOLS)" cargo-cyclonedx
	rm -rf "$(CARGO_TARGET_DIR)/packages"
	packaging/archive "$(CARGO_TARGET_DIR)/release/cairn" "$(CARGO_TARGET_DIR)/release/package" "$(CARGO_TARGET_DIR)/packages"
	cp "$(CARGO_TARGET_DIR)"/debian/cairn_*.deb "$(CARGO_TARGET_DIR)/packages/"
	PATH="$$PATH:$(TOOLS)/bin" packaging/sbom "$(CARGO_TARGET_DIR)/packages"
	cd "$(CARGO_TARGET_DIR)/packages" && sha256sum -- * >SHA256SUMS

# The container image.
image:
	docker build --build-arg CAIRN_COMMIT="$$(git rev-parse HEAD)" --tag cairn .

# The book, docs/book/index.html; its commands and links are checked by the tests.
book:
	command -v mdbook >/dev/null || test -x "$(TOOLS)/bin/mdbook" || \
	    cargo install --locked --version $(MDBOOK_VERSION) --root "$(TOOLS)" mdbook
	PATH="$$PATH:$(TOOLS)/bin" mdbook build docs

# Trains the dictionaries that new databases begin with, on the recordings.
dictionaries: needs
	cargo build --release --workspace --example train_dictionaries
	"$(CARGO_TARGET_DIR)/release/examples/train_dictionaries"

# The long fault runs: SOAK seconds (15 minutes) of the seeded chaos runner, from the seed SEED (the clock, so that no two
# runs are of the same ones), which it prints.
SOAK ?= 900
ifndef SEED
SEED := $(shell date +%s)
endif
soak: needs
	CHAOS_SEED=$(SEED) CHAOS_SECONDS=$(SOAK) CHAOS_RUNS=100000 cargo test --release --workspace --test chaos -- --nocapture

# Every measurement; minutes, of which a chain of a million transactions takes about three. GROWTH_TXS=10000000 makes it
# ten million (benches/growth.rs); `cargo bench --workspace --bench growth` measures it alone.
bench: needs
	cargo bench --workspace

# A database on object storage beside one in RocksDB, some ten minutes: writes benches/fleet/measured.toml.
bench-slate: export CARGO_TARGET_DIR := $(CARGO_TARGET_DIR)/slate
bench-slate: export VERSITYGW ?= $(abspath $(TOOLS))/bin/versitygw
bench-slate: export CAIRN = $(CARGO_TARGET_DIR)/release/cairn
bench-slate: needs
	$(get_versitygw)
	cargo build --release --workspace --features cairn/slate --bin cairn
	cargo bench --workspace --features cairn/slate --bench object_storage

# cairn beside a PostgreSQL stand-in of an indexer over SQL and beside a bare hyper server: writes docs/benchmarks.md. Some
# twenty minutes for TXS transactions.
TXS ?= 200000
side-by-side: needs
	@.ci/needs postgresql
	cargo build --release --workspace --bin side-by-side
	"$(CARGO_TARGET_DIR)/release/side-by-side" $(TXS)

# Seconds for each target; targets to run.
FUZZ_SECONDS ?= 600
FUZZ_TARGETS ?= $(notdir $(basename $(wildcard testing/fuzz/libfuzzer/targets/*.rs)))
FUZZ := cargo fuzz run --fuzz-dir testing/fuzz/libfuzzer --sanitizer none

# Fuzzes (docs/src/fuzzing.md): about an hour and a half by default. The first finding ends it.
fuzz: needs
	command -v cargo-fuzz >/dev/null || test -x "$(TOOLS)/bin/cargo-fuzz" || \
	    cargo install --locked --version $(CARGO_FUZZ_VERSION) --root "$(TOOLS)" cargo-fuzz
	cargo build --release --workspace --example write_seeds
	"$(CARGO_TARGET_DIR)/release/examples/write_seeds" testing/fuzz/libfuzzer/seeds
	for target in $(FUZZ_TARGETS); do \
	    mkdir -p "testing/fuzz/libfuzzer/corpus/$$target" && PATH="$$PATH:$(TOOLS)/bin" CARGO_TARGET_DIR="$(CARGO_TARGET_DIR)/fuzz" \
	    $(FUZZ) "$$target" "testing/fuzz/libfuzzer/corpus/$$target" "testing/fuzz/libfuzzer/seeds/$$target" -- -dict="testing/fuzz/libfuzzer/seeds/$$target.dict" \
	    -max_total_time=$(FUZZ_SECONDS) -max_len=32768 -rss_limit_mb=2048 -timeout=20 -verbosity=0 \
	    -print_final_stats=1 || exit 1; \
	done

# What building RocksDB takes beside a Rust toolchain.
needs:
	@.ci/needs

# What the tests take beside that: Chromium, for the pages.
test-needs:
	@.ci/needs tests
