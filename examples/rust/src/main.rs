//! Reads a handwritten digit with a compiled network; no crates.
//!
//!     aot compile ../digits/model.xml -o digits.so --header digits.h
//!     cargo run -- ../digits/seven.npy ./digits.so
//!
//! The header, which is read when the program is compiled, tells the name of the query function and the ABI version.

use std::alloc::{alloc_zeroed, Layout};
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::process::exit;
use std::ptr::{null, null_mut};

const HEADER: &str = include_str!("../digits.h");
const RTLD_NOW: c_int = 2;
const THREADS: i64 = 2;

#[repr(C)]
struct Request {
    inputs: *const *const c_void,
    outputs: *const *mut c_void,
    symbols: *mut i64,
    arena: *mut c_void,
    state: *mut c_void,
    pool: *mut c_void,
    threads: i64,
    profile: *mut u64,
}

#[repr(C)]
struct Model {
    abi: i64,
    bytes: i64,
    manifest: *const u8,
    manifest_bytes: i64,
    input_count: i64,
    inputs: *const c_void,
    output_count: i64,
    outputs: *const c_void,
    symbol_count: i64,
    call_count: i64,
    state_size: extern "C" fn(*const i64) -> i64,
    infer: extern "C" fn(*const Request) -> i32,
    shapes: extern "C" fn(*const i64, *mut i64, *mut i64) -> i32,
    arena_size: extern "C" fn(*const i64, i64) -> i64,
    pool_create: extern "C" fn(i64) -> *mut c_void,
    pool_destroy: extern "C" fn(*mut c_void),
    pool_resize: extern "C" fn(*mut c_void, i64),
    error_text: extern "C" fn(i32) -> *const c_char,
    weights: *const c_void,
    weights_bytes: i64,
    output_sizes: extern "C" fn(*const i64, *mut i64),
    output_dims: extern "C" fn(*const i64, *mut i64),
}

extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// The value of a macro of the header.
fn defined(name: &str) -> &'static str {
    let line = HEADER.lines().find_map(|line| line.strip_prefix("#define ")?.strip_prefix(name)?.strip_prefix(' '));
    line.expect("a macro of the header").split(" /*").next().unwrap().trim_matches('"')
}

fn load(path: &str) -> Option<&'static Model> {
    let (path, name) = (CString::new(path).ok()?, CString::new(defined("AOT_DIGITS_NAME")).ok()?);
    unsafe {
        let library = dlopen(path.as_ptr(), RTLD_NOW);
        let found = if library.is_null() { null_mut() } else { dlsym(library, name.as_ptr()) };
        if found.is_null() {
            return None;
        }
        let query: extern "C" fn(i32) -> *const Model = std::mem::transmute(found);
        query(defined("AOT_ABI").parse().ok()?).as_ref()
    }
}

/// Zero bytes at a multiple of 64, for as long as the program runs.
fn memory(bytes: i64) -> *mut c_void {
    unsafe { alloc_zeroed(Layout::from_size_align(bytes.max(1) as usize, 64).expect("a size")) as *mut c_void }
}

/// The 64 floats of an .npy file.
fn read_image(path: &str) -> Option<Vec<u8>> {
    let file = std::fs::read(path).ok()?;
    let begin = 10 + *file.get(8)? as usize + 256 * *file.get(9)? as usize;
    (file.starts_with(b"\x93NUMPY\x01")).then(|| file.get(begin..begin + 256).map(<[u8]>::to_vec))?
}

fn fail(what: &str, code: i32) -> ! {
    eprintln!("{what}");
    exit(code)
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, image, library] = &arguments[..] else { fail("usage: digits image.npy ./digits.so", 2) };
    let Some(model) = load(library) else { fail("the network cannot be used here", 5) };
    let Some(pixels) = read_image(image) else { fail("this is no image of 8 x 8 floats", 4) };
    let (input, output) = (memory(256), memory(40) as *mut f32);
    unsafe { std::ptr::copy_nonoverlapping(pixels.as_ptr(), input as *mut u8, 256) };
    let pool = (model.pool_create)(THREADS);
    let (inputs, outputs) = ([input as *const c_void], [output as *mut c_void]);
    let request = Request {
        inputs: inputs.as_ptr(),
        outputs: outputs.as_ptr(),
        symbols: null_mut(),
        arena: memory((model.arena_size)(null(), THREADS)),
        state: memory((model.state_size)(null())),
        pool,
        threads: THREADS,
        profile: null_mut(),
    };
    let code = (model.infer)(&request);
    if code != 0 {
        fail(&unsafe { CStr::from_ptr((model.error_text)(code)) }.to_string_lossy(), 1);
    }
    let scores = unsafe { std::slice::from_raw_parts(output, 10) };
    let best = (0..10).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap();
    println!("{best}");
    (model.pool_destroy)(pool);
}
