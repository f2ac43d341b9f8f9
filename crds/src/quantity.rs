//! Sizes as resources write them.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};

/// A number of bytes as written: `64Ki`, `1Mi`, `1500`. YAML may give it as a number or as text; it is kept as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Quantity(pub String);

/// Why a text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("size {0:?} has to be a whole number of bytes, optionally with k, Ki, M or Mi, such as 64Ki")]
pub struct QuantityError(String);

/// Units, with the bytes that each stands for.
const UNITS: [(&str, u64); 5] = [("Ki", 1 << 10), ("Mi", 1 << 20), ("k", 1_000), ("M", 1_000_000), ("", 1)];

impl Quantity {
    /// The number of bytes.
    ///
    /// # Errors
    /// When the text is not a whole number of up to nine digits with one of the units.
    pub fn bytes(&self) -> Result<u64, QuantityError> {
        let refused = || QuantityError(self.0.chars().take(32).collect());
        let digits = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = self.0.split_at_checked(digits).ok_or_else(refused)?;
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(refused)?;
        if !(1..=9).contains(&number.len()) {
            return Err(refused());
        }
        let count: u64 = number.parse().map_err(|_| refused())?;
        count.checked_mul(*factor).ok_or_else(refused)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrText)
    }
}

struct NumberOrText;

impl de::Visitor<'_> for NumberOrText {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size such as 64Ki or 65536")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string()))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
        Ok(Quantity(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_binary_or_decimal_unit() {
        for (text, bytes) in [("1500", 1500), ("64Ki", 65_536), ("1Mi", 1_048_576), ("2k", 2_000), ("3M", 3_000_000)] {
            assert_eq!(Quantity(text.to_owned()).bytes(), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "Ki", "1.5Ki", "-1", "1Gi", "1 Ki", "1KiB", "1234567890", "１Ki"] {
            assert!(Quantity(text.to_owned()).bytes().is_err(), "{text}");
        }
    }

    #[test]
    fn a_number_is_read_as_its_text() {
        assert_eq!(serde_json::from_str::<Quantity>("65536").unwrap(), Quantity("65536".to_owned()));
        assert_eq!(serde_json::from_str::<Quantity>("\"64Ki\"").unwrap(), Quantity("64Ki".to_owned()));
        assert!(serde_json::from_str::<Quantity>("true").is_err());
    }
}
