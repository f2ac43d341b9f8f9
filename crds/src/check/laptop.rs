//! What is accepted on a laptop and not in a cluster.

use serde_json::Value;

use super::Problem;
use crate::rule;

/// Whether this problem is about plain http:// to loopback, where nobody else is on the path.
pub(super) fn accepts(problem: &Problem, object: &Value) -> bool {
    let plaintext = [rule::ENCRYPTED.1, rule::ENCRYPTED_OR_LOOPBACK.1, rule::REMOTE_ENCRYPTED.1];
    let value = object.pointer(&problem.path.pointer());
    let url = value.and_then(|value| value.as_str().or_else(|| value.get("url")?.as_str()));
    plaintext.contains(&problem.message.as_str()) && url.is_some_and(is_loopback)
}

/// Whether a URL, whose form was checked before, names loopback as its host.
fn is_loopback(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_loopback() {
        for url in ["http://localhost:8000/mcp", "http://127.0.0.1/mcp", "http://127.1.2.3", "http://[::1]:9/mcp"] {
            assert!(is_loopback(url), "{url}");
        }
        for url in ["http://localhost.example.com/", "http://127.0.0.1.example.com", "http://10.0.0.1/", "https://x/"] {
            assert!(!is_loopback(url), "{url}");
        }
    }
}
