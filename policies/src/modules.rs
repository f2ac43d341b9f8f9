//! How the modules of the user join the library: one generated Rego file that names each of their rules, so that the graph of rules is
//! known before anything runs.

use std::{collections::BTreeSet, fmt::Write as _};

use regorus::unstable::Module;

use crate::{
    library,
    syntax::{head, names},
};

/// The sets that a module contributes to.
pub(crate) const DENY: &str = "deny";
/// See [`DENY`].
pub(crate) const REQUIRE_APPROVAL: &str = "require_approval";

const HEAD: &str = "\
# Written from the modules of the user. They are asked about one tool at a time, in a list too, and can only add to these sets.
package cotter.modules

denied(tool) := refused if input.tool == tool

denied(tool) := found if {
\tnot input.tool
\tfound := refused with input.tool as tool
}

approvals(tool) := wanted if input.tool == tool

approvals(tool) := found if {
\tnot input.tool
\tfound := wanted with input.tool as tool
}

none_refuses(tool) if count(denied(tool)) == 0

none_asks(tool) if count(approvals(tool)) == 0
";

/// The file that stands in for [`library::NO_MODULES`].
pub(crate) fn glue(modules: &[Module]) -> String {
    if modules.is_empty() {
        return library::FILES
            .iter()
            .find(|(name, _)| *name == library::NO_MODULES)
            .map_or_else(String::new, |(_, text)| (*text).to_owned());
    }
    let mut text = HEAD.to_owned();
    for (set, source, member) in
        [("refused", DENY, "{\"code\": \"PolicyDenied\", \"detail\": reason}"), ("wanted", REQUIRE_APPROVAL, "reason")]
    {
        let _infallible = write!(text, "\n{set} contains {{}} if false\n");
        for package in packages(modules, source) {
            let _infallible = write!(text, "\n{set} contains {member} if some reason in data.{package}.{source}\n");
        }
    }
    text
}

fn packages(modules: &[Module], rule: &str) -> BTreeSet<String> {
    let has = |module: &&Module| module.policy.iter().any(|found| names(head(found).0) == [rule]);
    modules.iter().filter(has).map(|module| names(&module.package.refr).join(".")).collect()
}
