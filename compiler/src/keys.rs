//! Key sets, reduced to what a sidecar needs: public keys that can verify a signature.
//!
//! A key set comes from somewhere else. Private members would travel to every sidecar, and a symmetric key would let
//! everybody who can read the snapshot mint tokens; neither is taken over.

use serde_json::{Map, Value, json};

/// Members of a public key that are kept (RFC 7517, RFC 7518 section 6, RFC 8037).
const KEPT: [&str; 11] = ["kty", "kid", "use", "alg", "key_ops", "crv", "x", "y", "n", "e", "x5t#S256"];

/// The most keys of one issuer; a larger set is a mistake or an attack on the search for a key.
const MAX_KEYS: usize = 64;

/// A key set with usable keys only, sorted, and how many keys were left out.
///
/// # Errors
/// Why no key can be used, in words.
pub(crate) fn usable(jwks: &Value) -> Result<(Value, usize), String> {
    let listed = jwks.get("keys").and_then(Value::as_array);
    let listed = listed.ok_or("is not a JWK set (RFC 7517): it has no array \"keys\"")?;
    if listed.len() > MAX_KEYS {
        return Err(format!("has {} keys, and at most {MAX_KEYS} are accepted", listed.len()));
    }
    let mut keys: Vec<Value> = listed.iter().filter_map(public).collect();
    if keys.is_empty() {
        return Err(format!(
            "has no usable key among {}: at least one RSA, EC or OKP public key for signatures is needed",
            listed.len()
        ));
    }
    // The order of a key set means nothing, and must not move the digest of a snapshot.
    keys.sort_by_key(ToString::to_string);
    keys.dedup();
    let left_out = listed.len().saturating_sub(keys.len());
    Ok((json!({"keys": keys}), left_out))
}

/// An empty set: nobody can authenticate with it.
#[must_use]
pub(crate) fn none() -> Value {
    json!({"keys": []})
}

fn public(key: &Value) -> Option<Value> {
    let key = key.as_object()?;
    let has = |members: &[&str]| members.iter().all(|name| key.get(*name).is_some_and(Value::is_string));
    let complete = match text(key, "kty")? {
        "RSA" => has(&["n", "e"]),
        "EC" => has(&["crv", "x", "y"]),
        "OKP" => has(&["crv", "x"]),
        _ => false,
    };
    let signs = text(key, "use").is_none_or(|purpose| purpose == "sig");
    let verifies = key.get("key_ops").and_then(Value::as_array).is_none_or(|ops| ops.contains(&json!("verify")));
    let asymmetric = text(key, "alg").is_none_or(|alg| alg != "none" && !alg.starts_with("HS"));
    (complete && signs && verifies && asymmetric).then(|| {
        key.iter()
            .filter(|(name, _)| KEPT.contains(&name.as_str()))
            .map(|(name, member)| (name.clone(), member.clone()))
            .collect::<Map<_, _>>()
            .into()
    })
}

fn text<'k>(key: &'k Map<String, Value>, name: &str) -> Option<&'k str> {
    key.get(name).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ec(kid: &str) -> Value {
        json!({"kty": "EC", "crv": "P-256", "x": "x", "y": "y", "kid": kid})
    }

    #[test]
    fn a_usable_key_is_kept_without_its_private_member() {
        let mut key = ec("a");
        key["d"] = json!("secret");
        let (set, left_out) = usable(&json!({"keys": [key]})).unwrap();
        assert_eq!((set, left_out), (json!({"keys": [ec("a")]}), 0));
    }

    #[test]
    fn keys_that_cannot_verify_are_left_out() {
        let with = |name: &str, value: Value| {
            let mut key = ec("b");
            key[name] = value;
            key
        };
        for bad in [
            json!({"kty": "oct", "k": "c2VjcmV0", "kid": "b"}),
            json!({"kty": "EC", "crv": "P-256", "x": "x"}),
            json!({"kty": "RSA", "n": "n"}),
            json!("text"),
            with("use", json!("enc")),
            with("alg", json!("none")),
            with("alg", json!("HS256")),
            with("key_ops", json!(["sign"])),
        ] {
            assert!(usable(&json!({"keys": [bad]})).unwrap_err().contains("no usable key among 1"), "{bad}");
            assert_eq!(usable(&json!({"keys": [bad, ec("a")]})).unwrap(), (json!({"keys": [ec("a")]}), 1));
        }
    }

    #[test]
    fn what_is_no_key_set_is_named() {
        for bad in [json!({}), json!([]), json!({"keys": {}}), json!("x")] {
            assert!(usable(&bad).unwrap_err().contains("RFC 7517"), "{bad}");
        }
        assert!(usable(&json!({"keys": vec![ec("a"); 65]})).unwrap_err().contains("at most 64"));
    }

    #[test]
    fn the_order_of_keys_means_nothing() {
        let one = usable(&json!({"keys": [ec("a"), ec("b")]}));
        assert_eq!(one, usable(&json!({"keys": [ec("b"), ec("a")]})));
    }
}
