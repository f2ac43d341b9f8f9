//! What a person at a terminal is told when a server starts.

use cotter_core::{grant::Grant, snapshot::Pin};

use crate::{plan::Notice, verdict::count};

pub(crate) fn pin(pin: &Pin) -> Notice {
    Notice { about: "pin", text: format!("{}: {} approved", pin.name, count(pin.tools.len(), "tool")) }
}

pub(crate) fn grant(grant: &Grant) -> Notice {
    let scopes = joined(grant.scopes.iter());
    let effects = joined(grant.effects.iter());
    let tenants = joined(grant.tenants.iter());
    let until = grant.expires_at.strftime("%Y-%m-%d");
    let state = grant.inactive.map(|why| format!(" (gives nothing: {why:?})")).unwrap_or_default();
    Notice {
        about: "delegation",
        text: format!("{}: {scopes}, {effects}, {tenants}, until {until}{state}", grant.name),
    }
}

fn joined<T: ToString>(items: impl Iterator<Item = T>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(" ")
}
