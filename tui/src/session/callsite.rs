//! The callsite rule: which frames are the program's own, and which belong to
//! allocators and to the language's runtime.
//!
//! A callsite is the innermost frame of the program's own. Signs, strongest
//! first: the source file (the standard library's sources lie under telling
//! paths), the module (libc is never the program), the function's name. Of
//! `<T as Trait>::f` the code was written where the trait or the type is from
//! (Rust's orphan rule): it is runtime code only if both are, where generic
//! parameters, references and primitive types count as nobody's.

use super::names::Symbol;

/// Whose code a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The program's.
    Program,
    /// The language's runtime or standard library.
    Runtime,
    /// An allocator's, or the agent's: never worth a name.
    Allocator,
}

/// What is held to be runtime and allocator code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Beginnings of runtime functions' names.
    pub runtime: Vec<String>,
    /// Beginnings of allocators' and of the agent's functions' names.
    pub allocator: Vec<String>,
    /// Whole names of allocator functions, without arguments.
    pub allocator_names: Vec<String>,
    /// Parts of source paths of the runtime.
    pub paths: Vec<String>,
    /// Beginnings of file names of modules that are runtime throughout.
    pub modules: Vec<String>,
}

impl Default for Rules {
    fn default() -> Self {
        let list = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        Self {
            runtime: list(&[
                "alloc::",
                "core::",
                "std::",
                "hashbrown::",
                "proc_macro::",
                "test::",
                "backtrace::",
                "__gnu_cxx::",
                "__cxxabiv1::",
                "_start",
                "__libc_start",
                "start_thread",
                "__clone",
                "clone3",
                "rust_begin_unwind",
                "__rust_begin_short_",
                "__rust_end_short_",
                // OCaml's standard library.
                "Stdlib.",
                "Stdlib__",
                "CamlinternalFormat.",
                "CamlinternalLazy.",
                "CamlinternalOO.",
            ]),
            allocator: list(&[
                "__rust_alloc",
                "__rust_dealloc",
                "__rust_realloc",
                "__rust_no_alloc_shim",
                "__rdl_",
                "__rg_",
                "__rustc::__rust_",
                "__rustc::__rdl_",
                "__rustc::__rg_",
                "heaptop_agent::",
                "heaptop_preload::",
                "alloc::alloc::",
                "operator new",
                "operator delete",
                "_Znw",
                "_Zna",
                "__libc_malloc",
                "__libc_calloc",
                "__libc_realloc",
                "__libc_memalign",
                "_int_malloc",
                "je_",
                "_rjem_",
                "mi_",
                "tc_",
                "tikv_jemallocator::",
                "tikv_jemalloc_sys::",
                "jemallocator::",
                "mimalloc::",
                "tcmalloc::",
                "snmalloc::",
                "std::allocator<",
                "__gnu_cxx::new_allocator<",
                "std::__new_allocator<",
                "std::allocator_traits<",
            ]),
            allocator_names: list(&[
                "malloc",
                "calloc",
                "realloc",
                "reallocarray",
                "memalign",
                "posix_memalign",
                "aligned_alloc",
                "valloc",
                "pvalloc",
                "free",
                "strdup",
                "strndup",
                "__strdup",
                "__strndup",
                "asprintf",
                "vasprintf",
                "wcsdup",
            ]),
            paths: list(&["/lib/rustlib/src/rust/library/", "/rust/deps/", "/include/c++/"]),
            modules: list(&[
                "libc.so",
                "libc-2",
                "libstdc++.so",
                "libc++.so",
                "libc++abi.so",
                "libgcc_s.so",
                "ld-linux",
                "ld-musl",
                "libpthread",
                "libjemalloc",
                "libtcmalloc",
                "libmimalloc",
                "libheaptop",
                "linux-vdso",
            ]),
        }
    }
}

impl Rules {
    /// Whose code a named function is, in the module at `module_path`.
    #[must_use]
    pub fn of_symbol(&self, symbol: &Symbol, module_path: &str) -> Owner {
        let function = &*symbol.function;
        let by_name = self.of_name(function);
        if by_name == Owner::Allocator {
            return Owner::Allocator;
        }
        match symbol.file.as_deref() {
            Some(file) if self.is_runtime_path(file) => return Owner::Runtime,
            _ => {}
        }
        if by_name == Owner::Runtime || self.is_runtime_module(module_path) {
            return Owner::Runtime;
        }
        Owner::Program
    }

    /// Whose code a frame without a name is.
    #[must_use]
    pub fn of_module(&self, module_path: &str) -> Owner {
        if self.is_runtime_module(module_path) { Owner::Runtime } else { Owner::Program }
    }

    fn is_runtime_path(&self, file: &str) -> bool {
        // What rustc remaps its own sources to: `/rustc/HASH/library/…`.
        let remapped = file
            .strip_prefix("/rustc/")
            .and_then(|rest| rest.split_once('/'))
            .is_some_and(|(_, rest)| rest.starts_with("library/"));
        remapped || self.paths.iter().any(|part| file.contains(part.as_str()))
    }

    fn is_runtime_module(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.modules.iter().any(|m| name.starts_with(m.as_str()))
    }

    fn of_name(&self, function: &str) -> Owner {
        if let Some((own_type, of_trait)) = split_impl(function) {
            let own = self.of_path(bare_type(own_type), true);
            let of_trait = of_trait.map_or(own, |t| self.of_path(bare_type(t), true));
            // Only if both are not the program's.
            return match (own, of_trait) {
                (Owner::Program, _) | (_, Owner::Program) => Owner::Program,
                (Owner::Allocator, _) | (_, Owner::Allocator) => Owner::Allocator,
                _ => Owner::Runtime,
            };
        }
        self.of_path(function, false)
    }

    fn of_path(&self, path: &str, of_type: bool) -> Owner {
        let name = path.split(['(', '@']).next().unwrap_or(path).trim();
        let begins = |list: &[String]| list.iter().any(|p| path.starts_with(p.as_str()));
        if begins(&self.allocator) || self.allocator_names.iter().any(|n| n == name) {
            return Owner::Allocator;
        }
        // A type without a path is a parameter or a primitive: nobody's.
        if begins(&self.runtime) || (of_type && !path.contains("::")) {
            return Owner::Runtime;
        }
        Owner::Program
    }
}

/// `<Type as Trait>::f` or `<Type>::f` to the type and the trait.
fn split_impl(function: &str) -> Option<(&str, Option<&str>)> {
    let inner = function.strip_prefix('<')?;
    let (mut depth, mut split) = (1usize, None);
    let bytes = inner.as_bytes();
    for (i, &b) in bytes.iter().enumerate() {
        match b {
            b'<' | b'(' | b'[' => depth += 1,
            // The `>` of an arrow closes nothing.
            b'>' if i > 0 && bytes[i - 1] == b'-' => {}
            b'>' | b')' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(match split {
                        Some(at) => (&inner[..at], Some(&inner[at + 4..i])),
                        None => (&inner[..i], None),
                    });
                }
            }
            b' ' if depth == 1 && split.is_none() && inner[i..].starts_with(" as ") => {
                split = Some(i);
            }
            _ => {}
        }
    }
    None
}

/// A type without references, pointers, brackets and arguments before its path.
fn bare_type(mut path: &str) -> &str {
    loop {
        path = path.trim_start_matches(['&', '*', '[', '(', ' ']);
        let Some(rest) = ["mut ", "const ", "dyn "].iter().find_map(|word| path.strip_prefix(word))
        else {
            break;
        };
        path = rest;
    }
    // The parameters of `T<orders::Foo>` say nothing of whose `T` is.
    path.split('<').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(function: &str, file: Option<&str>) -> Owner {
        let symbol =
            Symbol { function: function.into(), file: file.map(Into::into), line: Some(1) };
        Rules::default().of_symbol(&symbol, "/opt/orders/bin/orders")
    }

    #[test]
    fn names_tell_whose_code_it_is() {
        for name in [
            "alloc::raw_vec::RawVec<T,A>::reserve::do_reserve_and_handle",
            "core::ops::function::FnOnce::call_once",
            "std::rt::lang_start::{{closure}}",
            "hashbrown::raw::RawTable<T,A>::reserve_rehash",
            "<alloc::vec::Vec<orders::Foo> as core::clone::Clone>::clone",
            "<alloc::vec::Vec<u8>>::push",
            "<T as alloc::string::ToString>::to_string",
            "<&T as core::fmt::Display>::fmt",
            "<[T] as alloc::borrow::ToOwned>::to_owned",
            "<u8 as alloc::slice::hack::ConvertVec>::to_vec",
            "<[u8]>::to_vec",
            "std::vector<Foo, std::allocator<Foo> >::push_back(Foo const&)",
            "__libc_start_main",
            "Stdlib__List.init_aux",
            "CamlinternalFormat.make_printf",
        ] {
            assert_eq!(owner(name, None), Owner::Runtime, "{name}");
        }
        for name in [
            "__rust_alloc",
            "__rustc::__rdl_alloc",
            "malloc",
            "posix_memalign",
            "operator new(unsigned long)",
            "<heaptop_agent::Heaptop as core::alloc::global::GlobalAlloc>::alloc",
            "<heaptop_agent::Heaptop<A> as core::alloc::global::GlobalAlloc>::alloc",
            "alloc::alloc::exchange_malloc",
        ] {
            assert_eq!(owner(name, None), Owner::Allocator, "{name}");
        }
        for name in [
            "orders::cache::fill_cache",
            "orders::cache::fill_cache::{{closure}}",
            "<orders::Foo as core::clone::Clone>::clone",
            "<&orders::Foo as core::fmt::Debug>::fmt",
            "<alloc::vec::Vec<T> as orders::Codec>::encode",
            "<T as orders::Codec>::encode",
            "<dyn orders::Codec>::encode",
            "orders::<impl core::fmt::Display for orders::Foo>::fmt",
            "allocate_everything",
            "malloc_stats_of_mine",
            "stdx::go",
            "Stdlibrary.go",
            "Leak.handle.(fun)",
            "main",
        ] {
            assert_eq!(owner(name, None), Owner::Program, "{name}");
        }
    }

    #[test]
    fn the_source_path_outranks_the_name() {
        for file in [
            "/rustc/59807616e/library/alloc/src/slice.rs",
            "/home/me/.rustup/toolchains/stable/lib/rustlib/src/rust/library/std/src/io/mod.rs",
            "/rust/deps/hashbrown-0.15.2/src/raw/mod.rs",
        ] {
            assert_eq!(owner("to_vec<u8>", Some(file)), Owner::Runtime, "{file}");
        }
        assert_eq!(owner("to_vec<u8>", Some("/rustc/mine/src/lib.rs")), Owner::Program);
    }

    #[test]
    fn libc_is_never_the_program() {
        let rules = Rules::default();
        assert_eq!(rules.of_module("/usr/lib/x86_64-linux-gnu/libc.so.6"), Owner::Runtime);
        assert_eq!(rules.of_module("/usr/bin/orders"), Owner::Program);
        assert_eq!(rules.of_module(""), Owner::Program);
    }
}
