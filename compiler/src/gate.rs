//! The policy modules of a world, checked in a process of their own before [`crate::compile`] lets a parser see them.
//!
//! A shell calls this before it compiles; `compile` itself starts nothing. What does not pass is taken out of the world and stands there
//! as malformed, so that the condition says why and the previous revision stays in force.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use cotter_core::snapshot::Digest;
use cotter_policies::{
    check::{self, Finding, Findings, LeftOut},
    guard::{Guard, GuardError},
};

use crate::{
    modules,
    world::{Unresolved, World},
};

/// Verdicts that are remembered: policies change seldom, and a pass comes with every report.
const REMEMBERED: usize = 1024;

/// Where policy modules are checked before they are used.
#[derive(Debug)]
pub struct Gate {
    guard: Guard,
    known: Mutex<VecDeque<(Digest, Option<Findings>)>>,
}

impl Gate {
    /// A gate that checks with this guard.
    #[must_use]
    pub fn new(guard: Guard) -> Self {
        Self { guard, known: Mutex::default() }
    }

    /// Checks the modules of the world's server. Takes as long as the check; call it where that may be.
    pub fn pass(&self, world: &mut World) {
        let (mut oversized, mut left_out, mut modules) = (Vec::new(), LeftOut::default(), BTreeMap::new());
        for (name, text) in modules::texts(world) {
            let found = check::oversized([(name.as_str(), text)]);
            if found.is_empty() {
                modules.insert(name, text.to_owned());
            } else {
                left_out.add(text);
                oversized.extend(found);
            }
        }
        if modules.is_empty() && oversized.is_empty() {
            return;
        }
        match self.verdict(&modules, left_out) {
            Ok(found) => {
                let mut findings: Vec<Finding> = found.into_iter().flat_map(|found| found.0).chain(oversized).collect();
                findings.sort();
                modules::refuse(world, &Findings(findings));
            }
            Err(error) => {
                let all = world.cluster_policies.values_mut().chain(world.policies.values_mut());
                for policy in all.filter(|policy| policy.is_ok()) {
                    *policy = Err(Unresolved::Unreachable(error.to_string()));
                }
            }
        }
    }

    /// What is wrong with modules, where others are too large to be looked at.
    fn verdict(&self, modules: &BTreeMap<String, String>, left_out: LeftOut) -> Result<Option<Findings>, GuardError> {
        let mut text = format!("{left_out:?}").into_bytes();
        for (name, module) in modules {
            text.extend_from_slice(Digest::of(name.as_bytes()).as_bytes());
            text.extend_from_slice(Digest::of(module.as_bytes()).as_bytes());
        }
        let digest = Digest::of(&text);
        if let Some((_, verdict)) = self.known().iter().find(|(known, _)| *known == digest) {
            return Ok(verdict.clone());
        }
        let findings = self.guard.review_beside(modules, left_out)?.findings;
        let verdict = (!findings.is_empty()).then_some(Findings(findings));
        let mut known = self.known();
        if known.len() >= REMEMBERED {
            known.pop_front();
        }
        known.push_back((digest, verdict.clone()));
        Ok(verdict)
    }

    fn known(&self) -> MutexGuard<'_, VecDeque<(Digest, Option<Findings>)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
