//! A permitted call is charged to a delegation's budget: the last thing that can refuse it, and nothing that a list could show.

use std::{sync::Arc, time::Duration};

use cotter_core::reason::DenyReason;

use crate::{
    authorize::Permit,
    contact::Contact,
    exchange::Exchange,
    ledger::{Exhausted, UsedUp},
    respond::{Refusal, With},
};

/// Takes the first of the delegations that permit the call and have something left, and charges it and those above it. Nothing where
/// the caller does not act under delegations.
///
/// # Errors
/// `BudgetExhausted` where none has anything left; what comes back soonest says how long to wait.
pub fn charge(exchange: &Exchange, permit: &Permit) -> Result<Option<Arc<str>>, Refusal> {
    let (delegations, budgets) = (permit.delegations(), &exchange.enforced.budgets);
    if budgets.is_empty() {
        return Ok(delegations.first().cloned());
    }
    let silence = exchange.shared.contact.as_ref().map_or(Duration::ZERO, Contact::silence);
    let mut soonest: Option<Exhausted> = None;
    for delegation in delegations {
        match exchange.shared.ledger.charge(budgets, delegation, silence) {
            Ok(()) => return Ok(Some(Arc::clone(delegation))),
            Err(why) => soonest = soonest.into_iter().chain([why]).min(),
        }
    }
    soonest.map_or(Ok(None), |why| Err(refusal(&why)))
}

fn refusal(why: &Exhausted) -> Refusal {
    let whose = &why.whose;
    let (detail, with) = match why.what {
        UsedUp::Calls(calls) => (format!("the {calls} calls of {whose} are used up"), With::Nothing),
        UsedUp::Minute(wait) => {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            (format!("the calls per minute of {whose} are used up"), With::RetryAfter(seconds))
        }
        UsedUp::Unknown => {
            (format!("the operator has not said what was charged to {whose} elsewhere"), With::RetryAfter(1))
        }
    };
    Refusal::because(DenyReason::BudgetExhausted, detail).with(with)
}
