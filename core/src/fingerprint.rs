//! Fingerprints of what a server offers: SHA-256 over the raw object, every member included.
//!
//! `cotter.tool/v1` hashes the scheme's name, one zero byte and the RFC 8785 form of the object; where members are
//! ignored they are taken out first, and one zero byte and the RFC 8785 form of the sorted list of their pointers are
//! appended, so that such a fingerprint is never taken for a full one. Array order counts; nothing is done to Unicode.

mod ignore;
mod json_schema;
mod python;
mod text;

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

pub use ignore::{Ignore, IgnoreError, MAX_IGNORED};
pub use text::{Digest, Fingerprint, FingerprintError, Scheme};

use crate::normalise::effective;
use crate::strict::{self, Limits, StrictError};

/// Why an object has no fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HashError {
    /// Two readers could read it differently: duplicate names, lone surrogates, numbers that are not finite.
    #[error("failed to hash: {0}")]
    Strict(#[from] StrictError),
    /// A number that not every reader takes for the same one.
    #[error("failed to hash: the number at `{0}` is beyond ±(2^53−1), where readers disagree; write it as a string")]
    UnsafeInteger(String),
    /// The same of an integer with so many digits that a parsed value does not hold it.
    #[error("failed to hash: the integer {0} is beyond ±(2^53−1), where readers disagree; write it as a string")]
    UnsafeLiteral(String),
    /// The scheme hashes an object.
    #[error("failed to hash: not a JSON object")]
    NotAnObject,
    /// The scheme hashes a member that is not there, or not of its type.
    #[error("failed to hash with `name-description-schema/v0`: `{0}` is absent or has the wrong type")]
    Member(&'static str),
    /// The scheme has no ignored members.
    #[error("failed to hash with `{0}`: this scheme cannot ignore members; pin with `cotter.tool/v1`")]
    NothingToIgnore(Scheme),
    /// A pointer to an element of an array.
    #[error("failed to hash: `{0}` points into an array; only members of objects can be ignored")]
    IgnoresElement(String),
    /// The canonical form could not be written.
    #[error("failed to write the canonical form: {0}")]
    Canonical(String),
}

impl HashError {
    /// Whether the object itself is at fault, which makes it `Ambiguous`, and not what was asked of it.
    #[must_use]
    pub const fn is_ambiguous(&self) -> bool {
        matches!(
            self,
            Self::Strict(_) | Self::UnsafeInteger(_) | Self::UnsafeLiteral(_) | Self::NotAnObject | Self::Canonical(_)
        )
    }
}

/// The fingerprint of a value that was parsed with [`strict::parse`].
///
/// Where the text is at hand, [`fingerprint_bytes`] and [`crate::tool::ToolObject::fingerprint`] also refuse integers
/// that a value does not show.
///
/// # Errors
/// The value cannot be hashed without two readers disagreeing about it, or the scheme does not fit it.
pub fn fingerprint(value: &Value, scheme: Scheme, ignore: &Ignore) -> Result<Fingerprint, HashError> {
    if let Some(pointer) = strict::unsafe_integer(value) {
        return Err(HashError::UnsafeInteger(pointer));
    }
    if scheme == Scheme::NameDescriptionSchemaV0 {
        if !ignore.is_empty() {
            return Err(HashError::NothingToIgnore(scheme));
        }
        return Ok(Fingerprint::new(scheme, Digest::of(python::dumps(&python::document(value)?).as_bytes())));
    }
    if !value.is_object() && scheme != Scheme::InstructionsV1 {
        return Err(HashError::NotAnObject);
    }
    let kept = ignore.remove(value)?;
    let hashed = if scheme == Scheme::ToolV1Effective { effective(&kept) } else { kept };
    let mut hash = domain(scheme.name());
    hash.update(canonical(&hashed)?);
    if !ignore.is_empty() {
        hash.update([0]);
        hash.update(canonical(&ignore.to_value())?);
    }
    Ok(Fingerprint::new(scheme, Digest::from(hash)))
}

/// The fingerprint of the exact bytes that a server sent.
///
/// # Errors
/// As [`fingerprint`], and where the bytes are not strict JSON.
pub fn fingerprint_bytes(bytes: &[u8], scheme: Scheme, ignore: &Ignore) -> Result<Fingerprint, HashError> {
    let value = strict::parse(bytes, Limits::default())?;
    // Strict JSON is UTF-8.
    if let Some(literal) = std::str::from_utf8(bytes).ok().and_then(strict::unsafe_literal) {
        let pointer = strict::unsafe_integer(&value);
        return Err(pointer.map_or_else(|| HashError::UnsafeLiteral(literal.to_owned()), HashError::UnsafeInteger));
    }
    fingerprint(&value, scheme, ignore)
}

/// A digest for every member of an object, so that a difference can be told by name where only digests were kept.
///
/// Each is hashed under `cotter.tool/v1#MEMBER`, with ignored members taken out first.
///
/// # Errors
/// As [`fingerprint`].
pub fn members(value: &Value, ignore: &Ignore) -> Result<BTreeMap<String, Digest>, HashError> {
    if let Some(pointer) = strict::unsafe_integer(value) {
        return Err(HashError::UnsafeInteger(pointer));
    }
    let kept = ignore.remove(value)?;
    let members: &Map<String, Value> = kept.as_object().ok_or(HashError::NotAnObject)?;
    members.iter().map(|(name, member)| Ok((name.clone(), member_digest(name, member)?))).collect()
}

fn member_digest(name: &str, member: &Value) -> Result<Digest, HashError> {
    let mut hash = domain(&format!("{}#{name}", Scheme::ToolV1.name()));
    hash.update(canonical(member)?);
    Ok(Digest::from(hash))
}

fn domain(name: &str) -> Sha256 {
    let mut hash = Sha256::new();
    hash.update(name.as_bytes());
    hash.update([0]);
    hash
}

/// The RFC 8785 form of a value.
///
/// # Errors
/// The library could not write it.
pub fn canonical(value: &Value) -> Result<Vec<u8>, HashError> {
    serde_json_canonicalizer::to_vec(value).map_err(|error| HashError::Canonical(error.to_string()))
}
