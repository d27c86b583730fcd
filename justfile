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
    for name in config change status summary alert; do cargo run --quiet -- schema $name > schemas/$name.json; done

# The simulation suite: 500 stories, or the one of SIM_SEED.
sim:
    cargo test --test it simulation:: -- --nocapture

# As many stories as asked for, from a number on.
soak seeds="10000" from="1":
    SIM_SEEDS={{ seeds }} SIM_FROM={{ from }} cargo test --test it simulation::suite -- --nocapture

# A thousand kills of the real binary at random moments; a failing seed is printed with the command that replays it.
kill kills="1000" seed="1":
    SIERRA_SYNC_KILLS={{ kills }} SIERRA_SYNC_KILL_SEED={{ seed }} cargo test --test it e2e::kills -- --nocapture

# Losses of power at random moments of recorded runs, of the store and of the whole program.
power losses="1000" seed="1":
    SIERRA_SYNC_POWER_LOSSES={{ losses }} SIERRA_SYNC_POWER_SEED={{ seed }} cargo test --test it power:: -- --nocapture

# Everything CI runs.
ci:
    bash .ci/run

# Speed beside other tools, whole processes, each comparison in one run; takes minutes.
speed:
    bash scripts/marc/speed.sh
    bash scripts/speed/load.sh
