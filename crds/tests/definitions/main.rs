//! The definitions, judged by what is committed, by this crate's own check, and by a real API server.
//!
//! The cases are data (`cases/`); `offline` and `apiserver` run the same ones. For the latter:
//! `KUBECONFIG=… cargo test -p cotter-crds --test definitions apiserver -- --ignored`

mod apiserver;
mod case;
mod coverage;
mod generated;
mod manifest;
mod maxima;
mod offline;
mod probe;
mod site;
