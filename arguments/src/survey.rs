//! What a schema may cost, found out before the schema library sees it.
//!
//! Two things that no bound on bytes bounds: how many schemas meet one value (`allOf` of two references to an `allOf` of two
//! references …), and how deep the check goes for one level of the value. Both are found on the graph of the schema, in time by its
//! size.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::keyword;

/// Bytes of a schema. The largest of 1,008 tools of public servers has 21 KiB.
const MAX_BYTES: usize = 256 * 1024;
/// Schemas in it, each compiled to half a kilobyte.
const MAX_SCHEMAS: usize = 4096;
/// Patterns in it; each may take a millisecond to compile.
const MAX_PATTERNS: usize = 128;
/// Schemas that meet one value, counted as often as they do.
const MAX_WEIGHT: u32 = 4096;
/// Schemas inside each other for one value. Arguments nest 64 levels, and each takes so many steps of the stack.
const MAX_CHAIN: u32 = 16;
/// Values inside one option of `enum`, or of `const`: a comparison costs as much.
const MAX_OPTION: usize = 256;

/// Why a schema is not checked against at all.
pub(crate) type Why = &'static str;

/// One schema of the graph, by the address of its value.
type Node = usize;

#[derive(Default)]
struct Survey<'s> {
    nodes: HashMap<Node, Vec<&'s Value>>,
    patterns: usize,
}

/// How the schemas that meet the same value hang together below one of them.
#[derive(Clone, Copy)]
struct Size {
    weight: u32,
    chain: u32,
}

/// Finds out whether a schema may be compiled and used. `schema` holds no reference but those within itself.
pub(crate) fn survey(schema: &Value) -> Result<(), Why> {
    if schema.to_string().len() > MAX_BYTES {
        return Err("the schema is larger than 256 KiB");
    }
    let mut survey = Survey::default();
    survey.visit(&Document::new(schema))?;
    let mut sizes = HashMap::new();
    for node in survey.nodes.keys() {
        survey.size(*node, &mut sizes)?;
    }
    Ok(())
}

fn node(schema: &Value) -> Node {
    std::ptr::from_ref(schema).addr()
}

impl<'s> Survey<'s> {
    /// Takes in a schema and all that it reaches. References may lead anywhere in the document, also to where no schema is expected.
    fn visit(&mut self, document: &Document<'s>) -> Result<(), Why> {
        let mut open = vec![document.root];
        while let Some(schema) = open.pop() {
            let Value::Object(members) = schema else { continue };
            if self.nodes.contains_key(&node(schema)) {
                continue;
            }
            if self.nodes.len() >= MAX_SCHEMAS {
                return Err("the schema holds more than 4096 schemas");
            }
            self.count(members)?;
            let mut same = Vec::new();
            for inner in keyword::inner(members) {
                open.push(inner.schema);
                if inner.holds.in_place() {
                    same.push(inner.schema);
                }
            }
            if let Some(target) = members.get("$ref").and_then(Value::as_str).and_then(|at| document.resolve(at)) {
                open.push(target);
                same.push(target);
            }
            self.nodes.insert(node(schema), same);
        }
        Ok(())
    }

    fn count(&mut self, members: &Map<String, Value>) -> Result<(), Why> {
        let by_name = members.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
        self.patterns += by_name + usize::from(members.contains_key("pattern"));
        if self.patterns > MAX_PATTERNS {
            return Err("the schema holds more than 128 patterns");
        }
        let options = members.get("enum").and_then(Value::as_array).into_iter().flatten().chain(members.get("const"));
        let large = |option: &Value| values(option) > MAX_OPTION;
        if options.into_iter().any(large) {
            Err("an option of `enum` or `const` holds more than 256 values")
        } else {
            Ok(())
        }
    }

    /// The size below a schema. Depth first, so the stack is no deeper than the chain may be.
    fn size(&self, at: Node, sizes: &mut HashMap<Node, Option<Size>>) -> Result<Size, Why> {
        match sizes.get(&at) {
            Some(Some(size)) => return Ok(*size),
            Some(None) => return Err("the schema refers to itself for the same value"),
            None => {}
        }
        if sizes.values().filter(|size| size.is_none()).count() > MAX_CHAIN as usize {
            return Err("more than 16 schemas hold each other for the same value");
        }
        sizes.insert(at, None);
        let mut whole = Size { weight: 1, chain: 1 };
        for inner in self.nodes.get(&at).into_iter().flatten() {
            let size = if inner.is_object() { self.size(node(inner), sizes)? } else { Size { weight: 1, chain: 0 } };
            whole.weight = whole.weight.saturating_add(size.weight);
            whole.chain = whole.chain.max(size.chain + 1);
        }
        if whole.weight > MAX_WEIGHT {
            return Err("more than 4096 schemas meet the same value");
        }
        if whole.chain > MAX_CHAIN {
            return Err("more than 16 schemas hold each other for the same value");
        }
        sizes.insert(at, Some(whole));
        Ok(whole)
    }
}

/// The values inside a value, itself counted.
fn values(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(values).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(values).sum::<usize>(),
        _ => 1,
    }
}

/// A document with what its own references may lead to.
pub(crate) struct Document<'s> {
    root: &'s Value,
    anchors: HashMap<&'s str, &'s Value>,
}

impl<'s> Document<'s> {
    pub(crate) fn new(root: &'s Value) -> Self {
        let mut document = Self { root, anchors: HashMap::new() };
        document.collect(root);
        document
    }

    fn collect(&mut self, value: &'s Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            Value::Object(members) => {
                if let Some(anchor) = members.get("$anchor").and_then(Value::as_str) {
                    self.anchors.entry(anchor).or_insert(value);
                }
                members.values().for_each(|member| self.collect(member));
            }
            _ => {}
        }
    }

    /// What a reference leads to: `#`, `#/a/pointer` or `#anchor`.
    pub(crate) fn resolve(&self, reference: &str) -> Option<&'s Value> {
        let fragment = decode(reference.strip_prefix('#')?)?;
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.root.pointer(&fragment);
        }
        self.anchors.get(fragment.as_str()).copied()
    }
}

/// Takes percent-encoding out of a fragment (RFC 3986 section 2.1).
fn decode(fragment: &str) -> Option<String> {
    let mut parts = fragment.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(part.get(2..)?.as_bytes());
    }
    String::from_utf8(bytes).ok()
}
