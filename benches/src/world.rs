//! What is measured: twenty pinned tools, an issuer with an ES256 key, a policy module, and limits that are checked and never reached.

use std::net::SocketAddr;

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use cotter_core::fingerprint::{Ignore, Scheme, fingerprint};
use jsonwebtoken::{Algorithm, EncodingKey, Header, jwk::Jwk};
use serde_json::{Map, Value, json};

use crate::error::BenchError;

/// The revision that load and upstream speak.
pub(crate) const REVISION: &str = "2025-06-18";
/// The tool that is called.
pub(crate) const TOOL: &str = "echo_0";
/// The scope that every tool demands.
pub(crate) const SCOPE: &str = "echo:read";

const TOOLS: usize = 20;
const KEY: &str = "one";
const ISSUER: &str = "https://login.example";
const AUDIENCE: &str = "echo://mcp";
const TENANT: &str = "tenant-7";
/// Longer than any measurement.
const LIFETIME_SECONDS: i64 = 24 * 60 * 60;

/// What the user's policy module looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Module {
    /// The principal: one decision serves many calls.
    Principal,
    /// The arguments: each call is decided by itself.
    Arguments,
}

impl Module {
    const fn text(self) -> &'static str {
        match self {
            Self::Principal => {
                "package cotter.user.bench\n\ndeny contains \"blocked\" if input.principal.subject == \"mallory\"\n"
            }
            Self::Arguments => {
                "package cotter.user.bench\n\ndeny contains \"blocked\" if input.args.text == \"blocked\"\n"
            }
        }
    }
}

/// The tools, each as its exact JSON.
pub(crate) fn definitions() -> Vec<String> {
    let tool = |number: usize| {
        let description = format!("Returns its text, unchanged. Tool {number} of {TOOLS}; all of them do the same.");
        let text = json!({"type": "string", "description": "What to return."});
        let schema = json!({"type": "object", "properties": {"text": text}, "required": ["text"]});
        json!({"name": format!("echo_{number}"), "description": description, "inputSchema": schema}).to_string()
    };
    (0..TOOLS).map(tool).collect()
}

/// Somebody who mints tokens.
pub(crate) struct Issuer(EncodingKey);

impl Issuer {
    /// With a new key.
    pub(crate) fn new() -> Result<Self, BenchError> {
        let pair = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        Ok(Self(EncodingKey::from_ec_der(pair.map_err(BenchError::wrong("make a key"))?.as_ref())))
    }

    /// A token of `alice` with these scopes.
    pub(crate) fn token(&self, scopes: &str) -> Result<String, BenchError> {
        let expires = jiff::Timestamp::now().as_second() + LIFETIME_SECONDS;
        let claims = json!({
            "iss": ISSUER, "sub": "alice", "aud": AUDIENCE, "exp": expires, "tenant": TENANT, "scope": scopes,
        });
        let header = Header { kid: Some(KEY.to_owned()), ..Header::new(Algorithm::ES256) };
        jsonwebtoken::encode(&header, &claims, &self.0).map_err(BenchError::wrong("sign a token"))
    }

    fn jwks(&self) -> Result<Value, BenchError> {
        let mut jwk = Jwk::from_encoding_key(&self.0, Algorithm::ES256).map_err(BenchError::wrong("show a key"))?;
        jwk.common.key_id = Some(KEY.to_owned());
        Ok(json!({"keys": [jwk]}))
    }
}

/// The snapshot, with every control on.
pub(crate) fn snapshot(upstream: SocketAddr, issuer: &Issuer, module: Module) -> Result<Value, BenchError> {
    let never_reached = json!({"tokens": 1_000_000, "perMs": 1000, "burst": 1_000_000});
    let (mut tools, mut pinned) = (Map::new(), Map::new());
    for text in definitions() {
        let definition: Value = serde_json::from_str(&text).map_err(BenchError::wrong("read a definition"))?;
        let name = definition.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let print = fingerprint(&definition, Scheme::ToolV1, &Ignore::NONE);
        let print = print.map_err(BenchError::wrong("take a fingerprint"))?;
        tools.insert(name.clone(), json!({"scope": SCOPE, "effect": "Read", "rate": never_reached}));
        pinned.insert(name, json!({"fingerprint": print, "definition": definition}));
    }
    Ok(json!({
        "version": cotter_core::snapshot::VERSION,
        "server": {"namespace": "bench", "name": "echo"},
        "generation": 1,
        "upstream": {"http": {"url": format!("http://{upstream}/mcp")}},
        "protocol": {"revisions": [REVISION, "2025-11-25", "2026-07-28"]},
        "access": {
            "audience": AUDIENCE, "hosts": ["echo.bench.svc"], "origins": ["https://app.example"],
            "issuers": [{
                "name": "corp", "issuer": ISSUER, "jwks": issuer.jwks()?,
                "claims": {"tenant": "tenant", "scopes": "scope", "groups": "groups"},
            }],
            "tenants": [TENANT], "insufficientScope": "Hide", "advertisedScopes": [],
        },
        "tools": tools,
        "pinning": "Quarantine",
        "pin": {"name": "echo", "scheme": "cotter.tool/v1", "enforcement": "Quarantine", "onDrift": {}, "tools": pinned},
        "grants": [],
        "policies": {"bench": module.text()},
        "limits": {
            "requestBytes": 1 << 20, "resultBytes": 1 << 20, "timeoutMs": 30_000, "concurrent": 4096, "sessions": 4096,
            "ratePerPrincipal": never_reached,
        },
        "verify": {"intervalMs": 60_000, "graceMs": 300_000},
        "stale": {"afterMs": 300_000, "action": "Report"},
    }))
}
