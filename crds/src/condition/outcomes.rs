//! One constructor for each outcome. A reason is written here and nowhere else.

use super::{Outcome, Status, types};

macro_rules! outcomes {
    ($($(#[$doc:meta])* $name:ident = $type_:ident $status:ident $reason:literal;)*) => {
        $($(#[$doc])*
        #[must_use]
        pub fn $name(message: impl AsRef<str>) -> Outcome {
            Outcome::new(types::$type_, Status::$status, $reason, message.as_ref())
        })*

        /// Every outcome as type, status and reason: what documentation lists.
        pub const OUTCOMES: &[(&str, Status, &str)] = &[$((types::$type_, Status::$status, $reason)),*];
    };
}

outcomes! {
    /// The spec can be used.
    accepted = ACCEPTED True "Accepted";
    /// The spec contradicts itself or has a value that cannot be used.
    invalid = ACCEPTED False "Invalid";
    /// The spec asks for something that this version does not do.
    unsupported = ACCEPTED False "Unsupported";
    /// Another object claims the same.
    conflict = ACCEPTED False "Conflict";
    /// A pinned definition does not hash to its fingerprint.
    definition_mismatch = ACCEPTED False "DefinitionMismatch";
    /// A delegation asks for more than its parent has; it gets what both permit.
    wider_than_parent = ACCEPTED True "WiderThanParent";
    /// The period of a delegation is longer than the operator permits.
    period_too_long = ACCEPTED False "PeriodTooLong";

    /// Everything that the spec refers to is there.
    resolved_refs = RESOLVED_REFS True "ResolvedRefs";
    /// The McpServer that is named does not exist.
    server_not_found = RESOLVED_REFS False "ServerNotFound";
    /// The parent that is named does not exist.
    parent_not_found = RESOLVED_REFS False "ParentNotFound";
    /// A Secret or ConfigMap that is named does not exist, or lacks the key.
    ref_not_found = RESOLVED_REFS False "RefNotFound";

    /// Every issuer has usable keys.
    keys_ready = KEYS_READY True "KeysReady";
    /// Neither an issuer nor service accounts: nobody can have a token.
    no_issuer = KEYS_READY False "NoIssuer";
    /// The Secret or ConfigMap that holds keys does not exist, or lacks the key.
    keys_not_found = KEYS_READY False "KeysNotFound";
    /// The key set is malformed or has no key that can be used.
    no_usable_key = KEYS_READY False "NoUsableKey";
    /// The key set could not be fetched and none is known from before.
    keys_unreachable = KEYS_READY Unknown "KeysUnreachable";
    /// The key set has not been fetched yet.
    keys_pending = KEYS_READY Unknown "Pending";

    /// Every Rego module is in force.
    policies_ready = POLICIES_READY True "PoliciesReady";
    /// A ConfigMap that is named does not exist or holds no module.
    policy_not_found = POLICIES_READY False "PolicyNotFound";
    /// A module was refused; the revision before stays in force.
    policy_invalid = POLICIES_READY False "PolicyInvalid";

    /// A sidecar serves.
    available = AVAILABLE True "Available";
    /// No sidecar is connected.
    no_sidecar = AVAILABLE False "NoSidecar";
    /// Sidecars are connected, and none reaches the server.
    upstream_unreachable = AVAILABLE False "UpstreamUnreachable";
    /// The server answers, and not with MCP that can be relied on.
    upstream_malformed = AVAILABLE False "UpstreamMalformed";
    /// Sidecars serve, and the Service leads to none of their pods.
    no_ready_pod = AVAILABLE False "NoReadyPod";
    /// The spec says that no pod runs.
    scaled_to_zero = AVAILABLE False "ScaledToZero";

    /// Every live sidecar acknowledged the snapshot of this generation.
    programmed = PROGRAMMED True "Programmed";
    /// Some live sidecar has not acknowledged it yet.
    programming = PROGRAMMED False "Pending";
    /// Some sidecar refused the snapshot.
    snapshot_refused = PROGRAMMED False "SnapshotRefused";
    /// No sidecar is live, so nothing is enforced.
    not_programmed = PROGRAMMED False "NoSidecar";

    /// The server's list was read.
    observed = OBSERVED True "Observed";
    /// No sidecar has read it yet.
    not_yet_observed = OBSERVED False "NotObserved";
    /// It could be read before and cannot now.
    lost = OBSERVED False "Unreachable";

    /// What is offered is what was approved.
    verified = IN_SYNC True "Verified";
    /// Only what neither a model nor a host acts on differs.
    cosmetic_only = IN_SYNC True "CosmeticOnly";
    /// The worst difference: the tool can do more than was approved, or it cannot be told.
    authority_expanding = IN_SYNC False "AuthorityExpanding";
    /// The worst difference: tools that cannot be told apart or hashed.
    ambiguous = IN_SYNC False "Ambiguous";
    /// The worst difference: a tool that is not pinned.
    added = IN_SYNC False "Added";
    /// The worst difference: prose.
    text = IN_SYNC False "Text";
    /// The worst difference: the tool takes or gives more.
    additive = IN_SYNC False "Additive";
    /// The worst difference: the tool takes or gives less.
    narrowing = IN_SYNC False "Narrowing";
    /// The worst difference: a pinned tool is not offered.
    removed = IN_SYNC False "Removed";
    /// What is pinned beside tools (instructions, protocol, name and version, image) differs.
    surface_changed = IN_SYNC False "SurfaceChanged";
    /// Tools are offered and none is approved.
    not_pinned = IN_SYNC False "NotPinned";
    /// Several pins name the server, so that nothing is approved until one is left.
    pin_conflict = IN_SYNC False "Conflict";
    /// Could not check: nothing was observed yet.
    not_observed = IN_SYNC Unknown "NotObserved";
    /// Could not check: the server cannot be read.
    unreachable = IN_SYNC Unknown "Unreachable";

    /// The delegation permits calls now.
    active = ACTIVE True "Active";
    /// Its time is over.
    expired = ACTIVE False "Expired";
    /// Its time has not come.
    not_yet_valid = ACTIVE False "NotYetValid";
    /// It is switched off.
    suspended = ACTIVE False "Suspended";
    /// A parent is not active.
    parent_inactive = ACTIVE False "ParentInactive";
    /// The chain above it is longer than a parent permits, or goes in a circle.
    depth_exceeded = ACTIVE False "DepthExceeded";
    /// All calls of its budget were made.
    budget_exhausted = ACTIVE False "BudgetExhausted";
    /// It was not accepted.
    not_accepted = ACTIVE False "NotAccepted";

    /// Every live sidecar concerned enforces this generation.
    enforced = ENFORCED True "Enforced";
    /// Some sidecar does not enforce it yet.
    enforcing = ENFORCED False "Pending";
    /// No sidecar is live.
    not_enforced = ENFORCED False "NoSidecar";

    /// All of it.
    ready = READY True "Ready";
    /// A Deployment, Service or another child could not be made what it should be.
    apply_failed = READY False "ApplyFailed";
}
