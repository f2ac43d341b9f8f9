//! What status says of a delegation's budget.

use cotter_crds::delegation as crd;

use crate::{
    chain::Chain,
    delegation::{Bounds, Delegation},
    world::{Charged, Ledger},
};

/// The calls of the delegation's own budget, where they are used up.
pub(super) fn exhausted(own: &Delegation, charged: &Ledger) -> Option<u64> {
    let calls = own.budget.calls?;
    let used = charged.get(&own.name).map_or(0, |charged| charged.calls);
    (used >= calls).then_some(calls)
}

/// The nearest parent whose calls are used up, and how many they were.
pub(super) fn exhausted_above<'a>(chain: &Chain<'a>, charged: &Ledger) -> Option<(&'a str, u64)> {
    chain.above().iter().find_map(|parent| Some((parent.name.as_str(), exhausted(parent, charged)?)))
}

/// Bounds as the resource writes them.
pub(super) fn bounds(bounds: Bounds) -> Option<crd::Budget> {
    let Bounds { calls, per_minute } = bounds;
    (!bounds.are_none()).then(|| crd::Budget { calls: calls.map(number), per_minute: per_minute.map(number) })
}

/// What was charged, of what. Nothing where there is no budget and never was one.
pub(super) fn used(spec: &crd::AgentDelegationSpec, charged: Option<&Charged>) -> Option<crd::BudgetUse> {
    if spec.budget.is_none() && charged.is_none_or(|charged| charged.calls == 0) {
        return None;
    }
    let none = Charged::default();
    let charged = charged.unwrap_or(&none);
    let calls = charged.calls;
    let used = match spec.budget.as_ref().map(|budget| (budget.calls, budget.per_minute)) {
        Some((Some(most), _)) => format!("{calls}/{most}"),
        Some((None, Some(most))) => format!("{most}/min"),
        _ => calls.to_string(),
    };
    Some(crd::BudgetUse { charged: number(calls), used, runs: runs(charged) })
}

/// The runs with the most calls, as many as a status may hold. One that is left out is counted once more after a restart of
/// the operator: to the strict side.
fn runs(charged: &Charged) -> std::collections::BTreeMap<String, i64> {
    let mut runs: Vec<(&String, u64)> = charged.runs.iter().map(|(run, calls)| (run, *calls)).collect();
    runs.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
    runs.into_iter().take(crd::MAX_RUNS).map(|(run, calls)| (run.clone(), number(calls))).collect()
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
