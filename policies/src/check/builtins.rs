//! Which functions of the language a policy may call. One call of a builtin cannot be interrupted, so what can run long or take much
//! memory is not here; neither is what reads a clock, chance or the outside: a decision can be replayed.

/// Builtins that may be called, with the number of their arguments.
const ALLOWED: &[(&str, usize)] = &[
    ("abs", 1),
    ("array.concat", 2),
    ("array.reverse", 1),
    ("array.slice", 3),
    ("base64.decode", 1),
    ("base64.encode", 1),
    ("base64.is_valid", 1),
    ("base64url.decode", 1),
    ("base64url.encode", 1),
    ("base64url.encode_no_pad", 1),
    ("bits.and", 2),
    ("bits.negate", 1),
    ("bits.or", 2),
    ("bits.xor", 2),
    ("ceil", 1),
    ("concat", 2),
    ("contains", 2),
    ("count", 1),
    ("endswith", 2),
    ("floor", 1),
    ("format_int", 2),
    ("glob.match", 3),
    ("glob.quote_meta", 1),
    ("indexof", 2),
    ("indexof_n", 2),
    ("intersection", 1),
    ("is_array", 1),
    ("is_boolean", 1),
    ("is_null", 1),
    ("is_number", 1),
    ("is_object", 1),
    ("is_set", 1),
    ("is_string", 1),
    ("json.filter", 2),
    ("json.is_valid", 1),
    ("json.marshal", 1),
    ("json.remove", 2),
    ("json.unmarshal", 1),
    ("lower", 1),
    ("max", 1),
    ("min", 1),
    ("object.filter", 2),
    ("object.get", 3),
    ("object.keys", 1),
    ("object.remove", 2),
    ("object.subset", 2),
    ("object.union", 2),
    ("object.union_n", 1),
    ("regex.find_n", 3),
    ("regex.is_valid", 1),
    ("regex.match", 2),
    ("regex.replace", 3),
    ("regex.split", 2),
    ("replace", 3),
    ("round", 1),
    ("semver.compare", 2),
    ("semver.is_valid", 1),
    ("sort", 1),
    ("split", 2),
    ("sprintf", 2),
    ("startswith", 2),
    ("strings.any_prefix_match", 2),
    ("strings.any_suffix_match", 2),
    ("strings.count", 2),
    ("strings.reverse", 1),
    ("substring", 3),
    ("sum", 1),
    ("time.add_date", 4),
    ("time.clock", 1),
    ("time.date", 1),
    ("time.diff", 2),
    ("time.format", 1),
    ("time.parse_duration_ns", 1),
    ("time.parse_ns", 2),
    ("time.parse_rfc3339_ns", 1),
    ("time.weekday", 1),
    ("to_number", 1),
    ("trim", 2),
    ("trim_left", 2),
    ("trim_prefix", 2),
    ("trim_right", 2),
    ("trim_space", 1),
    ("trim_suffix", 2),
    ("type_name", 1),
    ("union", 1),
    ("upper", 1),
];

/// What to write instead of a function that is not allowed.
const INSTEAD: &[(&str, &str)] = &[
    (
        "time.now_ns",
        "use time.parse_rfc3339_ns(input.now): a decision has the time of its question and can be replayed",
    ),
    ("numbers.", "a range cannot be interrupted while it is made; compare with < and > instead"),
    ("product", "a product of a caller's numbers takes as long as the caller likes; multiply what you name"),
    ("bits.", "shifts make numbers without bound; multiply by a constant instead"),
    ("rand.", "a decision has no chance in it, so that it can be replayed"),
    ("uuid.", "a decision has no chance in it, so that it can be replayed"),
    ("http.", "a policy reaches nothing outside; bring the fact in as a claim, a label or an argument"),
    ("net.", "a policy reaches nothing outside; compare addresses as text, or bring the fact in as a claim"),
    ("opa.", "a policy sees its input and nothing of the program that runs it"),
    ("io.jwt.", "the token is verified already: its claims are in input.principal"),
    ("crypto.", "digests and signatures are checked before policy; what is verified is in the input"),
    ("trace", "use `cotter policy eval --explain`"),
    ("print", "use `cotter policy eval --explain`"),
    ("units.", "a caller's 1e9999999 takes as long as it likes; send plain numbers, or compare texts"),
    ("walk", "name the members that matter; walking an argument takes as long as its sender likes"),
];

/// Every function of the language that a policy may call, with the number of its arguments.
#[must_use]
pub const fn allowed() -> &'static [(&'static str, usize)] {
    ALLOWED
}

/// How many arguments a builtin takes, where it may be called.
pub(super) fn arguments(name: &str) -> Option<usize> {
    ALLOWED.iter().find(|(allowed, _)| *allowed == name).map(|(_, arguments)| *arguments)
}

/// What to write instead of a function that may not be called.
pub(super) fn instead(name: &str) -> &'static str {
    let found =
        INSTEAD.iter().find(|(prefix, _)| name == *prefix || (prefix.ends_with('.') && name.starts_with(prefix)));
    found.map_or("use another function: a policy may call those on numbers, strings, sets, objects, regular expressions and parsed times that end soon and mean the same in OPA", |(_, help)| help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_allowed_builtin_exists_and_takes_so_many_arguments() {
        for (name, arguments) in ALLOWED {
            let engine = regorus::unstable::BUILTINS.get(name).map(|(_, arguments)| usize::from(*arguments));
            assert_eq!(engine, Some(*arguments), "{name}");
        }
    }

    #[test]
    fn what_runs_long_or_reads_the_outside_is_not_allowed() {
        for name in [
            "numbers.range",
            "bits.lsh",
            "time.now_ns",
            "rand.intn",
            "http.send",
            "opa.runtime",
            "trace",
            "walk",
            "net.cidr_expand",
            "units.parse",
            "units.parse_bytes",
        ] {
            assert_eq!(arguments(name), None, "{name}");
        }
        assert_eq!(arguments("count"), Some(1));
    }
}
