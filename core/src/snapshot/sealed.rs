//! A snapshot with its name: the digest of the exact bytes that travel.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Snapshot, VERSION};
use crate::fingerprint;

/// SHA-256 of the exact bytes of a snapshot, written `sha256:<64 hex>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(fingerprint::Digest);

impl Digest {
    /// The digest of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(fingerprint::Digest::of(bytes))
    }
    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        self.0.bytes()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let hex = text.strip_prefix("sha256:").and_then(|hex| hex.parse().ok());
        hex.map(Self)
            .ok_or_else(|| format!("{text:?} is not a digest: write sha256: and 64 lower-case hexadecimal digits"))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A snapshot with the bytes that its digest names. The only way to have one is to hash the bytes.
#[derive(Debug, Clone)]
pub struct Sealed {
    snapshot: Arc<Snapshot>,
    bytes: Arc<str>,
    digest: Digest,
}

/// Why bytes are not a snapshot that can be enforced.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// Not the JSON of a snapshot.
    #[error("failed to read the snapshot: {0}")]
    Read(#[source] serde_json::Error),
    /// A form that this program does not know.
    #[error("failed to read the snapshot: its version is {0:?} and this program knows {VERSION:?}")]
    Version(String),
    /// Not what the digest names.
    #[error("failed to read the snapshot: its digest is {actual} and {expected} was announced")]
    Digest {
        /// What the bytes hash to.
        actual: Digest,
        /// What was announced.
        expected: Digest,
    },
}

impl Sealed {
    /// Seals a snapshot that was made here.
    ///
    /// # Errors
    /// A value that JSON cannot hold (never, for snapshots made by the compiler).
    pub fn seal(snapshot: Snapshot) -> Result<Self, SealError> {
        let bytes: Arc<str> = serde_json::to_string(&snapshot).map_err(SealError::Read)?.into();
        Ok(Self { snapshot: Arc::new(snapshot), digest: Digest::of(bytes.as_bytes()), bytes })
    }

    /// Opens the bytes of a snapshot that came from elsewhere, and checks that they are the announced ones.
    ///
    /// # Errors
    /// See [`SealError`].
    pub fn open(bytes: &str, expected: Option<Digest>) -> Result<Self, SealError> {
        let digest = Digest::of(bytes.as_bytes());
        if let Some(expected) = expected.filter(|expected| *expected != digest) {
            return Err(SealError::Digest { actual: digest, expected });
        }
        let snapshot: Snapshot = serde_json::from_str(bytes).map_err(SealError::Read)?;
        if snapshot.version != VERSION {
            return Err(SealError::Version(snapshot.version.chars().take(64).collect()));
        }
        Ok(Self { snapshot: Arc::new(snapshot), bytes: bytes.into(), digest })
    }

    /// The value.
    #[must_use]
    pub const fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }
    /// The bytes that the digest names.
    #[must_use]
    pub const fn bytes(&self) -> &Arc<str> {
        &self.bytes
    }
    /// Its name.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_survives_its_text() {
        let digest = Digest::of(b"cotter");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        for bad in ["", "sha256:", "sha256:zz", &digest.to_string().to_uppercase()] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }
}
