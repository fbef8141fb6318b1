//! What tests give to functions.

// Not every file of tests needs all of it.
#![allow(dead_code)]

use std::ffi::{CStr, CString, c_char, c_void};

use crate::arguments;
use crate::library::Loaded;

/// A text as a worker hands it over.
pub fn text(text: &str) -> CString {
    CString::new(text).expect("no NUL")
}

/// A value as a worker hands it over: it has to live as long as the call.
pub fn at<T>(value: &mut T) -> *mut c_void {
    std::ptr::from_mut(value).cast()
}

/// The pointer that a worker hands over for a text.
pub fn pointer(text: &CString) -> *mut c_void {
    text.as_ptr().cast_mut().cast()
}

/// The text that a function has made, which is freed.
pub fn taken(made: *mut c_char) -> String {
    // SAFETY: the function has stored a text from `strdup`, which ends in NUL.
    let text = unsafe { CStr::from_ptr(made) }.to_str().expect("a text").to_owned();
    unsafe extern "C" {
        fn free(pointer: *mut c_void);
    }
    // SAFETY: it came from `malloc`, and nobody has it any more.
    unsafe { free(made.cast()) };
    text
}

/// One of each type, and an array for all of them.
pub const SCALARS: &str = "IN char a, IN unsigned char b, IN short c, IN unsigned short d, IN int e, \
    IN unsigned f, IN long g, IN unsigned long h, IN longlong i, IN unsigned long long j, \
    IN float k, IN double l, IN int8 m, IN int16 n, IN int32 o, IN int64 p, IN uint8 q, \
    IN uint16 r, IN uint32 s, IN uint64 t, OUT double sum[20]";

/// Stores each of them.
pub const SCALAR_BODY: &str = "sum[0] = a; sum[1] = b; sum[2] = c; sum[3] = d; sum[4] = e; \
    sum[5] = f; sum[6] = (double)g; sum[7] = (double)h; sum[8] = (double)i; sum[9] = (double)j; \
    sum[10] = k; sum[11] = l; sum[12] = m; sum[13] = n; sum[14] = o; sum[15] = (double)p; \
    sum[16] = q; sum[17] = r; sum[18] = s; sum[19] = (double)t;";

/// Gives a function one of each type, and sees that each has arrived.
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

/// A text from `malloc`.
pub fn duplicate(text: &str) -> *mut c_char {
    unsafe extern "C" {
        fn strdup(text: *const c_char) -> *mut c_char;
    }
    let text = CString::new(text).expect("no NUL");
    // SAFETY: the text ends in NUL, and is copied.
    unsafe { strdup(text.as_ptr()) }
}
