//! Datatypes of the protocol.

use std::fmt;

use gridrpc_wire::DType;

/// Type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum DataType {
    Bool,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Int8,
    Int16,
    Int32,
    Int64,
    Fp16,
    Bf16,
    Fp32,
    Fp64,
    /// Strings of any bytes.
    Bytes,
}

impl DataType {
    /// Every datatype.
    pub const ALL: [DataType; 14] = [
        DataType::Bool,
        DataType::Uint8,
        DataType::Uint16,
        DataType::Uint32,
        DataType::Uint64,
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::Fp16,
        DataType::Bf16,
        DataType::Fp32,
        DataType::Fp64,
        DataType::Bytes,
    ];

    /// Its name in the protocol.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DataType::Bool => "BOOL",
            DataType::Uint8 => "UINT8",
            DataType::Uint16 => "UINT16",
            DataType::Uint32 => "UINT32",
            DataType::Uint64 => "UINT64",
            DataType::Int8 => "INT8",
            DataType::Int16 => "INT16",
            DataType::Int32 => "INT32",
            DataType::Int64 => "INT64",
            DataType::Fp16 => "FP16",
            DataType::Bf16 => "BF16",
            DataType::Fp32 => "FP32",
            DataType::Fp64 => "FP64",
            DataType::Bytes => "BYTES",
        }
    }

    /// The datatype with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<DataType> {
        DataType::ALL.into_iter().find(|datatype| datatype.name() == name)
    }

    /// Bytes of an element; `None` for strings.
    #[must_use]
    pub fn size(self) -> Option<usize> {
        Some(match self {
            DataType::Bool | DataType::Uint8 | DataType::Int8 => 1,
            DataType::Uint16 | DataType::Int16 | DataType::Fp16 | DataType::Bf16 => 2,
            DataType::Uint32 | DataType::Int32 | DataType::Fp32 => 4,
            DataType::Uint64 | DataType::Int64 | DataType::Fp64 => 8,
            DataType::Bytes => return None,
        })
    }

    /// The datatype for elements of a module's array, and whether two of them make one element: a complex number is a
    /// trailing dimension of 2.
    #[must_use]
    pub fn of(dtype: DType) -> (DataType, bool) {
        match dtype {
            DType::Bool => (DataType::Bool, false),
            DType::UInt8 => (DataType::Uint8, false),
            DType::UInt16 => (DataType::Uint16, false),
            DType::UInt32 => (DataType::Uint32, false),
            DType::UInt64 => (DataType::Uint64, false),
            DType::Int8 => (DataType::Int8, false),
            DType::Int16 => (DataType::Int16, false),
            DType::Int32 => (DataType::Int32, false),
            DType::Int64 => (DataType::Int64, false),
            DType::Float32 => (DataType::Fp32, false),
            DType::Float64 => (DataType::Fp64, false),
            DType::Complex64 => (DataType::Fp32, true),
            DType::Complex128 => (DataType::Fp64, true),
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
