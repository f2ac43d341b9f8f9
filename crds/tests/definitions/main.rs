//! The definitions, judged by what is committed, by this crate's own check, and by a real API server.
//!
//! The cases are data (`cases/`); `offline` and `apiserver` run the same ones. For the latter:
//! `KUBECONFIG=… cargo test -p cotter-crds --test definitions apiserver -- --ignored`

#[cfg(test)]
mod apiserver;
#[cfg(test)]
mod case;
#[cfg(test)]
mod coverage;
#[cfg(test)]
mod generated;
#[cfg(test)]
mod manifest;
#[cfg(test)]
mod maxima;
#[cfg(test)]
mod offline;
#[cfg(test)]
mod probe;
#[cfg(test)]
mod site;
