//! References to other objects of the same namespace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// An object of a known kind in the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NameRef {
    /// Name of the object, in the same namespace.
    #[schemars(schema_with = "schema::object_name")]
    pub name: String,
}

macro_rules! key_ref {
    ($(#[$doc:meta])* $name:ident, $default:literal, $key_doc:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub struct $name {
            /// Name of the object, in the same namespace.
            #[schemars(schema_with = "schema::object_name")]
            pub name: String,
            #[doc = $key_doc]
            #[serde(default = $default)]
            #[schemars(schema_with = "schema::data_key")]
            pub key: String,
        }
    };
}

key_ref!(
    /// A Secret that holds a token.
    TokenRef, "token_key", "Key of the Secret under which the token is, `token` by default."
);
key_ref!(
    /// A Secret that holds PEM certificates.
    CertificateRef, "certificate_key", "Key of the Secret under which the certificates are, `ca.crt` by default."
);
key_ref!(
    /// A Secret or ConfigMap that holds a JSON Web Key Set.
    KeysRef, "keys_key", "Key under which the key set is, `jwks.json` by default."
);

fn token_key() -> String {
    "token".to_owned()
}

fn certificate_key() -> String {
    "ca.crt".to_owned()
}

fn keys_key() -> String {
    "jwks.json".to_owned()
}
