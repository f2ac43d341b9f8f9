//! How the operator is started: flags, each also an environment variable.

use std::{net::SocketAddr, time::Duration};

use clap::{Parser, ValueEnum};

/// The operator of Cotter: watches McpServers, ToolPins and AgentDelegations, runs a sidecar in front of each server,
/// streams snapshots to the sidecars, and writes what they report into status.
#[derive(Debug, Clone, Parser)]
#[command(name = "cotter-operator", version)]
pub struct Settings {
    /// Namespace that the operator runs in: its certificates are kept there.
    #[arg(long, env = "POD_NAMESPACE", default_value = "cotter-system")]
    pub namespace: String,

    /// Name of the Service in front of the snapshot stream.
    #[arg(long, env = "COTTER_SERVICE", default_value = "cotter-operator")]
    pub service: String,

    /// URL of the snapshot stream as sidecars reach it. By default the Service's, on port 8443.
    #[arg(long, env = "COTTER_STREAM_URL")]
    pub stream_url: Option<String>,

    /// The image of the sidecars, with cotter-proxy and cotter-shim.
    #[arg(long, env = "COTTER_SIDECAR_IMAGE")]
    pub sidecar_image: String,

    /// The cluster's DNS domain.
    #[arg(long, env = "COTTER_CLUSTER_DOMAIN", default_value = "cluster.local")]
    pub cluster_domain: String,

    /// The longest time that a delegation may last, in days.
    #[arg(long, env = "COTTER_MAX_DELEGATION_DAYS", default_value_t = 90, value_parser = clap::value_parser!(u16).range(1..=3650))]
    pub max_delegation_days: u16,

    /// Where the snapshot stream listens (HTTPS).
    #[arg(long, env = "COTTER_STREAM_LISTEN", default_value = "0.0.0.0:8443")]
    pub stream_listen: SocketAddr,

    /// Where /healthz, /readyz and /metrics listen (HTTP).
    #[arg(long, env = "COTTER_HEALTH_LISTEN", default_value = "0.0.0.0:8081")]
    pub health_listen: SocketAddr,

    /// How many servers are worked on at the same time.
    #[arg(long, env = "COTTER_WORKERS", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub workers: u16,

    /// The program that checks policy modules, in a process of its own. By default this one.
    #[arg(long, env = "COTTER_POLICY_CHECKER", hide = true)]
    pub policy_checker: Option<std::path::PathBuf>,

    /// How log lines are written.
    #[arg(long, env = "COTTER_LOG_FORMAT", value_enum, default_value_t = LogFormat::Json)]
    pub log_format: LogFormat,

    /// What is logged, as tracing directives.
    #[arg(long, env = "COTTER_LOG", default_value = "info,kube_client=warn,kube_runtime=error")]
    pub log: String,
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

impl Settings {
    /// The URL of the stream.
    #[must_use]
    pub fn stream_url(&self) -> String {
        self.stream_url.clone().unwrap_or_else(|| format!("https://{}.{}.svc:8443", self.service, self.namespace))
    }

    /// The names in the stream's certificate: those of the Service, and the host of the URL.
    #[must_use]
    pub fn stream_names(&self) -> Vec<String> {
        let mut names = crate::tls::service_names(&self.service, &self.namespace, &self.cluster_domain);
        let uri: Option<axum::http::Uri> = self.stream_url().parse().ok();
        let host = uri.as_ref().and_then(|uri| uri.host()).map(|host| host.trim_matches(['[', ']']).to_owned());
        names.extend(host.filter(|host| !names.contains(host)));
        names
    }

    /// The longest delegation.
    #[must_use]
    pub fn longest_delegation(&self) -> Duration {
        Duration::from_secs(u64::from(self.max_delegation_days) * 24 * 3600)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificate_names_what_sidecars_ask_for() {
        let settings = Settings::parse_from(["cotter-operator", "--sidecar-image", "x", "--namespace", "c"]);
        assert_eq!(settings.stream_url(), "https://cotter-operator.c.svc:8443");
        assert!(settings.stream_names().contains(&"cotter-operator.c.svc".to_owned()));
        let args = ["cotter-operator", "--sidecar-image", "x", "--stream-url", "https://127.0.0.1:7443"];
        assert!(Settings::parse_from(args).stream_names().contains(&"127.0.0.1".to_owned()));
    }

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Settings::command().debug_assert();
        assert!(Settings::try_parse_from(["cotter-operator"]).is_err(), "without an image no sidecar can run");
    }
}
