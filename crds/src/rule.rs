//! The CEL rules of the CRDs, each with the message that says what to write instead.
//!
//! A rule is stated once here and used by name in the types. Regular expressions stay within
//! what RE2 and Rust's regex read alike. Bounds that only a CEL rule can explain live in the rule; lengths and
//! counts stay in the schema, because the API server needs them to bound the cost of a rule.

/// A CEL expression over `self` and what to tell the person whose object does not satisfy it.
pub(crate) type Rule = (&'static str, &'static str);

pub(crate) const OBJECT_NAME: Rule = (
    "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 52",
    "the name becomes the name of a Service: write at most 52 lower-case letters, digits and '-', starting with a letter",
);
pub(crate) const DNS_LABEL: Rule = (
    "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
    "write lower-case letters, digits and '-', starting and ending with a letter or digit",
);
pub(crate) const DNS_SUBDOMAIN: Rule = (
    "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",
    "write the name of a Kubernetes object: lower-case letters, digits, '-' and '.'",
);
pub(crate) const DATA_KEY: Rule =
    ("self.matches('^[-._a-zA-Z0-9]+$')", "write the key of a Secret or ConfigMap: letters, digits, '-', '_' and '.'");
pub(crate) const AUDIENCE: Rule = (
    "self.matches('^[A-Za-z][A-Za-z0-9+.-]*:[!-~]+$') && !self.contains('#')",
    "write an absolute URI without a fragment (RFC 8707), such as https://mcp.example.com/mcp or support://mcp",
);
pub(crate) const SCOPE: Rule = (
    "self.matches('^[!-~]+$') && !self.contains('\"') && !self.contains('\\\\')",
    "write one scope token (RFC 6749): visible ASCII without spaces, '\"' and '\\', such as case:write",
);
pub(crate) const TENANT: Rule = (
    "self.matches('^[A-Za-z0-9][A-Za-z0-9._:@/-]*$')",
    "write one tenant: letters, digits and any of . _ : @ / - after the first, such as tenant-7",
);
pub(crate) const TENANT_OR_ANY: Rule = (
    "self == '*' || self.matches('^[A-Za-z0-9][A-Za-z0-9._:@/-]*$')",
    "write one tenant (letters, digits and any of . _ : @ / - after the first), or \"*\" alone for any",
);
pub(crate) const ANY_STANDS_ALONE: Rule = (
    "!self.exists(t, t == '*') || size(self) == 1",
    "\"*\" already admits every tenant: write [\"*\"] alone, or only names",
);
pub(crate) const CLAIM: Rule = (
    "self.matches('^[!-~]+$')",
    "write the name of a top-level claim: visible ASCII without spaces, such as tenant_id",
);
pub(crate) const TOOL_NAME: Rule = (
    "self.matches('^[!-~]+$') && !self.contains('*')",
    "write the name as the server offers it: visible ASCII without spaces and '*'",
);
pub(crate) const TOOL_GLOB: Rule = (
    "self.matches('^[!-~]+$') && !self.matches('[?{}\\\\[\\\\]]')",
    "write a tool's name in which '*' stands for any run of characters; it is the only metacharacter, so '?', '[', ']', '{' and '}' are refused",
);
pub(crate) const POINTER: Rule = (
    "self.matches('^(/([^/~]|~[01])*)+$')",
    "write a JSON pointer (RFC 6901), such as /idempotency_key; '~' is written ~0 and '/' inside a name ~1",
);
pub(crate) const URL: Rule = (
    "isURL(self) && self.matches('^https?://[!-~]+$') && self.matches('^https?://[^/?#@]+([/?][^#]*)?$')",
    "write an absolute http:// or https:// URL without user, password and fragment",
);
pub(crate) const URL_WITHOUT_QUERY: Rule = (
    "isURL(self) && self.matches('^https?://[!-~]+$') && self.matches('^https?://[^/?#@]+(/[^?#]*)?$')",
    "write an absolute http:// or https:// URL without user, password, query and fragment",
);
pub(crate) const ENCRYPTED: Rule = (
    "!self.startsWith('http://') || self.matches('^http://[A-Za-z0-9.-]+[.]svc([.]cluster[.]local)?(:[0-9]+)?([/?].*)?$')",
    "write https://: plain http:// is accepted only for a Service of this cluster (a host that ends in .svc)",
);
pub(crate) const ENCRYPTED_OR_LOOPBACK: Rule = (
    "!self.startsWith('http://') || self.matches('^http://(localhost|127[.]0[.]0[.]1|\\\\[::1\\\\]|[A-Za-z0-9.-]+[.]svc([.]cluster[.]local)?)(:[0-9]+)?(/.*)?$')",
    "write https://: plain http:// is accepted only for a Service of this cluster (a host that ends in .svc) and for loopback",
);
pub(crate) const REMOTE_ENCRYPTED: Rule = (
    "self.allowPlaintext || !self.url.startsWith('http://') || self.url.matches('^http://[A-Za-z0-9.-]+[.]svc([.]cluster[.]local)?(:[0-9]+)?([/?].*)?$')",
    "url is plain http://, so whoever is on the path reads and changes every call: write https://, or allowPlaintext: true if that is meant; a Service of this cluster (a host that ends in .svc) needs neither",
);
pub(crate) const TLS_NEEDS_HTTPS: Rule = (
    "!has(self.tls) || !self.url.startsWith('http://')",
    "tls has no effect on an http:// URL: write https://, or leave tls out",
);
pub(crate) const HOST: Rule = (
    "self.matches('^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|\\\\[[0-9a-fA-F:.]+\\\\])(:[0-9]{1,5})?$')",
    "write a host as clients send it, with its port if it is not the default one: mcp.example.com or mcp.example.com:8443",
);
pub(crate) const ORIGIN: Rule = (
    "self.matches('^https?://([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|\\\\[[0-9a-fA-F:.]+\\\\])(:[0-9]{1,5})?$')",
    "write an origin as browsers send it: scheme, host and port if it is not the default one, without a path, such as https://app.example.com",
);
pub(crate) const HTTP_PATH: Rule = (
    "self.matches('^/[!-~]*$') && !self.matches('[?#]')",
    "write an absolute path without query and fragment, such as /mcp",
);
pub(crate) const IMAGE: Rule = (
    "self.matches('^[a-zA-Z0-9][a-zA-Z0-9._:/-]*(@sha256:[0-9a-f]{64})?$')",
    "write an image reference, best with a digest: registry.example.com/team/server@sha256:<64 hex digits>",
);
pub(crate) const EXTENSION: Rule = (
    "self.matches('^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$')",
    "write the identifier of a protocol extension with its prefix, such as io.modelcontextprotocol/tasks",
);
pub(crate) const HEADER: Rule = (
    "self.matches('^[A-Za-z0-9-]+$') && !self.lowerAscii().matches('^(host|connection|content-.*|transfer-encoding|te|trailer|upgrade|accept|origin|cookie|mcp-.*)$')",
    "write the name of one request header of the server's own, such as Authorization or X-Api-Key; headers of HTTP and of the protocol itself are refused",
);
pub(crate) const HEADER_PREFIX: Rule = (
    "self == '' || self.matches('^[ -~]+$')",
    "write printable ASCII, such as \"Bearer \" (with its space), or \"\" for none",
);
pub(crate) const DIGEST: Rule =
    ("self.matches('^sha256:[0-9a-f]{64}$')", "write a digest: sha256: and 64 lower-case hex digits");
pub(crate) const FINGERPRINT: Rule = (
    "self.matches('^[a-z][a-z.-]*/v[0-9]{1,3}:sha256:[0-9a-f]{64}$')",
    "write a whole fingerprint as `cotter fingerprint` prints it: its scheme, :sha256: and 64 lower-case hex digits",
);
pub(crate) const RATE: Rule = (
    "self.matches('^([1-9][0-9]{0,5}|1000000)/[smh]$')",
    "write a rate as <integer>/s, /m or /h, from 1 to 1000000, such as 20/s",
);
pub(crate) const TIMEOUT: Rule = (
    "self.matches('^([0-9]{1,6}(ms|s|m|h))+$') && duration(self) >= duration('100ms') && duration(self) <= duration('1h')",
    "write a duration from 100ms to 1h, such as 10s",
);
pub(crate) const SECOND_TO_HOUR: Rule = (
    "self.matches('^([0-9]{1,6}(ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('1h')",
    "write a duration from 1s to 1h, such as 30s",
);
pub(crate) const UP_TO_DAY: Rule = (
    "self.matches('^([0-9]{1,6}(ms|s|m|h))+$') && duration(self) <= duration('24h')",
    "write a duration from 0s to 24h, such as 5m",
);
pub(crate) const SECOND_TO_DAY: Rule = (
    "self.matches('^([0-9]{1,6}(ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",
    "write a duration from 1s to 24h, such as 5m",
);
pub(crate) const REQUEST_BYTES: Rule = (
    "string(self).matches('^[0-9]{1,9}(Ki|Mi|k|M)?$') && quantity(string(self)).compareTo(quantity('1Ki')) >= 0 && quantity(string(self)).compareTo(quantity('16Mi')) <= 0",
    "write a size from 1Ki to 16Mi in bytes, k, Ki, M or Mi, such as 1Mi",
);
pub(crate) const RESULT_BYTES: Rule = (
    "string(self).matches('^[0-9]{1,9}(Ki|Mi|k|M)?$') && quantity(string(self)).compareTo(quantity('1Ki')) >= 0 && quantity(string(self)).compareTo(quantity('64Mi')) <= 0",
    "write a size from 1Ki to 64Mi in bytes, k, Ki, M or Mi, such as 64Ki",
);

pub(crate) const UPSTREAM_UNION: Rule = (
    "[has(self.container), has(self.workload), has(self.remote)].exists_one(x, x)",
    "write exactly one of container (Cotter runs the server), workload (the pods are somebody else's) and remote (a URL)",
);
pub(crate) const TRANSPORT_UNION: Rule = (
    "[has(self.stdio), has(self.http)].exists_one(x, x)",
    "write exactly one of stdio: {} and http: {port: 8000, path: /mcp}",
);
pub(crate) const STDIO_NEEDS_COMMAND: Rule = (
    "!has(self.stdio) || (has(self.command) && size(self.command) > 0)",
    "stdio needs command, because the shim takes the place of the image's entrypoint: write the program to start, such as command: [node, server.js]",
);
pub(crate) const SELECTOR_NOT_EMPTY: Rule = (
    "(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",
    "an empty selector would take every pod of the namespace: write at least one of matchLabels and matchExpressions",
);
pub(crate) const WORKLOAD_OWNS_PODS: Rule = (
    "!has(self.upstream.workload) || (!has(self.podTemplate) && (!has(self.replicas) || self.replicas == 1))",
    "the pods of upstream.workload belong to somebody else: leave podTemplate and replicas out and write them there",
);
pub(crate) const KEYS_UNION: Rule = (
    "[has(self.uri), has(self.secretRef), has(self.configMapRef)].exists_one(x, x)",
    "write exactly one of uri, secretRef and configMapRef, or leave jwks out for discovery from the issuer",
);
pub(crate) const POLICIES_DIFFER: Rule = (
    "self.all(p, self.exists_one(q, q.configMapRef.name == p.configMapRef.name))",
    "a ConfigMap is named twice: name each one once",
);

pub(crate) const PIN_SCHEME: Rule = (
    "!has(self.tools) || self.tools.all(t, t.fingerprint.startsWith(self.scheme + ':'))",
    "a fingerprint in tools is of another scheme than spec.scheme: pin again with `cotter pin`, or name that scheme",
);
pub(crate) const PROMPT_SCHEME: Rule = (
    "self.all(p, p.fingerprint.startsWith('cotter.prompt/v1:'))",
    "write fingerprints of prompts, which start with cotter.prompt/v1:sha256:",
);
pub(crate) const TEMPLATE_SCHEME: Rule = (
    "self.all(p, p.fingerprint.startsWith('cotter.template/v1:'))",
    "write fingerprints of resource templates, which start with cotter.template/v1:sha256:",
);
pub(crate) const UI_SCHEME: Rule = (
    "self.all(p, p.fingerprint.startsWith('cotter.ui/v1:'))",
    "write fingerprints of UI resources, which start with cotter.ui/v1:sha256:",
);
pub(crate) const CARD_SCHEME: Rule = (
    "self.matches('^cotter[.]card/v1:sha256:[0-9a-f]{64}$')",
    "write the fingerprint of an agent card: cotter.card/v1:sha256: and 64 lower-case hex digits",
);
pub(crate) const DEFINITION_NAME: Rule = (
    "!has(self.definition) || !has(self.definition.name) || self.definition.name == self.name",
    "the definition is of something else: its name must be the name of this entry",
);

pub(crate) const PARTY_UNION: Rule = (
    "[has(self.subject), has(self.claims), has(self.serviceAccount)].exists_one(x, x)",
    "write exactly one of subject, claims and serviceAccount",
);
pub(crate) const CLAIMS_NOT_EMPTY: Rule =
    ("size(self) > 0", "claims that name nothing would match everybody: write at least one claim and its value");
pub(crate) const TO_UNION: Rule =
    ("[has(self.servers), has(self.agent)].exists_one(x, x)", "write exactly one of servers and agent");
pub(crate) const SERVERS_NOT_EMPTY: Rule =
    ("size(self) > 0", "write at least one server: there is no \"all\" by omission");
pub(crate) const SCOPES_NOT_EMPTY: Rule =
    ("size(self) > 0", "write at least one scope: there is no \"all\" by omission");
pub(crate) const EFFECTS_NOT_EMPTY: Rule =
    ("size(self) > 0", "write at least one effect: there is no \"all\" by omission");
pub(crate) const TENANTS_NOT_EMPTY: Rule =
    ("size(self) > 0", "write at least one tenant: there is no \"all\" by omission");
pub(crate) const TOOLS_NOT_EMPTY: Rule = (
    "size(self) > 0",
    "no tool at all is not a delegation: write at least one pattern, or leave tools out for [\"*\"]",
);
pub(crate) const OPERATIONS_NOT_EMPTY: Rule =
    ("size(self) > 0", "write at least one operation: there is no \"all\" by omission");
pub(crate) const PERIOD: Rule =
    ("!has(self.notBefore) || self.notBefore < self.expiresAt", "expiresAt must be later than notBefore");
pub(crate) const BUDGET_NOT_EMPTY: Rule = (
    "has(self.calls) || has(self.perMinute)",
    "write calls, perMinute or both, or leave budget out for no limit of its own",
);
pub(crate) const NOT_ITS_OWN_PARENT: Rule = (
    "!has(self.spec.parentRef) || self.spec.parentRef.name != self.metadata.name",
    "a delegation cannot be its own parent: name the delegation that this one narrows, or leave parentRef out",
);
pub(crate) const QUANTITY: Rule = ("isQuantity(string(self))", "write a Kubernetes quantity, such as 500m, 2 or 128Mi");
pub(crate) const VOLUME_NOT_OURS: Rule = (
    "!self.startsWith('cotter-')",
    "names that start with cotter- are those of the sidecar's own volumes: write another",
);
pub(crate) const CLAIM_VALUE: Rule =
    ("self.matches('^[^[:cntrl:]]+$')", "write the value that the claim must have, without control characters");
pub(crate) const CLAIM_NAMES: Rule = (
    "self.all(name, name.matches('^[!-~]{1,128}$'))",
    "a key is the name of a top-level claim: at most 128 visible ASCII characters without spaces",
);
pub(crate) const MEDIA_TYPE: Rule = (
    "self.matches('^[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*$')",
    "write a media type without parameters, such as application/json",
);
pub(crate) const THUMBPRINT: Rule =
    ("self.matches('^[A-Za-z0-9_-]{43}$')", "write the RFC 7638 thumbprint of a key: 43 characters of base64url");
