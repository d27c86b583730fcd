//! From the command line to the command, and from its outcome to the exit code.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::{CommandFactory, FromArgMatches};

use crate::app::PauseOrder;
use crate::cli::args::{Arguments, Command, Format, Global};
use crate::cli::exit::{Exit, Refused};
use crate::cli::failure::{self, Failure};
use crate::cli::{
    backfill, breaker, check, completions, convert, cursor, demo, init, man, pausing, quarantine, queue, reconcile,
    recover, run as service, schema, simulate, status, sync, terminal, unbuilt,
};
use crate::clock::{Clock, SystemClock};
use crate::config::{self, Config, Environment, Problems, Warning};
use crate::telemetry::{self, LogLevel, LogSettings};

/// Runs the command that `arguments` (the program's name first) ask for.
pub fn dispatch(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let parsed = match parse(arguments.iter().cloned()) {
        Ok(parsed) => parsed,
        Err(usage) => {
            drop(usage.print());
            if usage.use_stderr() {
                sync::tell_misuse(&arguments, &usage);
            }
            return u8::try_from(usage.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from);
        }
    };
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => return fail(&error, Format::Text),
    };
    let format = arguments.global.log_format;
    let owes_json = arguments.global.json && failure::stands_in_for(&arguments.command);
    telemetry::start(&log_settings(&arguments.global), || SystemClock.now());
    match run(arguments) {
        Ok(exit) => exit.into(),
        Err(error) => {
            if owes_json {
                tell(&Failure::of(&error));
            }
            fail(&error, format)
        }
    }
}

/// Prints what stands in for a document that could not be made. A stdout that is gone is nobody's to tell: why the
/// command failed is said on stderr next.
pub(super) fn tell(failure: &impl serde::Serialize) {
    if let Ok(text) = serde_json::to_string(failure) {
        drop(terminal::data(&text));
    }
}

/// Says why the command failed: once, here. Where log lines are JSON this is one too, so that the whole of stderr
/// stays readable to programs.
fn fail(error: &anyhow::Error, format: Format) -> ExitCode {
    let exit = Exit::of_error(error);
    let problems = error.chain().find_map(|cause| cause.downcast_ref::<Problems>());
    match (format, problems) {
        (Format::Text, _) => terminal::talk(&format!("sierra-sync: {error:#}")),
        (Format::Json, None) => tracing::error!(event = "command_failed", exit = exit.code(), "{error:#}"),
        (Format::Json, Some(problems)) => {
            for problem in problems.iter() {
                let (key, hint) = (problem.key.as_ref().map(ToString::to_string), problem.hint.as_deref());
                let place = problem.place.to_string();
                tracing::error!(event = "config_problem", exit = exit.code(), place, key, hint, "{}", problem.message);
            }
        }
    }
    exit.into()
}

/// Loads the configuration that `global` names and logs its warnings.
///
/// # Errors
/// Every problem at once.
pub(super) fn load(global: &Global) -> Result<Config, Problems> {
    let (config, warnings) = load_with_warnings(global)?;
    for warning in warnings {
        // `check` and the start of `run` tell of it; here it would come with every command.
        tracing::debug!(event = "config_warning", key = %warning.key, hint = warning.hint, "{warning}");
    }
    Ok(config)
}

/// Loads the configuration that `global` names.
///
/// # Errors
/// Every problem at once.
pub(super) fn load_with_warnings(global: &Global) -> Result<(Config, Vec<Warning>), Problems> {
    config::load(global.config.as_deref(), &Environment::of_process(), &global.set)
}

/// `Err` is clap's own: a usage error, or the text of `--help` and `--version`.
fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<anyhow::Result<Arguments>, clap::Error> {
    let command = unbuilt::add_to(Arguments::command());
    let matches = command.try_get_matches_from(arguments)?;
    if let Some(sentence) = matches.subcommand_name().and_then(unbuilt::sentence) {
        return Ok(Err(Refused(sentence).into()));
    }
    Arguments::from_arg_matches(&matches).map(Ok)
}

fn log_settings(global: &Global) -> LogSettings {
    LogSettings {
        format: global.log_format.into(),
        level: if global.quiet { LogLevel::ERROR } else { global.log.into() },
        is_coloured: terminal::is_stderr_coloured(),
    }
}

fn run(arguments: Arguments) -> anyhow::Result<Exit> {
    let global = &arguments.global;
    match arguments.command {
        Command::Init(args) => init::run(&args, global),
        Command::Schema(args) => schema::run(&args),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(&args),
        Command::Convert(args) => convert::run(&args, global),
        Command::Demo(args) => block_on(demo::run(args, global)),
        Command::Check(args) => block_on(check::run(args, global)),
        Command::Sync(args) => block_on(sync::run(args, global)),
        Command::Run(args) => block_on(service::run(args, global)),
        Command::Backfill(args) => block_on(backfill::run(args, global)),
        Command::Reconcile(args) => block_on(reconcile::run(args, global)),
        Command::Queue(args) => block_on(queue::run(args, global)),
        Command::Quarantine(args) => block_on(quarantine::run(args, global)),
        Command::Cursor(args) => block_on(cursor::run(args, global)),
        Command::Pause(args) => block_on(pausing::run(args, PauseOrder::Pause, global)),
        Command::Resume(args) => block_on(pausing::run(args, PauseOrder::Resume, global)),
        Command::Status(args) => block_on(status::run(args, global)),
        Command::Breaker(args) => block_on(breaker::run(args, global)),
        Command::Recover(args) => block_on(recover::run(args, global)),
        Command::Simulate(args) => block_on(simulated(args, global)),
    }
}

/// `simulate` prints for itself, as JSON when either of the two places for `--json` says so.
async fn simulated(mut args: simulate::SimulateArgs, global: &Global) -> anyhow::Result<Exit> {
    args.json |= global.json;
    simulate::run(args, Arc::new(SystemClock)).await.map(|()| Exit::Ok)
}

/// Two workers suffice: the work is waiting for Sierra, and one conversion at a time.
fn block_on(command: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("failed to start the runtime")?;
    runtime.block_on(command)
}
