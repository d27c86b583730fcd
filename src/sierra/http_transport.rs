//! The real [`Transport`]: one attempt over HTTPS with reqwest.
//!
//! It never follows a redirect and never talks to another origin than the configured one, so a token cannot travel
//! elsewhere; it keeps no cookies, so that any Sierra back-end may answer; certificates are always verified. Proxies
//! come from the settings alone: a variable left in the environment does not reroute patrons' data.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use reqwest::{Certificate, Client, ClientBuilder, NoProxy, Proxy, redirect, retry};

use super::base_url::{BaseUrl, BaseUrlError, Origin};
use super::scrub::Scrubber;
use super::settings::SierraSettings;
use super::transport::{SendOptions, Transport, TransportError, TransportErrorKind};

/// A connection that idles longer is not used again. Apache before Sierra closes after 5 s, some sites after 2 s
/// (sierra-api.md §5.3), and a request sent into a closing connection is lost.
const IDLE_LIMIT: Duration = Duration::from_millis(1500);
/// Part of the attempt's time that may go into connecting, so that a silent address is given up while the budget
/// still allows another attempt.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Sends requests over the network.
pub struct HttpTransport {
    pooled: Client,
    /// Never keeps a connection, so each of its requests opens its own.
    unpooled: Client,
    origin: Origin,
}

/// Why the transport could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum HttpTransportError {
    /// The address of the API.
    #[error(transparent)]
    BaseUrl(#[from] BaseUrlError),
    /// The extra root certificate could not be read.
    #[error("failed to read the certificates in {path}: {source}")]
    CaFile {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The extra root certificate is none.
    #[error("{path} holds no certificate in PEM form")]
    NoCertificate {
        /// The file.
        path: String,
    },
    /// The proxy's URL is not one; it is not shown, since it may hold a password.
    #[error("sierra.proxy is not the URL of an http or https proxy")]
    Proxy,
    /// The HTTP library refused its settings.
    #[error("failed to set up TLS: {0}")]
    Setup(String),
}

/// Chooses the cryptography of TLS for this process. To be called before the first connection of any kind; calling it
/// again changes nothing.
pub fn install_crypto() {
    // An error only says that a provider is installed already.
    let _installed = rustls::crypto::ring::default_provider().install_default();
}

impl HttpTransport {
    /// Prepares connections to the API of `settings`; opens none.
    ///
    /// # Errors
    /// When the address, the certificate file or the proxy cannot be used.
    pub fn new(settings: &SierraSettings) -> Result<Self, HttpTransportError> {
        install_crypto();
        let base_url = BaseUrl::new(&settings.base_url)?;
        let build = |builder: ClientBuilder| {
            configure(builder, settings)?.build().map_err(|error| HttpTransportError::Setup(innermost(&error)))
        };
        Ok(Self {
            pooled: build(Client::builder().pool_idle_timeout(IDLE_LIMIT))?,
            unpooled: build(Client::builder().pool_max_idle_per_host(0))?,
            origin: base_url.origin().clone(),
        })
    }

    async fn exchange(
        &self,
        request: http::Request<Bytes>,
        options: SendOptions,
    ) -> Result<http::Response<Bytes>, TransportError> {
        if Origin::of(request.uri()).as_ref() != Some(&self.origin) {
            return Err(failure(TransportErrorKind::Protocol, "the address is not that of the configured API"));
        }
        let request = reqwest::Request::try_from(request).map_err(describe)?;
        let client = if options.fresh_connection { &self.unpooled } else { &self.pooled };
        let mut answer = client.execute(request).await.map_err(describe)?;
        let mut body = BytesMut::new();
        while let Some(chunk) = answer.chunk().await.map_err(describe)? {
            // Counted after decompression: a small answer may unfold to any size.
            if body.len().saturating_add(chunk.len()) > options.max_body {
                return Err(failure(TransportErrorKind::TooLarge, &format!("over {} bytes", options.max_body)));
            }
            body.extend_from_slice(&chunk);
        }
        let mut response = http::Response::new(body.freeze());
        *response.status_mut() = answer.status();
        *response.version_mut() = answer.version();
        *response.headers_mut() = std::mem::take(answer.headers_mut());
        Ok(response)
    }
}

impl Transport for HttpTransport {
    fn send(
        &self,
        request: http::Request<Bytes>,
        options: SendOptions,
    ) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        Box::pin(async move {
            match tokio::time::timeout(options.timeout, self.exchange(request, options)).await {
                Ok(result) => result,
                Err(_) => Err(failure(TransportErrorKind::Timeout, &format!("after {:?}", options.timeout))),
            }
        })
    }
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HttpTransport").field("origin", &self.origin).finish_non_exhaustive()
    }
}

fn configure(builder: ClientBuilder, settings: &SierraSettings) -> Result<ClientBuilder, HttpTransportError> {
    let mut builder = builder
        .user_agent(&settings.user_agent)
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .connect_timeout(CONNECT_LIMIT)
        // Sierra speaks HTTP/1.1, where "another connection" has a plain meaning.
        .http1_only()
        .no_proxy();
    if let Some(url) = &settings.proxy {
        let loopback = NoProxy::from_string("localhost,127.0.0.0/8,::1");
        builder = builder.proxy(Proxy::all(url).map_err(|_| HttpTransportError::Proxy)?.no_proxy(loopback));
    }
    if let Some(path) = &settings.ca_file {
        let shown = path.display().to_string();
        let pem = std::fs::read(path).map_err(|source| HttpTransportError::CaFile { path: shown.clone(), source })?;
        let roots = Certificate::from_pem_bundle(&pem).ok().filter(|roots| !roots.is_empty());
        builder = builder.tls_certs_merge(roots.ok_or(HttpTransportError::NoCertificate { path: shown })?);
    }
    Ok(builder)
}

fn failure(kind: TransportErrorKind, detail: &str) -> TransportError {
    TransportError { kind, detail: Some(detail.to_owned()) }
}

fn describe(error: reqwest::Error) -> TransportError {
    let kind = kind_of(&error);
    TransportError { kind, detail: Some(innermost(&error.without_url())) }
}

fn kind_of(error: &reqwest::Error) -> TransportErrorKind {
    if is_untrusted(error) {
        return TransportErrorKind::Untrusted;
    }
    if error.is_connect() {
        return TransportErrorKind::Connect;
    }
    if error.is_timeout() {
        return TransportErrorKind::Timeout;
    }
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<hyper::Error>()
            && (error.is_incomplete_message() || error.is_closed() || error.is_canceled())
        {
            return TransportErrorKind::Closed;
        }
        if let Some(error) = error.downcast_ref::<io::Error>()
            && is_ending(error.kind())
        {
            return TransportErrorKind::Closed;
        }
        cause = error.source();
    }
    TransportErrorKind::Protocol
}

/// Whether the certificate was refused at any depth; an `io::Error` passes over the error that it wraps.
fn is_untrusted(error: &(dyn Error + 'static)) -> bool {
    let is_refusal =
        |error: &(dyn Error + 'static)| matches!(error.downcast_ref(), Some(rustls::Error::InvalidCertificate(_)));
    let mut cause = Some(error);
    while let Some(error) = cause {
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if is_refusal(error) || wrapped.is_some_and(|wrapped| is_untrusted(wrapped)) {
            return true;
        }
        cause = error.source();
    }
    false
}

fn is_ending(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::NotConnected
            | io::ErrorKind::UnexpectedEof
    )
}

/// The cause at the bottom. The outer layers only say that sending failed; none of the layers holds a header or a
/// body, and the URL has been taken out.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    Scrubber::default().quote(&cause.to_string())
}
