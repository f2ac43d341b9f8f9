//! The support desk's MCP server: a policy look-up, a case tag and one resource, over stdio or Streamable HTTP.
//!
//! It is an ordinary server on the public `rmcp` crate and knows nothing of Cotter. `--rug-pull` starts the release in which
//! `case_tag` has quietly gained a parameter.

mod desk;

use std::net::SocketAddr;

use anyhow::Context as _;
use clap::Parser;
use rmcp::{
    ServiceExt as _,
    transport::{
        StreamableHttpServerConfig, StreamableHttpService, stdio,
        streamable_http_server::session::local::LocalSessionManager,
    },
};

use crate::desk::Desk;

/// The MCP server of the support desk.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// Speak on standard input and output.
    #[arg(long, conflicts_with = "listen", required_unless_present = "listen")]
    stdio: bool,
    /// Speak Streamable HTTP at /mcp on this address.
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<SocketAddr>,
    /// Be the release in which `case_tag` takes `notify_customer` too.
    #[arg(long, env = "SUPPORT_DESK_RUG_PULL")]
    rug_pull: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let desk = Desk::new(options.rug_pull);
    match options.listen {
        Some(address) => serve_http(desk, address).await,
        None => {
            let running = desk.serve(stdio()).await.context("failed to start on stdio")?;
            running.waiting().await.context("failed while serving on stdio")?;
            Ok(())
        }
    }
}

async fn serve_http(desk: Desk, address: SocketAddr) -> anyhow::Result<()> {
    let sessions = LocalSessionManager::default().into();
    let config = StreamableHttpServerConfig::default();
    let service = StreamableHttpService::new(move || Ok(desk.clone()), sessions, config);
    let router = axum::Router::new().nest_service("/mcp", service);
    let listener =
        tokio::net::TcpListener::bind(address).await.with_context(|| format!("failed to listen on {address}"))?;
    eprintln!("support-desk listens on http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, router).await.context("failed while serving HTTP")
}
