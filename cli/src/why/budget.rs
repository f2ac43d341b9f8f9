//! What is left of the budgets under which a call would be made.

use cotter_core::{budget::Budget, grant::Grant, reason::DenyReason, snapshot::Snapshot};
use cotter_policies::Verdict;

use super::{Charged, Told};

/// The budgets of every delegation that permits the call, with those above it. Nothing where none does, or where none has any.
pub(super) fn layer(snapshot: &Snapshot, verdict: &Verdict, charged: &Charged) -> Option<Told> {
    of(&snapshot.grants, verdict, charged)
}

fn of(grants: &[Grant], verdict: &Verdict, charged: &Charged) -> Option<Told> {
    let named = |grant: &&Grant| verdict.delegations.iter().any(|name| **name == *grant.name);
    let permitting: Vec<&Grant> = grants.iter().filter(named).collect();
    if permitting.iter().all(|grant| grant.budgets.is_empty()) {
        return None;
    }
    let is_used_up = |budget: &Budget| budget.calls.is_some_and(|calls| used(budget, charged) >= calls);
    let refuses = permitting.iter().all(|grant| grant.budgets.iter().any(is_used_up));
    let text: Vec<String> = permitting.iter().map(|grant| chain(grant, charged)).collect();
    let mut changes: Vec<String> =
        permitting.iter().flat_map(|grant| &grant.budgets).filter(|budget| is_used_up(budget)).map(raise).collect();
    changes.sort();
    changes.dedup();
    let refuses = refuses.then_some(DenyReason::BudgetExhausted);
    Some(Told { layer: "budget".to_owned(), refuses, text: text.join("; "), changes })
}

fn used(budget: &Budget, charged: &Charged) -> u64 {
    charged.get(&budget.name).copied().unwrap_or_default()
}

/// One delegation with what bounds it.
fn chain(grant: &Grant, charged: &Charged) -> String {
    if grant.budgets.is_empty() {
        return format!("{} has no budget", grant.name);
    }
    let part = |budget: &Budget| {
        let whose = if budget.name == grant.name { String::new() } else { format!("{} above it: ", budget.name) };
        let used = used(budget, charged);
        let calls =
            budget.calls.map(|calls| format!("{used} of {calls} calls used, {} left", calls.saturating_sub(used)));
        let minute = budget.per_minute.map(|calls| format!("{calls} calls a minute"));
        format!("{whose}{}", calls.into_iter().chain(minute).collect::<Vec<_>>().join(" and "))
    };
    let parts: Vec<String> = grant.budgets.iter().map(part).collect();
    format!("{}: {}", grant.name, parts.join(", "))
}

fn raise(budget: &Budget) -> String {
    let (name, calls) = (&budget.name, budget.calls.unwrap_or_default());
    format!("spec.budget.calls of the AgentDelegation {name} has to be more than {calls}: they are used up")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cotter_core::decision::Decision;
    use serde_json::{Value, json};

    use super::*;

    fn grant(name: &str, budgets: Value) -> Value {
        json!({"name": name, "delegate": {"claims": {"tenant": "t"}}, "scopes": ["s"], "effects": ["Read"], "tools": [["*"]],
               "tenants": ["t"], "expiresAt": "2030-01-01T00:00:00Z", "budgets": budgets})
    }

    /// What the layer says of these grants, all of which permit the call, at these charges.
    fn told(grants: &[Value], charged: &[(&str, u64)]) -> Option<(Option<DenyReason>, String, Vec<String>)> {
        let names = grants.iter().map(|grant| Arc::from(grant["name"].as_str().unwrap())).collect();
        let decision = Decision { allow: true, reasons: Vec::new(), ..Decision::deny(DenyReason::Internal, None) };
        let verdict = Verdict { decision: Arc::new(decision), delegations: names, visible: true };
        let grants: Vec<Grant> = grants.iter().map(|grant| serde_json::from_value(grant.clone()).unwrap()).collect();
        let charged = charged.iter().map(|(name, calls)| ((*name).to_owned(), *calls)).collect();
        of(&grants, &verdict, &charged).map(|told| (told.refuses, told.text, told.changes))
    }

    #[test]
    fn a_call_is_refused_where_every_delegation_that_permits_it_is_used_up() {
        let one = |name: &str| json!([{"name": name, "calls": 1}]);
        let above = json!([{"name": "own", "calls": 9, "perMinute": 4}, {"name": "parent", "calls": 1}]);
        let (refuses, text, changes) = told(&[grant("a", one("a"))], &[("a", 1)]).unwrap();
        assert_eq!((refuses, text.as_str()), (Some(DenyReason::BudgetExhausted), "a: 1 of 1 calls used, 0 left"));
        assert_eq!(changes, ["spec.budget.calls of the AgentDelegation a has to be more than 1: they are used up"]);
        assert_eq!(told(&[grant("a", one("a"))], &[]).unwrap().0, None);
        let both = [grant("a", one("a")), grant("b", one("b"))];
        assert_eq!(told(&both, &[("a", 1)]).unwrap().0, None, "the other one permits it");
        assert_eq!(told(&both, &[("a", 1), ("b", 2)]).unwrap().0, Some(DenyReason::BudgetExhausted));
        assert_eq!(told(&[grant("a", one("a")), grant("free", json!([]))], &[("a", 1)]).unwrap().0, None);
        let (refuses, text, _) = told(&[grant("own", above.clone())], &[("own", 3), ("parent", 1)]).unwrap();
        assert_eq!(refuses, Some(DenyReason::BudgetExhausted), "{text}");
        let wanted = "own: 3 of 9 calls used, 6 left and 4 calls a minute, parent above it: 1 of 1 calls used, 0 left";
        assert_eq!(text, wanted);
        assert_eq!(told(&[grant("own", above)], &[("own", 3)]).unwrap().0, None);
    }

    #[test]
    fn without_a_budget_nothing_is_said() {
        assert!(told(&[], &[]).is_none() && told(&[grant("free", json!([]))], &[]).is_none());
        let minute = told(&[grant("m", json!([{"name": "m", "perMinute": 2}]))], &[("m", 7)]).unwrap();
        assert_eq!((minute.0, minute.1.as_str()), (None, "m: 2 calls a minute"), "a minute is no state");
    }
}
