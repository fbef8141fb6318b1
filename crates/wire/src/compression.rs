//! Compression of data on its way over a network.

/// Whether data is compressed on its way over a network (zstd).
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
