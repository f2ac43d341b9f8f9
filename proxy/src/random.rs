//! Randomness: ids that nobody can guess, and pauses that do not fall together.

use aws_lc_rs::rand;

/// 128 random bits, as 32 hexadecimal digits.
///
/// Where the system gives no randomness the process ends: an id that can be guessed is worse than none.
#[must_use]
pub fn id() -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut bytes = [0_u8; 16];
    if rand::fill(&mut bytes).is_err() {
        std::process::abort();
    }
    let digit = |nibble: u8| char::from(DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0'));
    let mut id = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        id.push(digit(byte >> 4));
        id.push(digit(byte & 15));
    }
    id
}

/// A number from 0 to 1, for spreading things in time. Where the system gives no randomness it is 1.
#[must_use]
pub fn fraction() -> f64 {
    let mut bytes = [0_u8; 4];
    rand::fill(&mut bytes).map_or(1.0, |()| f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_id_is_32_digits_and_never_the_same() {
        let (one, two) = (super::id(), super::id());
        assert!(one.len() == 32 && one != two, "{one} {two}");
    }
}
