//! Test arguments for functions.

use std::ffi::{CStr, CString, c_char, c_void};

use crate::arguments;
use crate::library::Loaded;

/// A string as a worker passes it.
pub fn text(text: &str) -> CString {
    CString::new(text).expect("no NUL")
}

/// A value as a worker passes it; it must outlive the call.
pub fn at<T>(value: &mut T) -> *mut c_void {
    std::ptr::from_mut(value).cast()
}

/// The pointer that a worker passes for a string.
pub fn pointer(text: &CString) -> *mut c_void {
    text.as_ptr().cast_mut().cast()
}

/// Takes a string that a function has allocated, and frees it.
pub fn taken(made: *mut c_char) -> String {
    // SAFETY: the function has stored a NUL-terminated string from `strdup`.
    let text = unsafe { CStr::from_ptr(made) }.to_str().expect("a text").to_owned();
    unsafe extern "C" {
        fn free(pointer: *mut c_void);
    }
    // SAFETY: it came from `malloc`, and nothing else refers to it.
    unsafe { free(made.cast()) };
    text
}

/// One scalar of each type, and an array for all of them.
pub const SCALARS: &str = "IN char a, IN unsigned char b, IN short c, IN unsigned short d, IN int e, \
    IN unsigned f, IN long g, IN unsigned long h, IN longlong i, IN unsigned long long j, \
    IN float k, IN double l, IN int8 m, IN int16 n, IN int32 o, IN int64 p, IN uint8 q, \
    IN uint16 r, IN uint32 s, IN uint64 t, OUT double sum[20]";

/// Stores each of them.
pub const SCALAR_BODY: &str = "sum[0] = a; sum[1] = b; sum[2] = c; sum[3] = d; sum[4] = e; \
    sum[5] = f; sum[6] = (double)g; sum[7] = (double)h; sum[8] = (double)i; sum[9] = (double)j; \
    sum[10] = k; sum[11] = l; sum[12] = m; sum[13] = n; sum[14] = o; sum[15] = (double)p; \
    sum[16] = q; sum[17] = r; sum[18] = s; sum[19] = (double)t;";

/// Passes one scalar of each type to a function and checks that it arrives.
pub fn check_scalars(loaded: &Loaded, name: &str) {
    let mut sum = [0f64; 20];
    loaded.run(
        name,
        arguments![
            -1i8,
            200u8,
            -300i16,
            60_000u16,
            -70_000i32,
            4_000_000_000u32,
            -5_000_000_000i64,
            6_000_000_000u64,
            -7_000_000_000i64,
            8_000_000_000u64,
            1.5f32,
            -2.25f64,
            -8i8,
            -16i16,
            -32i32,
            -64i64,
            8u8,
            16u16,
            32u32,
            64u64,
            sum
        ],
    );
    assert_eq!(
        sum,
        [
            -1.0, 200.0, -300.0, 60_000.0, -70_000.0, 4e9, -5e9, 6e9, -7e9, 8e9, 1.5, -2.25, -8.0,
            -16.0, -32.0, -64.0, 8.0, 16.0, 32.0, 64.0
        ]
    );
}

/// A copy of a string from `malloc`.
pub fn duplicate(text: &str) -> *mut c_char {
    unsafe extern "C" {
        fn strdup(text: *const c_char) -> *mut c_char;
    }
    let text = CString::new(text).expect("no NUL");
    // SAFETY: the string is NUL-terminated, and copied.
    unsafe { strdup(text.as_ptr()) }
}
