# The menu of commands. `just` alone lists it.
default:
    @just --list

# What a change must pass before it is handed over; runs offline.
check:
    cargo fmt --check
    cargo clippy --all-targets -- -D warnings
    cargo test
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps
    cargo deny --offline check bans licenses sources

# The main job, with nothing to set up.
demo *arguments:
    cargo run --release -- demo {{ arguments }}

# Rewrite the JSON Schemas from the code.
schemas:
    for name in config change status summary; do cargo run --quiet -- schema $name > schemas/$name.json; done

# Everything CI runs.
ci:
    bash .ci/run
