//! Heads of requests and answers.

use bytes::Bytes;

/// The longest head that is read.
pub(super) const LONGEST_HEAD: usize = 64 * 1024;

/// A request's head.
pub(super) struct Head {
    pub(super) request: http::Request<Bytes>,
    /// Bytes that the head takes, blank line included.
    pub(super) length: usize,
    /// Bytes of body that follow.
    pub(super) body: usize,
    /// Whether the client will close the connection after the answer.
    pub(super) closes: bool,
}

/// The head at the start of `buffer`, once it is complete.
///
/// # Errors
/// When it is no HTTP/1 that this server understands.
pub(super) fn parse(buffer: &[u8]) -> Result<Option<Head>, Unreadable> {
    let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") else {
        return if buffer.len() > LONGEST_HEAD { Err(Unreadable) } else { Ok(None) };
    };
    let text = buffer.get(..end).and_then(|head| std::str::from_utf8(head).ok()).ok_or(Unreadable)?;
    let mut lines = text.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version)) = (first.next(), first.next(), first.next()) else {
        return Err(Unreadable);
    };
    let headers: Vec<(&str, &str)> = lines
        .map(|line| line.split_once(':').map(|(name, value)| (name, value.trim())).ok_or(Unreadable))
        .collect::<Result<_, _>>()?;
    let header =
        |wanted: &str| headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| *value);
    if header("transfer-encoding").is_some() {
        return Err(Unreadable);
    }
    let body = header("content-length").map_or(Ok(0), str::parse).map_err(|_| Unreadable)?;
    let uri = if target.starts_with('/') {
        format!("http://{}{target}", header("host").unwrap_or("localhost"))
    } else {
        target.to_owned()
    };
    let mut builder = http::Request::builder().method(method).uri(uri);
    for (name, value) in &headers {
        builder = builder.header(*name, *value);
    }
    let asked_to_close = header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    let request = builder.body(Bytes::new()).map_err(|_| Unreadable)?;
    Ok(Some(Head { request, length: end + 4, body, closes: asked_to_close || version == "HTTP/1.0" }))
}

/// Not HTTP, or more of it than this server speaks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

/// The head of an answer. `left` is how many further requests this connection will take.
pub(super) fn write(response: &http::Response<Bytes>, left: u32, timeout: u64) -> Vec<u8> {
    let status = response.status();
    let reason = status.canonical_reason().unwrap_or("Unknown");
    let mut head = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    for (name, value) in response.headers() {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    if status != http::StatusCode::NO_CONTENT {
        head.extend_from_slice(format!("content-length: {}\r\n", response.body().len()).as_bytes());
    }
    let connection = if left == 0 {
        "connection: close\r\n\r\n".to_owned()
    } else {
        format!("keep-alive: timeout={timeout}, max={left}\r\nconnection: Keep-Alive\r\n\r\n")
    };
    head.extend_from_slice(connection.as_bytes());
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        let text =
            b"POST /iii/sierra-api/v6/token?x=1 HTTP/1.1\r\nHost: 127.0.0.1:80\r\ncontent-length: 3\r\n\r\nabcGET";
        assert!(parse(&text[..60]).unwrap().is_none());
        let head = parse(text).unwrap().unwrap();
        assert_eq!((head.request.method().as_str(), head.body, head.closes), ("POST", 3, false));
        assert_eq!(head.request.uri(), "http://127.0.0.1:80/iii/sierra-api/v6/token?x=1");
        assert_eq!(&text[head.length..head.length + head.body], b"abc");
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in [
            "garbage\r\n\r\n",
            "GET / HTTP/1.1\r\nno colon\r\n\r\n",
            "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET / HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(parse(&vec![b'x'; LONGEST_HEAD + 1]).is_err());
    }
}
