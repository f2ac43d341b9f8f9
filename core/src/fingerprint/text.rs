//! How schemes, digests and fingerprints are written.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// What is hashed, and how. The name is part of what is hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// A tool, strictly.
    ToolV1,
    /// A tool in its effective form ([`crate::normalise`]).
    ToolV1Effective,
    /// Name, description and input schema as one line of Python's `json.dumps`, to import pins of simpler tools.
    NameDescriptionSchemaV0,
    /// A prompt.
    PromptV1,
    /// A resource template.
    TemplateV1,
    /// A server's instructions, a string.
    InstructionsV1,
    /// An agent card.
    CardV1,
    /// A UI resource.
    UiV1,
}

/// SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// A scheme and a digest, written `SCHEME:sha256:<64 hex>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fingerprint {
    scheme: Scheme,
    digest: Digest,
}

/// Why a text is not a fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FingerprintError {
    /// Not `SCHEME:sha256:<64 hex>`.
    #[error("failed to read {0:?} as a fingerprint: write `cotter.tool/v1:sha256:` and 64 lower-case hex digits")]
    Form(String),
    /// A scheme that this version does not know.
    #[error("failed to read the fingerprint scheme {0:?}: known are {known}", known = Scheme::known())]
    Scheme(String),
    /// Not 64 lower-case hex digits.
    #[error("failed to read {0:?} as a digest: 64 lower-case hex digits are expected")]
    Digest(String),
}

impl Scheme {
    /// All schemes.
    pub const ALL: [Self; 8] = [
        Self::ToolV1,
        Self::ToolV1Effective,
        Self::NameDescriptionSchemaV0,
        Self::PromptV1,
        Self::TemplateV1,
        Self::InstructionsV1,
        Self::CardV1,
        Self::UiV1,
    ];

    /// As written before the digest.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ToolV1 => "cotter.tool/v1",
            Self::ToolV1Effective => "cotter.tool/v1+effective",
            Self::NameDescriptionSchemaV0 => "name-description-schema/v0",
            Self::PromptV1 => "cotter.prompt/v1",
            Self::TemplateV1 => "cotter.template/v1",
            Self::InstructionsV1 => "cotter.instructions/v1",
            Self::CardV1 => "cotter.card/v1",
            Self::UiV1 => "cotter.ui/v1",
        }
    }

    fn known() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

impl Digest {
    /// The digest of bytes, without a domain.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Fingerprint {
    /// A digest under its scheme.
    #[must_use]
    pub const fn new(scheme: Scheme, digest: Digest) -> Self {
        Self { scheme, digest }
    }

    /// The scheme.
    #[must_use]
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The digest.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }
}

impl From<Sha256> for Digest {
    fn from(hash: Sha256) -> Self {
        Self(hash.finalize().into())
    }
}

impl FromStr for Scheme {
    type Err = FingerprintError;

    fn from_str(name: &str) -> Result<Self, FingerprintError> {
        let known = Self::ALL.into_iter().find(|scheme| scheme.name() == name);
        known.ok_or_else(|| FingerprintError::Scheme(name.to_owned()))
    }
}

impl FromStr for Digest {
    type Err = FingerprintError;

    fn from_str(hex: &str) -> Result<Self, FingerprintError> {
        let wrong = || FingerprintError::Digest(hex.to_owned());
        if hex.len() != 64 {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            *byte = pair.iter().try_fold(0, |high, digit| Some(high * 16 + nibble(*digit)?)).ok_or_else(wrong)?;
        }
        Ok(Self(bytes))
    }
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let (scheme, digest) = text.split_once(":sha256:").ok_or_else(|| FingerprintError::Form(text.to_owned()))?;
        Ok(Self { scheme: scheme.parse()?, digest: digest.parse()? })
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: [u8; 16] = *b"0123456789abcdef";
        // Written in one piece: a digest goes into every audit record, and 32 formatted writes are most of what that costs.
        let mut text = [0_u8; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            let nibbles = [byte >> 4, byte & 15];
            for (digit, nibble) in pair.iter_mut().zip(nibbles) {
                *digit = DIGITS.get(usize::from(nibble)).copied().unwrap_or_default();
            }
        }
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:sha256:{}", self.scheme, self.digest)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for Digest {
    type Error = FingerprintError;

    fn try_from(text: String) -> Result<Self, FingerprintError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = FingerprintError;

    fn try_from(text: String) -> Result<Self, FingerprintError> {
        text.parse()
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.to_string()
    }
}

impl Serialize for Scheme {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Scheme {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
