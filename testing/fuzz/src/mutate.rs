//! Deterministic byte mutations, the short run's replacement for a fuzzer.

/// A seeded random number generator (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.number() % end).expect("it is below a number of this type")
    }

    fn byte(&mut self) -> u8 {
        self.number().to_le_bytes()[0]
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..=self.below(most)).map(|_| self.byte()).collect()
    }
}

/// `base` with one to four mutations: bits, lengths, pieces of `other`, and `words`.
pub fn mutated(random: &mut Random, base: &[u8], other: &[u8], words: &[&str]) -> Vec<u8> {
    let mut bytes = base.to_vec();
    for _ in 0..=random.below(4) {
        mutate(random, &mut bytes, other, words);
    }
    bytes
}

fn mutate(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8], words: &[&str]) {
    let at = random.below(bytes.len() + 1);
    let length = random.below(16);
    let end = (at + length).min(bytes.len());
    match random.below(10) {
        0..=2 => flip(random, bytes),
        3 => bytes.truncate(at),
        4 => drop(bytes.drain(at..end)),
        5 => drop(bytes.splice(at..at, random.bytes(8))),
        6 => {
            let twice = bytes[at..end].to_vec();
            drop(bytes.splice(at..at, twice));
        }
        7 => {
            let from = random.below(other.len() + 1);
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        8 if !words.is_empty() => {
            let word = words[random.below(words.len())].bytes();
            drop(bytes.splice(at..end, word));
        }
        _ => number(random, bytes),
    }
}

fn flip(random: &mut Random, bytes: &mut [u8]) {
    let at = random.below(bytes.len());
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << random.below(8);
    }
}

/// Sets a byte to a bound of its range, or a digit to another digit.
fn number(random: &mut Random, bytes: &mut [u8]) {
    let at = random.below(bytes.len());
    let Some(byte) = bytes.get_mut(at) else { return };
    let ends = [0, 1, 0x7f, 0x80, 0xff];
    *byte = if byte.is_ascii_digit() { b"0129"[random.below(4)] } else { ends[random.below(ends.len())] };
}
