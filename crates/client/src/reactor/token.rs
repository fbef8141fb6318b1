//! Tokens that identify descriptors in the reactor's event queue.

/// Owner of a descriptor, encoded in an event token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Wake,
    Spawner,
    SpawnerStderr,
    Worker { index: u32, generation: u32 },
    WorkerStdout { index: u32, generation: u32 },
    WorkerStderr { index: u32, generation: u32 },
    Host { index: u32, generation: u32 },
    Looked,
}

/// Tokens carry only the low bits of a generation: an event is never older than the queue.
const GENERATION_BITS: u32 = 24;

impl Token {
    pub(super) fn encode(self) -> u64 {
        let pack = |kind: u64, index: u32, generation: u32| {
            let generation = u64::from(generation) & ((1 << GENERATION_BITS) - 1);
            kind << 56 | generation << 32 | u64::from(index)
        };
        match self {
            Token::Wake => pack(0, 0, 0),
            Token::Spawner => pack(1, 0, 0),
            Token::SpawnerStderr => pack(2, 0, 0),
            Token::Worker { index, generation } => pack(3, index, generation),
            Token::WorkerStderr { index, generation } => pack(4, index, generation),
            Token::WorkerStdout { index, generation } => pack(5, index, generation),
            Token::Host { index, generation } => pack(6, index, generation),
            Token::Looked => pack(7, 0, 0),
        }
    }

    /// Whether a generation in a token matches this one.
    pub(super) fn is_generation(whole: u32, carried: u32) -> bool {
        whole & ((1 << GENERATION_BITS) - 1) == carried
    }

    pub(super) fn decode(raw: u64) -> Option<Token> {
        let index = raw as u32;
        let generation = (raw >> 32) as u32 & ((1 << GENERATION_BITS) - 1);
        Some(match raw >> 56 {
            0 => Token::Wake,
            1 => Token::Spawner,
            2 => Token::SpawnerStderr,
            3 => Token::Worker { index, generation },
            4 => Token::WorkerStderr { index, generation },
            5 => Token::WorkerStdout { index, generation },
            6 => Token::Host { index, generation },
            7 => Token::Looked,
            _ => return None,
        })
    }
}
