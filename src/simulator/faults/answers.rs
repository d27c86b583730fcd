//! Answers that stand in for the right one.

use super::super::api::{Answer, JSON, Refusal};
use super::fault::{Fault, Unauthorized};

const HTML: &str = "text/html; charset=iso-8859-1";

/// The answer that a fault gives instead of Sierra's, if it gives one, and headers that go with it.
pub(super) fn instead(fault: &Fault) -> Option<(Answer, Vec<(String, String)>)> {
    let mut headers = Vec::new();
    let answer = match fault {
        Fault::Error { code, status, as_text } => {
            let mut refusal = Refusal::documented(*code);
            if let Some(status) = status {
                refusal = refusal.under(*status);
            }
            let body = refusal.body();
            let quoted = || body.replacen(&format!("\"code\":{code}"), &format!("\"code\":\"{code}\""), 1);
            answer(refusal.status, JSON, if *as_text { quoted() } else { body })
        }
        Fault::Unauthorized(form) => match form {
            Unauthorized::BadHeader => refusal(&Refusal::documented(113)),
            Unauthorized::InvalidToken => refusal(&Refusal::documented(120)),
            Unauthorized::InvalidGrant => refusal(&Refusal::documented(123)),
            Unauthorized::Html => page(401),
            Unauthorized::Bare => answer(401, JSON, String::new()),
        },
        Fault::TooManyRequests { limit, remaining, reset, retry_after } => {
            let named = [
                ("X-RateLimit-Limit", limit),
                ("X-RateLimit-Remaining", remaining),
                ("X-RateLimit-Reset", reset),
                ("Retry-After", retry_after),
            ];
            headers.extend(named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?))));
            answer(429, "text/plain", "Too Many Requests\n".into())
        }
        Fault::RateExceeded { status, minutes } => refusal(&Refusal::rate_exceeded(*status, minutes)),
        Fault::Html { status } => page(*status),
        Fault::Bare { status } => answer(*status, JSON, String::new()),
        Fault::NotRetryable { status } => {
            answer(*status, JSON, r#"{"error":"refused for good","retryable":false}"#.into())
        }
        Fault::Raw { status, content_type, headers: own, body } => {
            headers.push(("Content-Type".into(), content_type.clone()));
            headers.extend(own.iter().cloned());
            answer(*status, JSON, body.clone())
        }
        Fault::EmptyBody => answer(200, JSON, String::new()),
        Fault::LoneCode => answer(200, JSON, r#"{"code":"-1"}"#.into()),
        Fault::NoEntries => answer(200, JSON, r#"{"total":0}"#.into()),
        Fault::ErrorCodeText => answer(200, "text/plain;charset=UTF-8", Refusal::documented(111).plain_text()),
        _ => return None,
    };
    Some((answer, headers))
}

fn refusal(refusal: &Refusal) -> Answer {
    answer(refusal.status, JSON, refusal.body())
}

fn page(status: u16) -> Answer {
    let reason = http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let title = if status == 200 { "Sign in" } else { reason.unwrap_or("Error") };
    let body = format!(
        "<!DOCTYPE HTML PUBLIC \"-//IETF//DTD HTML 2.0//EN\">\n<html><head>\n<title>{status} {title}</title>\n\
         </head><body>\n<h1>{title}</h1>\n<p>The proxy server received an invalid response.</p>\n</body></html>\n"
    );
    answer(status, HTML, body)
}

fn answer(status: u16, content_type: &'static str, body: String) -> Answer {
    Answer { status, content_type, ..Answer::json(body) }
}
