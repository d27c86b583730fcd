//! What people do from the dashboard: the same questions that other commands ask, answered by the same desk.

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::cli::breaker;
use crate::cli::exit::Exit;
use crate::ops::control::{Line, Reply};
use crate::ops::{Acted, Action, Actor, BreakerWord};

use super::actions::Operator;
use super::breaker::{BreakerOrder, BreakerReport};
use super::desk::{self, Question};
use super::observatory::Observatory;
use super::pausing::PauseOrder;
use super::quarantine::QuarantineQuestion;
use super::replay::{self, Outcome, Replayed};

/// Who acts, when nobody says.
const SOMEBODY: &str = "somebody at the dashboard";

impl Actor for Observatory {
    fn act(&self, action: Action, by: Option<String>, reason: Option<String>) -> BoxFuture<'_, Acted> {
        Box::pin(async move {
            let Some((assembly, over)) = self.open() else {
                return Acted::Failed("the service is stopping; ask again when it is up".to_owned());
            };
            let operator = Operator::new(by.as_deref().or(Some(SOMEBODY)), reason.as_deref());
            let question = question(&action, operator, assembly.engine.streams().collect());
            // Whoever asked may go away meanwhile; a stop of the service ends it.
            let task = tokio::spawn(async move {
                let (reply, mut lines) = Reply::channel();
                let answering = async {
                    let answered = desk::answer(&assembly, true, &question, &reply).await;
                    drop(reply);
                    answered
                };
                let hearing = async {
                    let mut heard = Vec::new();
                    while let Some(line) = lines.recv().await {
                        heard.push(line);
                    }
                    heard
                };
                tokio::select! {
                    answered = async { tokio::join!(answering, hearing) } => Some(answered),
                    () = over.cancelled() => None,
                }
            });
            match task.await {
                Ok(Some((Ok(exit), heard))) if is_done(&action, exit, &heard) => Acted::Done(sentence(&action, &heard)),
                Ok(Some((Ok(_), heard))) => Acted::Failed(sentence(&action, &heard)),
                Ok(Some((Err(error), _))) => match Exit::of_error(&error) {
                    Exit::Usage | Exit::TryLater => Acted::Refused(format!("{error:#}")),
                    _ => Acted::Failed(format!("{error:#}")),
                },
                Ok(None) => Acted::Failed("the service is stopping; ask again when it is up".to_owned()),
                Err(_) => Acted::Failed("this met a defect; please report the place that the log names".to_owned()),
            }
        })
    }
}

fn question(action: &Action, operator: Operator, streams: Vec<crate::record::Stream>) -> Question {
    match action.clone() {
        Action::Sync(streams) => Question::SyncNow { streams, operator },
        Action::Pause(what) => Question::Pausing { order: PauseOrder::Pause, what, operator },
        Action::Resume(what) => Question::Pausing { order: PauseOrder::Resume, what, operator },
        Action::Breaker(word) => {
            let order = match word {
                BreakerWord::Open(lasts) => BreakerOrder::Open { lasts },
                BreakerWord::Close => BreakerOrder::Close,
                BreakerWord::Reset => BreakerOrder::Reset,
            };
            Question::Breaker { order, operator }
        }
        Action::Recover => Question::Recover { streams, operator, wait: false },
        Action::Replay { ids, stream } => Question::Quarantine(QuarantineQuestion::Replay { ids, stream, operator }),
    }
}

/// Whether the action came to something: of a replay, if one record at least is good now, or waits for its sink.
fn is_done(action: &Action, exit: Exit, heard: &[Line]) -> bool {
    let is_better = |replayed: &Replayed| matches!(replayed.outcome, Outcome::Healed | Outcome::Waits);
    exit == Exit::Ok || (matches!(action, Action::Replay { .. }) && replayed(heard).iter().any(is_better))
}

/// What became of each entry that was replayed.
fn replayed(heard: &[Line]) -> Vec<Replayed> {
    let documents = heard.iter().filter_map(|line| match line {
        Line::Data(text) => serde_json::from_str(text).ok(),
        _ => None,
    });
    documents.collect()
}

/// What came of it, as the command line would say it.
fn sentence(action: &Action, heard: &[Line]) -> String {
    if matches!(action, Action::Replay { .. }) {
        return format!("Replayed: {}.", replay::told(&replayed(heard)));
    }
    let document = heard.iter().rev().find_map(|line| match line {
        Line::Data(text) => Some(text),
        _ => None,
    });
    let told = document.and_then(|text| match action {
        Action::Breaker(_) => {
            serde_json::from_str::<BreakerReport>(text).ok().map(|report| breaker::sentence(&report, None))
        }
        _ => {
            let report: Value = serde_json::from_str(text).ok()?;
            report.get("message")?.as_str().map(str::to_owned)
        }
    });
    let talked = heard.iter().rev().find_map(|line| match line {
        Line::Talk(text) => Some(text.clone()),
        _ => None,
    });
    told.or(talked).unwrap_or_else(|| "Done.".to_owned())
}
