# The commands of this house. `make up` and `make test` are the two to know; each target says in a line what it does.
#
# Plain make and sh: nothing here needs GNU make or bash. The home is `~/.lisa`, or what LISA_HOME names:
#     make up LISA_HOME=/tmp/another

PACKAGES = -p lisa -p lisa-supervisor -p lisa-agent -p lisa-soul -p lisa-heartbeat

# Where cargo puts release binaries, wherever a person has told it to put them.
BIN = "$$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/release"

# The build as `lisa --version` and `lisa status` show it: the version, and the commit where there is git to ask.
BUILD_ID = version=$$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml) && \
	commit=$$(git describe --always --dirty --exclude '*' 2>/dev/null || true) && \
	LISA_BUILD_ID=$$version$${commit:+"+$$commit"} && export LISA_BUILD_ID

.PHONY: help up down release test first-run bench torture peers persistence fuzz fmt lint docs deny

help: # what can be made
	@sed -n 's/^\([a-z-]*\):.*# \(.*\)/  make \1	\2/p' Makefile

up: release # build what is needed, start her where she is not running, and talk; lines on stdin are turns
	@exec $(BIN)/lisa up --chat

down: # stop her, in order, losing nothing
	@exec $(BIN)/lisa down

release: # the release binaries
	@$(BUILD_ID) && cargo build --release --locked $(PACKAGES)

test: first-run # everything CI runs after formatting, lints and documentation
	cargo test --workspace --locked --doc --quiet
	@if cargo nextest --version >/dev/null 2>&1; then \
		set -x; cargo nextest run --workspace --locked --no-fail-fast; \
	else \
		set -x; cargo test --workspace --locked --lib --bins --tests --no-fail-fast; \
	fi

# A stranger's first minute, on the release binaries: an empty home, an empty environment, one question, one answer.
# However it ends, nothing it started is left running, and the home is gone.
first-run: release # a fresh home on the release binaries: born, asked, answered, stopped
	@bin=$(BIN) && home=$$(mktemp -d) && \
	lisa() { env -i HOME="$$home" PATH="$$PATH" TZ=UTC timeout 60 "$$bin/lisa" "$$@"; } && \
	end() { \
		code=$$?; trap - EXIT; \
		lisa down >/dev/null 2>&1 || [ $$? -eq 69 ] || kill -9 "$$(cat "$$home/.lisa/supervisor.lock")"; \
		if [ $$code -eq 0 ]; then echo "first run: 1 passed, 0 failed"; else \
			echo "first run: 0 passed, 1 failed"; \
			for log in "$$home"/.lisa/logs/*.log; do echo "--- $$log"; tail -n 20 "$$log"; done; \
		fi; \
		rm -rf "$$home"; exit $$code; \
	} && \
	trap end EXIT && trap 'exit 130' INT && trap 'exit 143' TERM && set -e && \
	said=$$(printf 'who are you?\n' | lisa up --chat) && \
	case $$said in *Lisa*) ;; *) echo "asked who she is, she said: $$said"; exit 1;; esac && \
	lisa soul history && lisa down && \
	if lisa status >/dev/null 2>&1; then echo "she still answers after \`lisa down\`"; exit 1; fi

bench: # the numbers, beside what they can be compared with; nothing is asserted
	@$(BUILD_ID) && cargo bench --locked -p lisa-tests --bench vital && cargo bench --locked -p lisa-tests --bench turn && \
		cargo bench --locked -p lisa-tests --bench soul

torture: # a thousand kills under eight writers, a disk that fills up, the power cut: prints what was lost
	LISA_TORTURE=1000 cargo test --release --locked -p lisa-tests --test it torture -- --nocapture --test-threads 1

peers: # real model servers that others made, into target/peers; then the tests that talk to them
	tests/peers/install.sh
	cargo test --locked -p lisa-tests --test it peers -- --nocapture

persistence: # the agent killed at each line of a turn, 25 times each with other pauses
	LISA_TORTURE=25 cargo test --release --locked -p lisa-tests --test it persistence -- --nocapture --test-threads 1

fuzz: # about a minute of streams that are nearly right, in every dialect
	LISA_FUZZ=100000 cargo test --release --locked -p lisa-agent any_bytes

fmt: # format the code
	cargo fmt --all

lint: # clippy, with warnings denied
	cargo lint

docs: # the documentation, with warnings denied
	cargo docs

deny: # licences, sources and advisories of what we depend on; needs cargo-deny and the network
	cargo deny check
