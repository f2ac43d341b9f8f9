//! Bounds on what is compared: a server chooses the definition, and must not choose what looking at it costs.

use serde_json::Value;

use super::{Change, Class, Why};

/// Heaviest definition that is compared, where a node weighs 8 and a string its bytes. All definitions of a pin together
/// stay below 200 KiB, so that no approved one comes near it.
pub(super) const MAX_WEIGHT: usize = 256 * 1024;

/// Longest way to a member, in bytes of names. It is written out for every change.
pub(super) const MAX_PATH: usize = 4096;

/// Most changes that are told apart. The largest difference between two measured releases of one tool has 40.
pub(super) const MAX_CHANGES: usize = 1000;

/// Whether a definition is small enough to be compared member by member.
pub(super) fn is_comparable(value: &Value) -> bool {
    weigh(value, 0, &mut 0)
}

fn weigh(value: &Value, path: usize, weight: &mut usize) -> bool {
    let own = value.as_str().map_or(0, str::len);
    *weight = weight.saturating_add(8).saturating_add(own);
    if *weight > MAX_WEIGHT || path > MAX_PATH {
        return false;
    }
    match value {
        Value::Array(items) => items.iter().all(|item| weigh(item, path + 8, weight)),
        Value::Object(members) => members.iter().all(|(name, member)| {
            *weight = weight.saturating_add(name.len());
            weigh(member, path.saturating_add(name.len()), weight)
        }),
        _ => true,
    }
}

/// Changes under construction, at most [`MAX_CHANGES`].
#[derive(Default)]
pub(super) struct Changes(Vec<Change>);

impl Changes {
    /// Adds one, but not the same twice in a row. Beyond the bound the whole is as bad as can be.
    pub(super) fn add(&mut self, pointer: String, class: Class, why: Why) {
        let change = Change { pointer, class, why };
        if self.0.len() > MAX_CHANGES || self.0.last() == Some(&change) {
            return;
        }
        if self.0.len() == MAX_CHANGES {
            let whole = String::new();
            self.0.push(Change { pointer: whole, class: Class::AuthorityExpanding, why: Why::TooMuch });
        } else {
            self.0.push(change);
        }
    }

    pub(super) fn into_vec(self) -> Vec<Change> {
        self.0
    }
}
