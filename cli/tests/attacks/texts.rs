//! The texts.

/// What has to come of a text.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Comes {
    /// It is refused with these words.
    Refused(&'static str),
    /// The same; and the offending line is shown, where there is anything to see of it, and what to write instead.
    Taught { words: &'static str, line: &'static str, write: &'static str },
    /// It may be used or not; what counts is what that costs.
    Either,
}
use Comes::{Either, Refused, Taught};

const INNER: &str = "give the inner value a rule of its own and name it here";
const SPLIT: &str = "split it by concern, or bring tables of facts in as claims, labels or arguments";

pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) comes: Comes,
    pub(crate) text: fn() -> Vec<u8>,
}

pub(crate) fn module(body: &str) -> Vec<u8> {
    format!("package cotter.user.x\n\n{body}\n").into_bytes()
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> Vec<u8> {
    module(&(0..count).map(line).collect::<String>())
}

fn nested(open: &str, depth: usize, inner: &str, close: &str) -> String {
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

pub(crate) const ATTACKS: &[Attack] = &[
    // Those that were measured first.
    Attack {
        name: "brackets",
        comes: Taught { words: "nested more than 10", line: "x := [[[[[[[[[[[[", write: INNER },
        text: || module(&format!("x := {}", nested("[", 40, "1", "]"))),
    },
    Attack {
        name: "braces",
        comes: Taught { words: "nested more than 10", line: "x := {[{[{[{[{[{[", write: INNER },
        text: || module(&format!("x := {}", "{[".repeat(4000))),
    },
    Attack {
        name: "recursion",
        comes: Taught {
            words: "uses itself: data.cotter.user.x.f -> data.cotter.user.x.f",
            line: "f(n) := f(n)",
            write: "Rego has no recursion; use `every`, `some … in` or a comprehension",
        },
        text: || module("f(n) := f(n)\n\ndeny contains \"x\" if f(1)"),
    },
    Attack {
        name: "range",
        comes: Taught {
            words: "numbers.range is not allowed",
            line: "deny contains \"x\" if count(numbers.range(1, 50000000)) > 0",
            write: "a range cannot be interrupted while it is made; compare with < and > instead",
        },
        text: || module("deny contains \"x\" if count(numbers.range(1, 50000000)) > 0"),
    },
    Attack { name: "huge", comes: Taught { words: "bytes", line: "", write: SPLIT }, text: || vec![b' '; 200 << 20] },
    Attack {
        name: "huge line",
        comes: Taught { words: "bytes", line: "xxxxxxxxxxxxxxxxxxxx", write: SPLIT },
        text: || vec![b'x'; 20 << 20],
    },
    Attack {
        name: "million",
        comes: Taught { words: "bytes", line: "r4838 := 4838", write: SPLIT },
        text: || lines(1_000_000, |n| format!("r{n} := {n}\n")),
    },
    Attack {
        name: "utf8",
        comes: Taught { words: "not UTF-8", line: "# \u{fffd}", write: "save the file as UTF-8" },
        text: || b"package cotter.user.x\n\n# \xff\n".to_vec(),
    },
    Attack {
        name: "bidi",
        comes: Taught { words: "U+202E", line: "# \u{fffd}live", write: "remove it; in a string write \\u202e" },
        text: || module("# \u{202e}live"),
    },
    Attack {
        name: "chain",
        comes: Refused("in a row"),
        text: || lines(2000, |n| format!("r{} := r{n}\n", n + 1).replace("r0", "0")),
    },
    Attack {
        name: "outside",
        comes: Refused("no function http.send"),
        text: || module("deny contains \"x\" if http.send({\"url\": \"x\"})"),
    },
    Attack {
        name: "library",
        comes: Refused("below cotter.user"),
        text: || b"package cotter.authz\n\ndecision := {\"allow\": true}\n".to_vec(),
    },
    // Shapes that a parser or a walk over the tree follows by recursion.
    Attack {
        name: "else",
        comes: Either,
        text: || {
            module(&format!(
                "x := 0 if {{ input.args.a == 0 }}{}",
                " else := 1 if {\n input.args.a == 1 }".repeat(1500)
            ))
        },
    },
    Attack {
        name: "parentheses",
        comes: Refused("parentheses"),
        text: || module(&format!("x := {}", nested("(", 5000, "1", ")"))),
    },
    Attack { name: "minus", comes: Refused("operators"), text: || module(&format!("x := {}1", "- ".repeat(400))) },
    Attack { name: "not", comes: Refused("operators"), text: || module(&format!("x if {}true", "not ".repeat(200))) },
    Attack {
        name: "union",
        comes: Refused("operators"),
        text: || module(&format!("x := {{1}}{}", " |\n {1}".repeat(2000))),
    },
    Attack { name: "path", comes: Either, text: || module(&format!("x := input.args{}", ".a".repeat(480))) },
    Attack { name: "path-lines", comes: Either, text: || module(&format!("x := input.args{}", ".a\n".repeat(15_000))) },
    Attack { name: "index", comes: Either, text: || module(&format!("x := input.args{}", "[0]".repeat(300))) },
    Attack {
        name: "index-lines",
        comes: Either,
        text: || module(&format!("x := input.args{}", "[0]\n".repeat(12_000))),
    },
    Attack {
        name: "calls",
        comes: Refused("parentheses"),
        text: || module(&format!("x := {}", nested("count(", 300, "[1]", ")"))),
    },
    Attack {
        name: "comprehensions",
        comes: Refused("nested more than 10"),
        text: || module(&format!("x := {}", nested("[y | y := ", 12, "1", "]"))),
    },
    Attack {
        name: "comprehensions-within",
        comes: Either,
        text: || module(&format!("x := {}", nested("[1 | some _ in ", 9, "[1]", "]"))),
    },
    Attack {
        name: "every",
        comes: Refused("nested more than 10"),
        text: || module(&format!("x if {{ {} }}", nested("every y in [1] { ", 12, "true", " }"))),
    },
    Attack {
        name: "every-within",
        comes: Either,
        text: || {
            module(&format!(
                "x if {{ {} }}",
                (0..8).fold("true".to_owned(), |inner, n| format!("every y{n} in input.args.a {{ {inner} }}"))
            ))
        },
    },
    // Many of something small.
    Attack { name: "one-line", comes: Refused(""), text: || module(&format!("x := \"{}\"", "a".repeat(60_000))) },
    Attack { name: "raw-text", comes: Either, text: || module(&format!("x := `{}`", "[({\n".repeat(15_000))) },
    Attack { name: "comment", comes: Either, text: || module(&"# [({[({[({[({[({[({\n".repeat(3000)) },
    Attack { name: "template", comes: Refused(""), text: || module("x := $\"{input.args.a}\"") },
    Attack { name: "imports", comes: Either, text: || lines(1900, |n| format!("import data.cotter.scopes as s{n}\n")) },
    Attack {
        name: "same-name",
        comes: Either,
        text: || lines(1300, |n| format!("deny contains \"x\" if input.args.a == {n}\n")),
    },
    Attack {
        name: "literals",
        comes: Either,
        text: || module(&format!("deny contains \"x\" if {{\n{}}}", "\tinput.args.a == 1\n".repeat(3000))),
    },
    Attack { name: "rules-of-all", comes: Either, text: || lines(2500, |n| format!("r{n} if input.args.a == {n}\n")) },
    Attack {
        name: "set",
        comes: Either,
        text: || module(&format!("x := {{{}}}", (0..10_000).map(|n| format!("{n},\n")).collect::<String>())),
    },
    // What one call or one literal makes.
    Attack { name: "exponent", comes: Refused("exponent"), text: || module("x := 1e999999999") },
    Attack { name: "signed-exponent", comes: Refused("exponent"), text: || module("x := 1.5E+99999") },
    Attack { name: "digits", comes: Refused("digits"), text: || module(&format!("x := {}", "9".repeat(900))) },
    Attack {
        name: "products",
        comes: Refused("multiplications"),
        text: || {
            module(&format!(
                "x0 := input.args.a\n{}",
                (0..60).map(|n| format!("x{} := x{n} * x{n}\n", n + 1)).collect::<String>()
            ))
        },
    },
    Attack {
        name: "products-of-a-function",
        comes: Refused("multiplications"),
        text: || {
            module(&format!(
                "f0(a) := a * a\n{}",
                (0..10).map(|n| format!("f{}(a) := f{n}(f{n}(a))\n", n + 1)).collect::<String>()
            ))
        },
    },
    Attack { name: "format", comes: Refused("format"), text: || module("x := sprintf(\"%1000000000d\", [1])") },
    Attack {
        name: "regex",
        comes: Refused("regex exceeded size limit"),
        text: || module("deny contains \"x\" if regex.match(`(a{1000}){1000}`, input.tool.name)"),
    },
    Attack {
        name: "glob",
        comes: Either,
        text: || {
            module(&format!("deny contains \"x\" if glob.match(\"{}\", [], input.tool.name)", "{a,b,*}".repeat(8)))
        },
    },
    Attack {
        name: "doubling",
        comes: Refused("16 MiB"),
        text: || {
            module(&format!(
                "x0 := \"aaaaaaaa\"\n{}\ndeny contains x40",
                (0..40).map(|n| format!("x{} := concat(\"\", [x{n}, x{n}])\n", n + 1)).collect::<String>()
            ))
        },
    },
    Attack {
        name: "replacing",
        comes: Refused("16 MiB"),
        text: || {
            module(&format!(
                "x0 := \"aaaaaaaa\"\n{}\ndeny contains x9",
                (0..9).map(|n| format!("x{} := replace(x{n}, \"a\", x{n})\n", n + 1)).collect::<String>()
            ))
        },
    },
    Attack {
        name: "written",
        comes: Refused("16 MiB"),
        text: || {
            module(&format!(
                "x0 := [1]\n{}\ndeny contains json.marshal(x60)",
                (0..60).map(|n| format!("x{} := [x{n}, x{n}]\n", n + 1)).collect::<String>()
            ))
        },
    },
    Attack {
        name: "product",
        comes: Refused("longer than 20 ms"),
        text: || {
            module(
                "d := [0,1,2,3,4,5,6,7,8,9]\n\ndeny contains \"x\" if {\n\tx := [1 | some a in d; some b in d; some c in d; some e in d; some f in d; some g in d]\n\tcount(x) < 0\n}",
            )
        },
    },
];
