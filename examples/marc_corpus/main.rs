//! Makes a corpus of invented records for the comparison with other MARC tools and for measuring.
//!
//! `cargo run --example marc_corpus -- DIRECTORY COUNT SEED FORM…` writes `corpus.mrc`, `corpus.xml`, `corpus.json` and
//! `sierra.json` (pages of 2,000 bibs), or those of them that are named: `iso2709`, `marcxml`, `marc-json`,
//! `sierra-json`. The same seed makes the same records.

mod corpus;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, bail};
use sierra_sync::marc::{Format, Writer};
use sierra_sync::seed::RootSeed;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, count, seed, forms @ ..] = arguments.as_slice() else {
        bail!("usage: marc_corpus DIRECTORY COUNT SEED [FORM…]");
    };
    let count: u64 = count.parse().context("COUNT is not a number")?;
    let seed = RootSeed::new(seed.parse().context("SEED is not a number")?);
    let directory = Path::new(directory);
    std::fs::create_dir_all(directory)?;
    let is_wanted = |form: &str| forms.is_empty() || forms.iter().any(|wanted| wanted == form);
    for (format, name) in
        [(Format::Iso2709, "corpus.mrc"), (Format::MarcXml, "corpus.xml"), (Format::MarcJson, "corpus.json")]
    {
        if is_wanted(format.name()) {
            let mut writer = Writer::new(File::create(directory.join(name))?, format);
            corpus::records(count, seed).try_for_each(|record| writer.write(&record))?;
            writer.finish()?;
        }
    }
    if is_wanted("sierra-json") {
        let mut target = BufWriter::new(File::create(directory.join("sierra.json"))?);
        for page in corpus::pages(count, seed) {
            serde_json::to_writer(&mut target, &page?)?;
            target.write_all(b"\n")?;
        }
        target.flush()?;
    }
    Ok(())
}
