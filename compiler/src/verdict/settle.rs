//! What moves by itself. A status that only repeats that all is well, at a later time, or that counts one more call, is
//! not written each time: with thousands of servers the API server would do little else.

use jiff::{SignedDuration, Timestamp};

/// What moves by itself is written again after this long.
const STEP: SignedDuration = SignedDuration::from_mins(5);

/// Leaves the old status as it is where the new one differs only in what moves by itself, until that is [`STEP`] old.
///
/// `carry` takes the moving part over from the second to the first; `time` is when that part was last true.
pub(super) fn settle<S: Clone + PartialEq>(
    new: &mut S,
    old: Option<&S>,
    time: fn(&S) -> Option<Timestamp>,
    carry: fn(&mut S, &S),
) {
    let Some(old) = old else { return };
    let (Some(before), Some(after)) = (time(old), time(new)) else { return };
    let mut same = new.clone();
    carry(&mut same, old);
    if after.duration_since(before) < STEP && same == *old {
        *new = same;
    }
}
