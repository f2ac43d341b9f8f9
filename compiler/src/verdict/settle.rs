//! Times that move by themselves. A status that only repeats that all is well, at a later time, is not written each time:
//! with thousands of servers the API server would do little else.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// A time that nothing else moved with is written again after this long.
const STEP: SignedDuration = SignedDuration::from_mins(5);

/// Puts the old time back into a new status that differs from the old one by this time alone, until it is [`STEP`] old.
pub(super) fn settle<S: PartialEq>(new: &mut S, old: Option<&S>, time: fn(&mut S) -> Option<&mut Option<Time>>)
where
    S: Clone,
{
    let Some(old) = old else { return };
    let mut kept = old.clone();
    let before = time(&mut kept).and_then(|time| time.clone());
    let mut same = new.clone();
    let Some(slot) = time(&mut same) else { return };
    let after = slot.clone();
    let (Some(before), Some(after)) = (before, after) else { return };
    *slot = Some(before.clone());
    let young = after.0.duration_since(before.0) < STEP;
    if young && same == *old {
        *new = same;
    }
}
