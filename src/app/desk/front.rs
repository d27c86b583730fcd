//! The side of the control socket that answers.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use super::Question;
use crate::app::assembly::Assembly;
use crate::app::errands::{Errand, Errands};
use crate::app::{actions, breaker, pausing, quarantine, queue, recover};
use crate::cli::exit::Exit;
use crate::config::Config;
use crate::ops::control::{ControlSocket, Desk, Reply};
use crate::store::{Holder, StateLock};
use crate::sync::StoreError;

/// The answer itself. `serving` is whether a service runs, rather than a command that ends.
pub(in crate::app) async fn answer(
    assembly: &Assembly,
    serving: bool,
    question: &Question,
    reply: &Reply,
) -> anyhow::Result<Exit> {
    match question {
        Question::Status => {
            let report = assembly.status(serving).await?;
            reply.data(serde_json::to_string(&report)?).await;
            Ok(Exit::Ok)
        }
        Question::Queue(question) => queue::answer(assembly, serving, question, reply).await,
        Question::Quarantine(question) => quarantine::answer(assembly, serving, question, reply).await,
        Question::Cursor(question) => {
            let lines = question.answer(Arc::clone(&assembly.store), assembly.ground.clone()).await?;
            for line in lines {
                reply.data(line).await;
            }
            Ok(Exit::Ok)
        }
        Question::Breaker { order, operator } => {
            let report = breaker::by_the_holder(assembly, *order, operator)?;
            reply.data(serde_json::to_string(&report)?).await;
            Ok(Exit::Ok)
        }
        Question::Pausing { order, what, operator } => {
            let report = pausing::by_the_holder(assembly, *order, what, operator).await?;
            reply.data(serde_json::to_string(&report)?).await;
            Ok(Exit::Ok)
        }
        Question::SyncNow { streams, operator } => {
            reply.talk(pausing::sync_now(assembly, serving, streams, operator)?).await;
            Ok(Exit::Ok)
        }
        Question::BreakerHistory => {
            reply.data(serde_json::to_string(&actions::all(assembly.store.as_ref())?)?).await;
            Ok(Exit::Ok)
        }
        Question::Recover { streams, operator, wait } => {
            let report = recover::by_the_holder(assembly, streams.clone(), operator, *wait, reply).await?;
            reply.data(serde_json::to_string(&report)?).await;
            Ok(Exit::of_code(report.exit).unwrap_or(Exit::Unavailable))
        }
        Question::Backfill(question) => {
            reply.data(question.answer(assembly, serving).await?).await;
            Ok(Exit::Ok)
        }
        Question::Reconcile(question) => question.decline(serving),
    }
}

/// Answers the callers of the control socket from a running assembly.
struct FrontDesk {
    assembly: Arc<Assembly>,
    /// Those of a service: nobody else runs errands.
    errands: Option<Arc<Errands>>,
}

impl Desk for FrontDesk {
    fn answer<'a>(&'a self, question: &'a str, reply: &'a Reply) -> BoxFuture<'a, u8> {
        Box::pin(async move {
            let Ok(question) = serde_json::from_str::<Question>(question) else {
                let version = env!("CARGO_PKG_VERSION");
                let sentence = format!(
                    "the process that holds the state (version {version}) does not know this command; stop it, or use \
                     the same version"
                );
                reply.talk(sentence).await;
                return Exit::Usage.code();
            };
            match answer(&self.assembly, self.errands.is_some(), &question, reply).await {
                Ok(exit) => exit.code(),
                Err(error) => {
                    reply.talk(format!("{error:#}")).await;
                    Exit::of_error(&error).code()
                }
            }
        })
    }

    /// Errands: what answers them may be another assembly than this one, so nothing of it is held.
    fn answer_at_length(&self, question: &str, reply: &Reply) -> Option<BoxFuture<'static, u8>> {
        let errand = match serde_json::from_str::<Question>(question).ok()? {
            Question::Backfill(question) if !question.is_plan() => Errand::Backfill(question),
            Question::Reconcile(question) => Errand::Reconcile(question),
            _ => return None,
        };
        let answer = self.errands.as_ref()?.give(errand);
        let reply = reply.clone();
        Some(Box::pin(async move { answer.tell(&reply).await.code() }))
    }
}

/// Answers at the control socket until dropped. A socket that cannot be made is logged and does without: the process
/// does its work, and other commands are told who holds the state.
pub(in crate::app) struct OpenDesk {
    shutdown: CancellationToken,
    serving: JoinHandle<()>,
}

impl OpenDesk {
    /// Opens the desk of `assembly`, if it holds a state. A service gives the errands that it runs for others.
    pub(in crate::app) fn open(
        config: &Config,
        assembly: &Arc<Assembly>,
        errands: Option<&Arc<Errands>>,
    ) -> Option<Self> {
        let lock = assembly.lock()?;
        let socket = ControlSocket::bind(&config.store.path).and_then(|socket| {
            if let Some(elsewhere) = socket.elsewhere(&config.store.path) {
                announce(lock, elsewhere).map_err(io::Error::other)?;
            }
            Ok(socket)
        });
        let socket = match socket {
            Ok(socket) => socket,
            Err(error) => {
                tracing::warn!(
                    event = "control_socket_failed",
                    "no other command can look into this process: failed to make its control socket: {error}"
                );
                return None;
            }
        };
        let socket = match errands {
            Some(errands) => socket.talking_at_length_in(errands.talks()),
            None => socket,
        };
        let shutdown = CancellationToken::new();
        let desk = Arc::new(FrontDesk { assembly: Arc::clone(assembly), errands: errands.cloned() });
        let (supervisor, over) = (assembly.engine.supervisor(), shutdown.clone());
        let serving = tokio::spawn(async move {
            let answering = || socket.serve(desk.clone(), over.clone()).map(Ok::<(), Infallible>);
            let Ok(()) = supervisor.run("control socket", &over, answering).await;
        });
        Some(Self { shutdown, serving })
    }

    /// Returns when nobody is answered any more though nobody said so.
    pub(in crate::app) async fn ended(&mut self) -> Result<Result<(), Infallible>, JoinError> {
        (&mut self.serving).await.map(Ok)
    }

    /// Answers nobody any more. Returns once it does not hold the assembly; errands may.
    pub(in crate::app) async fn close(self) {
        self.shutdown.cancel();
        if !self.serving.is_finished() {
            drop(self.serving.await);
        }
    }
}

fn announce(lock: &StateLock, socket: &std::path::Path) -> Result<(), StoreError> {
    lock.announce(&Holder { socket: Some(socket.to_owned()), ..Holder::this_process() })
}
