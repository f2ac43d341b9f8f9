//! Randomness: ids that nobody can guess, and pauses that do not fall together.

use std::cell::RefCell;

use aws_lc_rs::rand;

/// Bytes of one id.
const ID: usize = 16;

/// Ids whose bits are drawn at once: each draw costs half a microsecond however little it takes, and each request has an id.
const DRAWN: usize = 64;

/// Random bytes of one thread, each of which is given out once.
struct Pool {
    bytes: [u8; ID * DRAWN],
    left: usize,
}

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; ID * DRAWN], left: 0 }) };
}

impl Pool {
    fn take(&mut self) -> [u8; ID] {
        if self.left == 0 {
            // Where the system gives no randomness the process ends: an id that can be guessed is worse than none.
            if rand::fill(&mut self.bytes).is_err() {
                std::process::abort();
            }
            self.left = DRAWN;
        }
        self.left -= 1;
        let mut id = [0; ID];
        let drawn = self.bytes.get_mut(self.left * ID..).and_then(|rest| rest.first_chunk_mut());
        // What is given out does not stay.
        drawn.map_or_else(|| std::process::abort(), |drawn| std::mem::swap(&mut id, drawn));
        id
    }
}

/// 128 random bits, as 32 hexadecimal digits.
#[must_use]
pub fn id() -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let bytes = POOL.with_borrow_mut(Pool::take);
    let digit = |nibble: u8| char::from(DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0'));
    let mut id = String::with_capacity(2 * ID);
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
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_id_is_32_digits_and_never_the_same() {
        let ids: HashSet<String> = (0..10 * DRAWN).map(|_| id()).collect();
        assert_eq!(ids.len(), 10 * DRAWN);
        assert!(ids.iter().all(|id| id.len() == 32 && id.bytes().any(|digit| digit != b'0')), "{ids:?}");
    }

    #[test]
    fn threads_draw_for_themselves() {
        let draw = || (0..2 * DRAWN).map(|_| id()).collect::<HashSet<_>>();
        let (other, own) = (std::thread::spawn(draw).join().unwrap(), draw());
        assert!(own.is_disjoint(&other));
    }

    #[test]
    fn what_was_given_out_does_not_stay() {
        let mut pool = Pool { bytes: [0; ID * DRAWN], left: 0 };
        let given = pool.take();
        assert!(!pool.bytes.windows(ID).any(|kept| kept == given) && given != [0; ID]);
    }
}
