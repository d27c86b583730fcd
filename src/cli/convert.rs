//! `sierra-sync convert`: MARC at the desk.

mod interrupt;
mod output;

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::args::Global;
use crate::cli::exit::Exit;
use crate::cli::terminal;
use crate::marc::convert::{ConvertError, Input, Job, Observer, OnError, Source, Summary, convert};
use crate::marc::{Format, MarcSettings};
use output::Output;

/// Convert MARC records between ISO 2709, MARCXML, MARC-in-JSON, and from saved Sierra answers.
///
/// Records are read one after another, so files of any size take little memory. A summary goes to stderr; its counts
/// add up. With --output the file appears under its name only when it is whole.
#[derive(Debug, Clone, Args)]
pub struct ConvertArgs {
    /// The form of the input.
    #[arg(long, value_name = "FORM")]
    from: SourceArg,
    /// The form of the output.
    #[arg(long, value_name = "FORM")]
    to: TargetArg,
    /// What to do about a record that cannot be read or does not fit the output form.
    #[arg(long, value_name = "WHAT", default_value = "stop")]
    on_error: OnErrorArg,
    /// Write to this file instead of stdout.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Files to read, one after another; - or none at all is stdin.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SourceArg {
    /// ISO 2709 (.mrc, .dat) in UTF-8.
    Iso2709,
    /// MARCXML.
    #[value(name = "marcxml")]
    MarcXml,
    /// MARC-in-JSON: an array, one record, or NDJSON.
    MarcJson,
    /// Answers of Sierra's REST API: pages, arrays or single bibs, with varFields or marc.
    SierraJson,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TargetArg {
    /// ISO 2709 in UTF-8; refuses records over 99,999 bytes and fields over 9,999.
    Iso2709,
    /// A MARCXML collection, one record a line.
    #[value(name = "marcxml")]
    MarcXml,
    /// An array of MARC-in-JSON, one record a line.
    MarcJson,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnErrorArg {
    /// End at once and leave no output file.
    Stop,
    /// Leave the record out, say so, and go on.
    Skip,
}

/// How a conversion ended. The message for people has been written by then.
#[derive(Debug)]
pub enum Outcome {
    /// Everything that was read is in the output, or whoever read the output had enough.
    Complete(Summary),
    /// The output lacks what was refused; otherwise it is whole, or whoever read it had enough.
    Incomplete(Summary),
    /// A record was refused and that ended it; there is no output file.
    Refused(Summary),
    /// The command line cannot be obeyed.
    Usage,
    /// Files could not be read or written; there is no output file.
    Io(Summary),
}

impl Outcome {
    /// The exit code: 0 complete, 2 usage, 3 something was refused, 74 input or output failed.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Complete(_) => 0,
            Self::Usage => 2,
            Self::Incomplete(_) | Self::Refused(_) => 3,
            Self::Io(_) => 74,
        }
    }

    /// The counts, unless nothing was begun. After a failure of the output they tell what was handed over, not what
    /// arrived.
    #[must_use]
    pub fn summary(&self) -> Option<&Summary> {
        match self {
            Self::Complete(summary) | Self::Incomplete(summary) | Self::Refused(summary) | Self::Io(summary) => {
                Some(summary)
            }
            Self::Usage => None,
        }
    }
}

/// Runs the command with the process's own streams, talking on stderr and showing progress if that is a terminal. With
/// `--quiet` it says only what ended it; with `--json` its counts are one JSON object, the last line of stderr, since
/// stdout may carry the records.
pub fn run(args: &ConvertArgs, global: &Global) -> anyhow::Result<Exit> {
    interrupt::leave_nothing_behind();
    let bar = if global.quiet || global.json { ProgressBar::hidden() } else { progress(args) };
    let how = if global.quiet || global.json { Wordiness::Failures } else { Wordiness::Everything };
    let outcome = run_beside(&bar, args, &mut io::stderr(), how);
    bar.finish_and_clear();
    if let Some(summary) = outcome.summary().filter(|_| global.json) {
        terminal::talk(&serde_json::to_string(summary)?);
    }
    Ok(Exit::of_code(outcome.exit_code()).unwrap_or(Exit::StoreFailed))
}

/// How much is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wordiness {
    /// Each record that is left out, and the counts.
    Everything,
    /// What kept the command from going on.
    Failures,
}

/// Runs the command, talking on `talk` and showing no progress.
pub fn run_with(args: &ConvertArgs, talk: &mut dyn Write) -> Outcome {
    run_beside(&ProgressBar::hidden(), args, talk, Wordiness::Everything)
}

fn run_beside(bar: &ProgressBar, args: &ConvertArgs, talk: &mut dyn Write, how: Wordiness) -> Outcome {
    let mut talk = Talk { bar, talk, lines: 0, how };
    if args.files.iter().filter(|file| is_stdin(file)).count() > 1 {
        talk.say("stdin (-) can be read only once");
        return Outcome::Usage;
    }
    let unusable: Vec<String> = args.files.iter().filter_map(|file| unusable(file)).collect();
    if !unusable.is_empty() {
        unusable.iter().for_each(|sentence| talk.say(sentence));
        return Outcome::Usage;
    }
    let output = match Output::open(args.output.as_deref()) {
        Ok(output) => output,
        Err(error) => {
            let name = args.output.as_deref().unwrap_or(Path::new("stdout")).display().to_string();
            talk.say(&format!("cannot write {name}: {error}"));
            return if error.kind() == io::ErrorKind::IsADirectory {
                Outcome::Usage
            } else {
                Outcome::Io(Summary::default())
            };
        }
    };
    let mut summary = Summary::default();
    let converted = convert(inputs(args, bar), output, &args.job(), &mut talk, &mut summary)
        .and_then(|output| output.publish().map_err(|source| ConvertError::Output { source }));
    if let Err(error) = converted {
        return talk.explain(&error, args.on_error, summary);
    }
    talk.add(&summary.to_string());
    if summary.is_incomplete() { Outcome::Incomplete(summary) } else { Outcome::Complete(summary) }
}

impl ConvertArgs {
    fn job(&self) -> Job {
        Job {
            from: match self.from {
                SourceArg::Iso2709 => Source::Marc(Format::Iso2709),
                SourceArg::MarcXml => Source::Marc(Format::MarcXml),
                SourceArg::MarcJson => Source::Marc(Format::MarcJson),
                SourceArg::SierraJson => Source::SierraJson,
            },
            to: match self.to {
                TargetArg::Iso2709 => Format::Iso2709,
                TargetArg::MarcXml => Format::MarcXml,
                TargetArg::MarcJson => Format::MarcJson,
            },
            on_error: match self.on_error {
                OnErrorArg::Stop => OnError::Stop,
                OnErrorArg::Skip => OnError::Skip,
            },
            settings: MarcSettings::default(),
        }
    }

    /// The inputs, stdin being one.
    fn paths(&self) -> Vec<&Path> {
        if self.files.is_empty() { vec![Path::new("-")] } else { self.files.iter().map(PathBuf::as_path).collect() }
    }
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Why `path` cannot be an input at all, said before anything is begun. What goes wrong with a file that is there shows
/// when its turn comes.
fn unusable(path: &Path) -> Option<String> {
    if is_stdin(path) {
        return None;
    }
    let shown = path.display();
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Some(format!("cannot read {shown}: it is a directory; name the files in it")),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Some(format!("cannot read {shown}: there is no such file"))
        }
        _ => None,
    }
}

/// Opens each input when its turn comes.
fn inputs<'a>(args: &'a ConvertArgs, bar: &'a ProgressBar) -> impl Iterator<Item = Result<Input<'a>, ConvertError>> {
    /// Enough for the readers that have no window of their own; those that have one read past it.
    const BUFFER_BYTES: usize = 128 << 10;
    args.paths().into_iter().map(move |path| {
        let name = if is_stdin(path) { "stdin".to_owned() } else { path.display().to_string() };
        let bytes: Box<dyn Read> = if is_stdin(path) {
            Box::new(io::stdin().lock())
        } else {
            match File::open(path) {
                Ok(file) => Box::new(file),
                Err(source) => return Err(ConvertError::Input { input: name, source }),
            }
        };
        Ok(Input { name, bytes: Box::new(BufReader::with_capacity(BUFFER_BYTES, bar.wrap_read(bytes))) })
    })
}

/// A bar over the bytes of all files, or a spinner where their size is unknown; invisible unless stderr is a terminal.
fn progress(args: &ConvertArgs) -> ProgressBar {
    let size = |path: &Path| std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|file| file.len());
    let total: Option<u64> = args.paths().into_iter().map(size).sum();
    let (bar, template) = match total {
        Some(bytes) => (ProgressBar::new(bytes), "{bar:30} {bytes}/{total_bytes}  {bytes_per_sec}  ETA {eta}"),
        None => (ProgressBar::new_spinner(), "{spinner} {bytes}  {bytes_per_sec}"),
    };
    bar.set_style(ProgressStyle::with_template(template).expect("the templates are constants that parse"));
    bar
}

/// Talks to people, past the progress bar.
struct Talk<'a> {
    bar: &'a ProgressBar,
    talk: &'a mut dyn Write,
    lines: usize,
    how: Wordiness,
}

/// How many refusals are told one by one.
const MAX_TOLD: usize = 10;

impl Talk<'_> {
    fn say(&mut self, message: &str) {
        let talk = &mut *self.talk;
        // Nothing can be done about a stderr that is gone.
        self.bar.suspend(|| writeln!(talk, "convert: {message}")).ok();
    }

    /// Says what is no failure, unless only those are wanted.
    fn add(&mut self, message: &str) {
        if self.how == Wordiness::Everything {
            self.say(message);
        }
    }

    /// Says why a conversion ended early, and what that means.
    fn explain(&mut self, error: &ConvertError, on_error: OnErrorArg, summary: Summary) -> Outcome {
        match error {
            // Whoever reads our output has had enough, which is nothing to talk about.
            ConvertError::Output { source } if source.kind() == io::ErrorKind::BrokenPipe => {
                return if summary.is_incomplete() { Outcome::Incomplete(summary) } else { Outcome::Complete(summary) };
            }
            ConvertError::Output { .. } | ConvertError::Input { .. } => {
                self.say(&format!("stopped: {error}"));
                return Outcome::Io(summary);
            }
            ConvertError::Refused { .. } => {}
        }
        let can_skip = on_error == OnErrorArg::Stop && summary.refused > 0;
        let hint = if can_skip { " (--on-error skip leaves such records out)" } else { "" };
        self.say(&format!("stopped: {error}{hint}"));
        self.add(&summary.to_string());
        Outcome::Refused(summary)
    }

    fn tell(&mut self, message: &str) {
        self.lines += 1;
        match self.lines {
            1..=MAX_TOLD => self.add(message),
            line if line == MAX_TOLD + 1 => self.add("more of these are counted but not shown"),
            _ => {}
        }
    }
}

impl Observer for Talk<'_> {
    fn refused(&mut self, input: &str, reason: &str) {
        self.tell(&format!("left out: {input}: {reason}"));
    }

    fn broken(&mut self, input: &str, reason: &str) {
        self.say(&format!("{input}: {reason}"));
    }
}
