//! Compression of data sent over a network.

/// Whether data sent over a network is compressed (zstd).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Compression {
    /// Where the link is slower than the compressor.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}
