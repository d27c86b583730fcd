//! The control socket, both sides of it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use sierra_sync::ops::control::{AskError, ControlSocket, Desk, Line, Reply, ask};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Repeats the question, then says how often it was asked to.
struct Echo {
    answered: Arc<Notify>,
}

impl Desk for Echo {
    fn answer<'a>(&'a self, question: &'a str, reply: &'a Reply) -> BoxFuture<'a, u8> {
        Box::pin(async move {
            for _ in 0..1000 {
                reply.data(question).await;
            }
            reply.talk("done").await;
            self.answered.notify_one();
            3
        })
    }
}

fn serve(state: &Path) -> (CancellationToken, Arc<Notify>, tokio::task::JoinHandle<()>) {
    let (shutdown, answered) = (CancellationToken::new(), Arc::new(Notify::new()));
    let socket = ControlSocket::bind(state).expect("binds");
    let desk = Arc::new(Echo { answered: answered.clone() });
    let over = shutdown.clone();
    (shutdown, answered, tokio::spawn(async move { socket.serve(desk, over).await }))
}

#[tokio::test]
async fn a_question_is_answered_line_by_line_with_an_exit_code() {
    let state = tempfile::tempdir().expect("a directory");
    let (shutdown, _, served) = serve(state.path());
    let mode = std::fs::metadata(state.path().join("control.sock")).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut heard = Vec::new();
    let code = ask(state.path(), None, r#"{"ask":"status"}"#, |line| {
        heard.push(line);
        Ok(())
    });
    assert_eq!(code.await.expect("answered"), 3);
    assert_eq!(heard.len(), 1001);
    assert_eq!(heard[999], Line::Data(r#"{"ask":"status"}"#.to_owned()));
    assert_eq!(heard[1000], Line::Talk("done".to_owned()));
    shutdown.cancel();
    served.await.expect("ends");
    assert!(!state.path().join("control.sock").exists(), "the socket goes with its holder");
}

/// Answers when it is told to.
struct Slow {
    asked: Arc<Notify>,
    goes_on: Arc<Notify>,
}

impl Desk for Slow {
    fn answer<'a>(&'a self, _: &'a str, reply: &'a Reply) -> BoxFuture<'a, u8> {
        Box::pin(async move {
            self.asked.notify_one();
            self.goes_on.notified().await;
            reply.data("\"after all\"").await;
            0
        })
    }
}

/// A service that stops, or reads its configuration again, does not cut off whoever is just being answered.
#[tokio::test]
async fn an_answer_under_way_at_the_end_is_still_given() {
    let state = tempfile::tempdir().expect("a directory");
    let (asked, goes_on, shutdown) = (Arc::new(Notify::new()), Arc::new(Notify::new()), CancellationToken::new());
    let socket = ControlSocket::bind(state.path()).expect("binds");
    let (desk, over) = (Slow { asked: asked.clone(), goes_on: goes_on.clone() }, shutdown.clone());
    let served = tokio::spawn(async move { socket.serve(Arc::new(desk), over).await });
    let mut heard = Vec::new();
    let asking = ask(state.path(), None, "\"x\"", |line| {
        heard.push(line);
        Ok(())
    });
    let ending = async {
        asked.notified().await;
        shutdown.cancel();
        // The socket has seen it by then.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        goes_on.notify_one();
    };
    let (code, ()) = tokio::join!(asking, ending);
    assert_eq!(code.expect("answered"), 0);
    assert_eq!(heard, [Line::Data("\"after all\"".to_owned())]);
    served.await.expect("ends");
}

/// Who asks for ever is not waited for: the service must end.
#[tokio::test(start_paused = true)]
async fn an_answer_that_never_ends_does_not_hold_the_end_up() {
    let state = tempfile::tempdir().expect("a directory");
    let (asked, shutdown) = (Arc::new(Notify::new()), CancellationToken::new());
    let socket = ControlSocket::bind(state.path()).expect("binds");
    let (desk, over) = (Slow { asked: asked.clone(), goes_on: Arc::new(Notify::new()) }, shutdown.clone());
    let served = tokio::spawn(async move { socket.serve(Arc::new(desk), over).await });
    let asking = ask(state.path(), None, "\"x\"", |_| Ok(()));
    let ending = async {
        asked.notified().await;
        shutdown.cancel();
        tokio::time::timeout(Duration::from_secs(60), served).await.expect("in time").expect("ends");
    };
    let (answer, ()) = tokio::join!(asking, ending);
    assert!(matches!(answer, Err(AskError::BrokenOff)), "{answer:?}");
}

/// Answers when it is told to, however long it is gone itself by then.
struct Lasting(Arc<Notify>);

impl Desk for Lasting {
    fn answer<'a>(&'a self, _: &'a str, _: &'a Reply) -> BoxFuture<'a, u8> {
        Box::pin(async { 1 })
    }

    fn answer_at_length(&self, question: &str, reply: &Reply) -> Option<BoxFuture<'static, u8>> {
        let (goes_on, reply) = (Arc::clone(&self.0), reply.clone());
        let answer = async move {
            goes_on.notified().await;
            reply.data("\"after all\"").await;
            0
        };
        (question == "\"long\"").then(|| -> BoxFuture<'static, u8> { Box::pin(answer) })
    }
}

/// A long answer is waited for in a place that outlasts the socket, and the desk may go at once.
#[tokio::test]
async fn a_long_answer_is_given_after_the_end_of_the_socket() {
    let state = tempfile::tempdir().expect("a directory");
    let (goes_on, shutdown, talks) = (Arc::new(Notify::new()), CancellationToken::new(), TaskTracker::new());
    let socket = ControlSocket::bind(state.path()).expect("binds").talking_at_length_in(talks.clone());
    let (desk, over) = (Arc::new(Lasting(goes_on.clone())), shutdown.clone());
    let is_held = Arc::downgrade(&desk);
    let served = tokio::spawn(async move { socket.serve(desk, over).await });
    assert_eq!(ask(state.path(), None, "\"short\"", |_| Ok(())).await.expect("answered"), 1);
    let mut heard = Vec::new();
    let asking = ask(state.path(), None, "\"long\"", |line| {
        heard.push(line);
        Ok(())
    });
    let ending = async {
        while talks.is_empty() {
            tokio::task::yield_now().await;
        }
        shutdown.cancel();
        served.await.expect("ends");
        assert!(is_held.upgrade().is_none(), "the desk is free");
        goes_on.notify_one();
    };
    let (code, ()) = tokio::join!(asking, ending);
    assert_eq!(code.expect("answered"), 0);
    assert_eq!(heard, [Line::Data("\"after all\"".to_owned())]);
}

/// A command may be detached from what it started.
#[tokio::test]
async fn a_caller_that_goes_away_ends_nothing() {
    let state = tempfile::tempdir().expect("a directory");
    let (_shutdown, answered, _served) = serve(state.path());
    let mut caller = UnixStream::connect(state.path().join("control.sock")).await.expect("there");
    caller.write_all(b"\"anything\"\n").await.expect("sent");
    drop(caller);
    answered.notified().await;
}

#[tokio::test]
async fn what_is_no_question_is_not_answered() {
    let state = tempfile::tempdir().expect("a directory");
    let (_shutdown, answered, _served) = serve(state.path());
    for junk in [String::new(), "no end of line".to_owned(), "x".repeat(70_000)] {
        let mut caller = UnixStream::connect(state.path().join("control.sock")).await.expect("there");
        drop(caller.write_all(junk.as_bytes()).await);
        drop(caller.shutdown().await);
        let mut rest = Vec::new();
        drop(tokio::io::AsyncReadExt::read_to_end(&mut caller, &mut rest).await);
        assert!(rest.is_empty(), "{junk:.20}");
    }
    assert!(futures_util::FutureExt::now_or_never(answered.notified()).is_none());
}

/// BR-061: a socket that a dead process left behind is no holder, and is replaced by the next one.
#[tokio::test]
async fn a_socket_nobody_answers_is_said_to_be_one_and_replaced() {
    let state = tempfile::tempdir().expect("a directory");
    let left = std::os::unix::net::UnixListener::bind(state.path().join("control.sock")).expect("binds");
    drop(left);
    let silent = ask(state.path(), None, "\"x\"", |_| Ok(())).await;
    assert!(matches!(silent, Err(AskError::NoAnswer { .. })), "{silent:?}");
    let (_shutdown, _, _served) = serve(state.path());
    assert_eq!(ask(state.path(), None, "\"x\"", |_| Ok(())).await.expect("answered"), 3);
}
