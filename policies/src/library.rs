//! The Rego library, as it ships: read by people under `rego/`, built into the program.

use std::sync::OnceLock;

use regorus::unstable::Module;

use crate::syntax;

/// The one entry point.
pub const DECISION: &str = "data.cotter.authz.decision";
/// The same rules over every tool of `input.tools`, by name.
pub const DECISIONS: &str = "data.cotter.authz.decisions";
/// The module that stands for "no modules of the user"; replaced where there are some.
pub const NO_MODULES: &str = "cotter/modules.rego";

/// Every file of the library: its name and its text.
pub const FILES: [(&str, &str); 8] = [
    ("cotter/authz.rego", include_str!("../rego/cotter/authz.rego")),
    ("cotter/delegation.rego", include_str!("../rego/cotter/delegation.rego")),
    ("cotter/effects.rego", include_str!("../rego/cotter/effects.rego")),
    (NO_MODULES, include_str!("../rego/cotter/modules.rego")),
    ("cotter/obligations.rego", include_str!("../rego/cotter/obligations.rego")),
    ("cotter/pins.rego", include_str!("../rego/cotter/pins.rego")),
    ("cotter/scopes.rego", include_str!("../rego/cotter/scopes.rego")),
    ("cotter/tenants.rego", include_str!("../rego/cotter/tenants.rego")),
];

/// The input that every case starts from.
pub const BASE: &str = include_str!("../cases/base.yaml");

/// Every file of cases: its name and its text.
pub const CASES: [(&str, &str); 12] = [
    ("arguments.yaml", include_str!("../cases/arguments.yaml")),
    ("delegation.yaml", include_str!("../cases/delegation.yaml")),
    ("digest.yaml", include_str!("../cases/digest.yaml")),
    ("effects.yaml", include_str!("../cases/effects.yaml")),
    ("hints.yaml", include_str!("../cases/hints.yaml")),
    ("history.yaml", include_str!("../cases/history.yaml")),
    ("malformed.yaml", include_str!("../cases/malformed.yaml")),
    ("modules.yaml", include_str!("../cases/modules.yaml")),
    ("obligations.yaml", include_str!("../cases/obligations.yaml")),
    ("pins.yaml", include_str!("../cases/pins.yaml")),
    ("scopes.yaml", include_str!("../cases/scopes.yaml")),
    ("tenants.yaml", include_str!("../cases/tenants.yaml")),
];

/// The library, parsed. It is part of the program, so it parses: a test says so, and an empty answer remembers nothing.
pub(crate) fn modules() -> &'static [Module] {
    static MODULES: OnceLock<Vec<Module>> = OnceLock::new();
    MODULES.get_or_init(|| FILES.iter().filter_map(|(name, text)| syntax::parse(name, text).ok()).collect())
}
