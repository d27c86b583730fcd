//! A library and the installation that follows it.

use std::sync::LazyLock;

use serde_json::Value;
use sierra_sync::simulator::{Call, World};

use super::bench::{Bench, Files};
use super::library::Library;
use super::outputs::Outputs;
use super::run::Run;

/// The secret of the simulator's key.
pub(crate) const SECRET: &str = "simulator-secret";
/// The variable that brings it.
const SECRET_VARIABLE: &str = "SIERRA_SYNC__SIERRA__CLIENT_SECRET";
const CONFIG: &str = "sierra-sync.toml";

/// A library, and a directory with a configuration that follows its bibs and items into NDJSON (`lines`) and MARCXML
/// (`xml`).
pub(crate) struct Site {
    pub(crate) library: Library,
    pub(crate) bench: Bench,
}

/// A site after its first load: a library, and the files of the one who loaded it.
struct Loaded {
    world: World,
    files: Files,
    summary: Value,
    calls: Vec<Call>,
}

/// The first load takes over five seconds, since its end is believed only then. One serves every test that does not
/// look at the load itself.
static LOADED: LazyLock<Loaded> = LazyLock::new(|| {
    let site = Site::new(Library::sized(220, 260, 40));
    let summary = site.sync_well();
    // Whoever goes on from here finds something to look at.
    site.library.pass_a_second();
    Loaded { files: site.bench.files(""), summary, calls: site.library.calls(), world: site.library.close() }
});

impl Site {
    /// A site that has not run yet.
    pub(crate) fn new(library: Library) -> Self {
        let mut bench = Bench::new();
        bench.set(SECRET_VARIABLE, SECRET);
        let site = Self { library, bench };
        site.configure(|text| text);
        site
    }

    /// A site that has loaded 220 bibs and 260 items; its library has 40 patrons besides.
    pub(crate) fn loaded() -> Self {
        let site = Self::new(Library::of(LOADED.world.clone()));
        LOADED.files.put(&site.bench.path(""));
        site.configure(|text| text);
        site
    }

    /// What the first load of a loaded site said and asked.
    pub(crate) fn first_load() -> (&'static Value, &'static Vec<Call>) {
        (&LOADED.summary, &LOADED.calls)
    }

    /// Writes the configuration as `edit` wants it.
    pub(crate) fn configure(&self, edit: impl FnOnce(String) -> String) {
        let text = include_str!("sierra-sync.toml").replace("@base_url@", &self.library.base_url());
        self.bench.write(CONFIG, edit(text));
    }

    /// Gives the secret no more, or another one.
    pub(crate) fn give_secret(&mut self, secret: Option<&str>) {
        match secret {
            Some(secret) => self.bench.set(SECRET_VARIABLE, secret),
            None => self.bench.unset(SECRET_VARIABLE),
        };
    }

    /// Runs `sync --json` with further arguments.
    pub(crate) fn sync(&self, arguments: &[&str]) -> Run {
        self.bench.run(&[&["sync", "--json"], arguments].concat())
    }

    /// Runs `sync --json`, which must end well, and returns its summary.
    #[track_caller]
    pub(crate) fn sync_well(&self) -> Value {
        self.sync(&[]).ends(0).summary()
    }

    /// What a consumer finds.
    pub(crate) fn outputs(&self) -> Outputs {
        Outputs::read(&self.bench.path("lines"), &self.bench.path("xml"))
    }

    /// Asserts that a consumer of either output ends with what the library holds.
    #[track_caller]
    pub(crate) fn assert_converged(&self) {
        self.assert_holds_all(&self.outputs());
    }

    /// The same of outputs that lie elsewhere.
    #[track_caller]
    pub(crate) fn assert_holds_all(&self, outputs: &Outputs) {
        self.library.with(|simulator| outputs.assert_hold(&simulator.world));
    }
}
