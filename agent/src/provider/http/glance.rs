//! A short look at a server on this machine: one question without a key, answered at once or not at all.

use std::time::Duration;

use reqwest::{Client, StatusCode, redirect};
use serde_json::Value;

/// How long a connection may take.
const CONNECT_MAX: Duration = Duration::from_millis(300);

/// How long all of it may take.
const LOOK_MAX: Duration = Duration::from_secs(1);

/// The largest answer that is read.
const BYTES_MAX: usize = 1 << 20;

/// What the address says as JSON; nothing where there is nobody, or somebody who says something else.
pub(in crate::provider) async fn glance(address: &str) -> Option<Value> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .user_agent(concat!("lisa/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_MAX)
        .timeout(LOOK_MAX)
        .redirect(redirect::Policy::none())
        .no_proxy()
        .tls_certs_only([])
        .build()
        .ok()?;
    let mut response = client.get(address).send().await.ok()?;
    if response.status() != StatusCode::OK {
        return None;
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        body.extend_from_slice(&chunk);
        if body.len() > BYTES_MAX {
            return None;
        }
    }
    serde_json::from_slice(&body).ok()
}
