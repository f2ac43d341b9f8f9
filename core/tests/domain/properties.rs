//! What holds for every tool, tried on generated ones and on every tool of the captures.

use cotter_core::drift::{Class, classify};
use cotter_core::fingerprint::{Ignore, Scheme, fingerprint, fingerprint_bytes};
use cotter_core::scan::scan;
use serde_json::{Map, Number, Value, json};

use super::captures::all;

/// A small generator (xorshift) with a fixed seed, so that a failure is met again.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 5 } else { 8 }) {
            0 => Value::Null,
            1 => Value::Bool(self.below(2) == 0),
            2 => self
                .pick(&[json!(0), json!(-7), json!(1.5), json!(1e-7), json!(9_007_199_254_740_991_i64)].each_ref())
                .clone(),
            3 | 4 => Value::from(self.pick(&["", "a", "é", "\u{1f600}", "\u{fb33}", "\"\\/\u{1}", "forbidden"])),
            5 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => Value::Object(self.object(depth - 1)),
        }
    }

    fn object(&mut self, depth: usize) -> Map<String, Value> {
        let names =
            ["type", "properties", "required", "enum", "$schema", "items", "é", "\u{1f600}", "\u{fb33}", "a/b~", "not"];
        (0..self.below(6)).map(|_| (self.pick(&names).to_owned(), self.value(depth))).collect()
    }

    fn tool(&mut self) -> Value {
        let mut tool = self.object(3);
        tool.insert("name".into(), "t".into());
        for member in ["description", "inputSchema", "outputSchema", "annotations", "_meta"] {
            if self.below(2) == 0 {
                tool.insert(member.into(), self.value(4));
            }
        }
        Value::Object(tool)
    }

    /// The same value in another spelling: order of names, white space, escapes, numbers.
    fn write(&mut self, value: &Value, out: &mut String) {
        out.push_str(self.pick(&["", " ", "\n\t"]));
        match value {
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                for last in (1..members.len()).rev() {
                    members.swap(last, self.below(last + 1));
                }
                out.push('{');
                for (index, (name, member)) in members.into_iter().enumerate() {
                    out.push_str(if index == 0 { " " } else { " , " });
                    self.text(name, out);
                    out.push_str(self.pick(&[":", " : "]));
                    self.write(member, out);
                }
                out.push('}');
            }
            Value::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { "," });
                    self.write(item, out);
                }
                out.push(']');
            }
            Value::String(text) => self.text(text, out),
            Value::Number(number) if number.is_i64() && self.below(2) == 0 => out.push_str(&format!("{number}.0")),
            other => out.push_str(&other.to_string()),
        }
        out.push_str(self.pick(&["", "  "]));
    }

    fn text(&mut self, text: &str, out: &mut String) {
        out.push('"');
        for char in text.chars() {
            if self.below(3) == 0 || char < ' ' || char == '"' || char == '\\' {
                char.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04X}")));
            } else {
                out.push(char);
            }
        }
        out.push('"');
    }
}

/// Changes one thing somewhere in a value; the pointer says where.
fn mutate(random: &mut Random, value: &mut Value, path: String) -> String {
    match value {
        Value::Object(members) if !members.is_empty() && random.below(4) != 0 => {
            let name = members.keys().nth(random.below(members.len())).unwrap().clone();
            let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
            if random.below(4) == 0 {
                members.remove(&name);
                return path;
            }
            mutate(random, &mut members[&name], path)
        }
        Value::Object(members) => {
            members.insert("brandNew".into(), random.value(1));
            format!("{path}/brandNew")
        }
        Value::Array(items) if items.len() > 1 && items[0] != items[1] => {
            items.swap(0, 1);
            path
        }
        Value::Array(items) => {
            items.push(random.value(1));
            path
        }
        Value::String(text) => {
            text.push('x');
            path
        }
        Value::Number(number) => {
            let other = number.as_f64().unwrap() / 2.0 - 0.25;
            *number = Number::from_f64(other).unwrap();
            path
        }
        other => {
            *other = if other.is_null() { json!(false) } else { json!("x") };
            path
        }
    }
}

fn strict(value: &Value) -> String {
    fingerprint(value, Scheme::ToolV1, &Ignore::NONE).unwrap().to_string()
}

#[test]
fn another_spelling_never_moves_a_fingerprint() {
    let mut random = Random(0x5eed_c077_e700_0001);
    for _ in 0..500 {
        let tool = random.tool();
        let mut text = String::new();
        random.write(&tool, &mut text);
        for scheme in [Scheme::ToolV1, Scheme::ToolV1Effective] {
            let other =
                fingerprint_bytes(text.as_bytes(), scheme, &Ignore::NONE).unwrap_or_else(|e| panic!("{e}: {text}"));
            assert_eq!(other, fingerprint(&tool, scheme, &Ignore::NONE).unwrap(), "{text}");
        }
    }
}

#[test]
fn any_change_moves_the_fingerprint_and_is_reported_where_it_is() {
    let mut random = Random(0x5eed_c077_e700_0002);
    let captured: Vec<Value> = all().iter().flat_map(|c| c.tools.iter().map(|t| (*t.value).clone())).collect();
    for round in 0..3000 {
        let tool = if round % 2 == 0 { random.tool() } else { captured[random.below(captured.len())].clone() };
        let mut changed = tool.clone();
        let pointer = mutate(&mut random, &mut changed, String::new());
        assert_ne!(strict(&tool), strict(&changed), "{pointer} of {tool}");
        let drift = classify(&tool, &changed, &Ignore::NONE).unwrap_or_else(|| panic!("{pointer} of {tool}: no drift"));
        let covers = |field: &String| format!("{pointer}/").starts_with(&format!("{field}/"));
        let below = |field: &String| field.starts_with(&format!("{pointer}/"));
        assert!(drift.fields.iter().any(|f| covers(f) || below(f)), "{pointer} of {tool}: {drift:#?}");
        let effective = |tool| fingerprint(tool, Scheme::ToolV1Effective, &Ignore::NONE).unwrap();
        if drift.class == Class::Cosmetic {
            assert_eq!(effective(&tool), effective(&changed), "{pointer} of {tool}: {drift:#?}");
        }
    }
}

/// Definitions that are cheap to send. None of these may cost more than a walk over them: a fault here shows as a test
/// that does not come to an end, or as one that needs more memory than there is.
#[test]
fn a_hostile_definition_costs_no_more_than_its_size() {
    let approved = json!({"name": "t", "inputSchema": {"properties": {"x": {"enum": ["a"]}}}});
    let many = |count: usize| (0..count).map(|n| (format!("k{n}"), json!("x"))).collect::<Map<String, Value>>();
    let long = "n".repeat(1 << 20);
    let wide = json!({"name": "t", "inputSchema": {long: many(100_000)}});
    let values: Vec<String> = (0..200_000).map(|n| format!("v{n}")).collect();
    let listed = json!({"name": "t", "inputSchema": {"properties": {"x": {"enum": values}}}});
    let text = json!({"name": "t", "description": "x".repeat(1 << 20), "inputSchema": approved["inputSchema"]});
    for hostile in [wide, listed, text] {
        assert_ne!(strict(&hostile), strict(&approved));
        let drift = classify(&approved, &hostile, &Ignore::NONE).unwrap();
        assert_eq!((drift.class, drift.changes.len()), (Class::AuthorityExpanding, 1));
        assert_eq!(scan(&hostile), []);
    }
    let names = json!({"name": "t", "inputSchema": {"properties": many(5000)}});
    let drift = classify(&approved, &names, &Ignore::NONE).unwrap();
    assert_eq!((drift.class, drift.changes.len()), (Class::AuthorityExpanding, 1001));
    let found = scan(&json!(vec!["disregard"; 5000]));
    assert_eq!(found.len(), 100);
}
