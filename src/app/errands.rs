//! Errands: the long work that others give a service to do, a backfill or a reconciliation.
//!
//! They outlive a change of the configuration. The engine that runs them is stopped, and the next one goes on from where
//! the store says that they stand; whoever waits for the answer goes on waiting. They do not outlive the process: the
//! same command takes up what one that has stopped left.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::assembly::Assembly;
use super::backfill::{BackfillQuestion, refused};
use super::reconcile::{ReconcileQuestion, declined};
use crate::cli::exit::{Declined, Exit};
use crate::ops::control::Reply;
use crate::record::Stream;
use crate::sync::engine::{BackfillLeg, EngineError};
use crate::sync::sweep::ReconcileReport;

/// At the end of the service, whoever is just being answered has so long.
const LEAVES_WITHIN: Duration = Duration::from_secs(1);
/// A sweep of the service itself may have begun meanwhile: so often it is looked whether it has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// What is to be done.
#[derive(Debug, Clone)]
pub(super) enum Errand {
    /// Records are read once more.
    Backfill(BackfillQuestion),
    /// A stream is compared.
    Reconcile(ReconcileQuestion),
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Answer {
    /// A JSON document.
    Document(String, Exit),
    /// Why there is none.
    Sentence(String, Exit),
}

/// Where the answer comes out.
pub(super) struct Awaited(oneshot::Receiver<Answer>);

/// For how long errands rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// Until another assembly takes them up.
    UntilTakenUp,
    /// The service ends.
    ForGood,
}

/// The errands of one service.
#[derive(Default)]
pub(super) struct Errands {
    state: Mutex<State>,
    talks: TaskTracker,
}

#[derive(Default)]
struct State {
    /// What carries them out, unless they rest.
    bearer: Option<Bearer>,
    /// Those that rest.
    resting: Vec<Given>,
    is_over: bool,
}

/// An assembly at work.
#[derive(Clone)]
struct Bearer {
    assembly: Arc<Assembly>,
    over: CancellationToken,
    legs: TaskTracker,
}

/// One errand that somebody gave.
struct Given {
    errand: Errand,
    /// What earlier assemblies did of it.
    so_far: Option<Leg>,
    answer: oneshot::Sender<Answer>,
}

/// What one assembly, or several, did of an errand.
enum Leg {
    Backfill(Box<BackfillLeg>),
    Reconcile { found: ReconcileReport, exit: Exit, is_whole: bool },
}

impl Errands {
    /// Takes an errand, and begins it as soon as there is an assembly for it.
    pub(super) fn give(self: &Arc<Self>, errand: Errand) -> Awaited {
        let (answer, awaited) = oneshot::channel();
        self.go_on(Given { errand, so_far: None, answer });
        Awaited(awaited)
    }

    /// Carries out what was given, and what will be, with `assembly`, until they are told to rest.
    pub(super) fn begin(self: &Arc<Self>, assembly: &Arc<Assembly>) {
        let bearer =
            Bearer { assembly: Arc::clone(assembly), over: CancellationToken::new(), legs: TaskTracker::new() };
        let resting = {
            let mut state = self.state();
            state.is_over = false;
            state.bearer = Some(bearer);
            std::mem::take(&mut state.resting)
        };
        for given in resting {
            self.go_on(given);
        }
    }

    /// Ends what is under way, each page whole or not at all. Returns once nothing here holds the assembly. Whoever
    /// waits is answered if this is for good.
    pub(super) async fn rest(&self, rest: Rest) {
        let bearer = {
            let mut state = self.state();
            state.is_over = rest == Rest::ForGood;
            state.bearer.take()
        };
        if let Some(Bearer { assembly, over, legs }) = bearer {
            drop(assembly);
            over.cancel();
            legs.close();
            legs.wait().await;
        }
        if rest == Rest::ForGood {
            let resting = std::mem::take(&mut self.state().resting);
            resting.into_iter().for_each(Given::leave);
        }
    }

    /// Gives whoever is just being answered a moment more, at the end of the service.
    pub(super) async fn take_leave(&self) {
        self.talks.close();
        drop(tokio::time::timeout(LEAVES_WITHIN, self.talks.wait()).await);
        self.talks.reopen();
    }

    /// Where those wait who gave an errand.
    pub(super) fn talks(&self) -> TaskTracker {
        self.talks.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the assembly that is at work go on with an errand; where none is, it rests.
    fn go_on(self: &Arc<Self>, given: Given) {
        let mut state = self.state();
        match state.bearer.clone() {
            Some(bearer) => {
                let (errands, legs) = (Arc::clone(self), bearer.legs.clone());
                legs.spawn(async move { errands.carry_out(given, bearer).await });
            }
            None if state.is_over => given.leave(),
            None => state.resting.push(given),
        }
    }

    async fn carry_out(self: Arc<Self>, given: Given, bearer: Bearer) {
        let Bearer { assembly, over, legs: _ } = bearer;
        let is_taken_up = given.so_far.is_some();
        if is_taken_up {
            tracing::info!(event = "errand_goes_on", "the {} goes on where it was", given.errand);
        }
        let done = given.errand.leg(&assembly, is_taken_up, &over).await;
        drop(assembly);
        let Given { errand, so_far, answer } = given;
        let so_far = match done {
            Ok(leg) => leg.after(so_far),
            Err(error) => {
                let answered = if is_taken_up { errand.parked(error) } else { Answer::of(&error) };
                // Whoever asked may have gone away.
                drop(answer.send(answered));
                return;
            }
        };
        let is_cut = over.is_cancelled() && !so_far.is_whole();
        let given = Given { errand, so_far: Some(so_far), answer };
        if is_cut { self.go_on(given) } else { given.leave() }
    }
}

impl Given {
    /// Answers with what was done.
    fn leave(self) {
        let answered = match self.so_far {
            Some(leg) => leg.answer(),
            None => {
                let sentence = "the service is stopping: give the same command again when it is up".to_owned();
                Answer::Sentence(sentence, Exit::TryLater)
            }
        };
        drop(self.answer.send(answered));
    }
}

impl Errand {
    /// Does as much of it as `assembly` is given time for.
    async fn leg(&self, assembly: &Assembly, is_taken_up: bool, over: &CancellationToken) -> anyhow::Result<Leg> {
        match self {
            Self::Backfill(question) => {
                let leg = assembly.engine.backfill_leg(&question.order(), over).await.map_err(refused)?;
                Ok(Leg::Backfill(Box::new(leg)))
            }
            Self::Reconcile(question) => loop {
                match assembly.engine.reconcile_beside(&question.order(), over).await {
                    Err(EngineError::SweepUnderWay { .. }) if is_taken_up && !over.is_cancelled() => {
                        tokio::select! {
                            () = tokio::time::sleep(LOOK_AGAIN) => {}
                            () = over.cancelled() => {}
                        }
                    }
                    outcome => {
                        let outcome = outcome.map_err(declined)?;
                        let exit = Exit::of_code(outcome.exit).unwrap_or(Exit::Unavailable);
                        return Ok(Leg::Reconcile { found: outcome.found, exit, is_whole: outcome.is_whole });
                    }
                }
            },
        }
    }

    /// An errand that was under way and cannot go on.
    fn parked(&self, error: anyhow::Error) -> Answer {
        if Exit::of_error(&error) != Exit::Usage {
            return Answer::of(&error);
        }
        let sentence = format!(
            "the {self} is parked, since it does not fit the configuration that the service reads now: {error:#}; put \
             that back, and the same command goes on with it"
        );
        tracing::warn!(event = "errand_parked", "{sentence}");
        Answer::Sentence(sentence, Exit::Incomplete)
    }

    fn stream(&self) -> Stream {
        match self {
            Self::Backfill(question) => question.order().stream,
            Self::Reconcile(question) => question.order().stream,
        }
    }
}

impl std::fmt::Display for Errand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self {
            Self::Backfill(_) => "backfill",
            Self::Reconcile(_) => "reconciliation",
        };
        write!(f, "{what} of {}", self.stream())
    }
}

impl Leg {
    fn is_whole(&self) -> bool {
        match self {
            Self::Backfill(leg) => leg.is_whole,
            Self::Reconcile { is_whole, .. } => *is_whole,
        }
    }

    /// This as the end of what `earlier` began. What a reconciliation found is kept with it, and counted already.
    fn after(self, earlier: Option<Self>) -> Self {
        match (self, earlier) {
            (Self::Backfill(leg), Some(Self::Backfill(earlier))) => Self::Backfill(Box::new(leg.after(*earlier))),
            (leg, _) => leg,
        }
    }

    fn answer(self) -> Answer {
        let (document, exit) = match self {
            Self::Backfill(leg) => {
                let exit = Exit::of_code(leg.summary.exit).unwrap_or(Exit::Unavailable);
                (serde_json::to_string(&leg.summary), exit)
            }
            Self::Reconcile { found, exit, is_whole: _ } => (serde_json::to_string(&found), exit),
        };
        match document {
            Ok(document) => Answer::Document(document, exit),
            Err(error) => Answer::of(&error.into()),
        }
    }
}

impl Answer {
    fn of(error: &anyhow::Error) -> Self {
        Self::Sentence(format!("{error:#}"), Exit::of_error(error))
    }
}

impl Awaited {
    /// Tells `reply` what came of it, and gives the exit code.
    pub(super) async fn tell(self, reply: &Reply) -> Exit {
        let answer = self.0.await.unwrap_or_else(|_| {
            let sentence = "this command met a defect; please report the place logged before".to_owned();
            Answer::Sentence(sentence, Exit::Unavailable)
        });
        match answer {
            Answer::Document(document, exit) => {
                reply.data(document).await;
                exit
            }
            Answer::Sentence(sentence, exit) => {
                reply.talk(sentence).await;
                exit
            }
        }
    }
}

/// Whoever is no service runs nothing for others.
pub(super) fn not_here(serving: bool) -> anyhow::Error {
    let sentence = if serving {
        "this is done over the control socket alone: use the command"
    } else {
        "another command holds the state and is no service: try again when it has ended"
    };
    Declined { sentence: sentence.to_owned(), exit: Exit::TryLater }.into()
}
