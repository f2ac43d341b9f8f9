//! Generated inputs of the documented form: few names, so that they meet, and the odd value that the form permits.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::dice::Dice;

const SCOPES: &[&str] = &["case:read", "case:write", "mail:send", "case", "case:*"];
const TOOLS: &[&str] = &["case_list", "case_tag", "refund", "mail_send", "case_tag2"];
const TENANTS: &[&str] = &["tenant-7", "tenant-8", "tenant-9"];
const EFFECTS: &[&str] = &["Read", "Write", "Destructive", "External"];
const STATES: &[&str] = &["Matched", "Matched", "Drifted", "Added", "Unpinned"];
/// Around the hours of the modules, at both changes of the clock in Berlin, and with a fraction of a second.
const TIMES: &[&str] = &[
    "2026-11-30T12:00:00Z",
    "2026-11-30T07:59:59Z",
    "2026-11-30T08:00:00Z",
    "2026-11-30T17:59:59.999999999Z",
    "2026-11-30T18:00:00Z",
    "2026-11-29T12:00:00Z",
    "2026-03-29T00:59:59Z",
    "2026-03-29T01:00:00Z",
    "2026-10-25T00:30:00Z",
    "2026-10-25T16:00:00Z",
    "2028-02-29T23:59:59.5Z",
];
pub(crate) const WORDS: &[&str] = &[
    "C-41",
    "C-13",
    "C-1234567890",
    "C-٤١",
    "C-9\n",
    "",
    "a",
    "abc-cab",
    "Straße",
    "İstanbul",
    "ǅ",
    "e\u{301}",
    "日本",
    "🦀🦀",
    "a b\tc",
    "  x ",
    "%s%d",
    "\\d",
    "\"quoted\"",
    "1.2.3",
    "10",
    "case_tag",
    "<b>&</b>",
    "\u{2028}",
    "\u{7f}",
];

fn set(dice: &mut Dice, items: &[&str]) -> BTreeSet<String> {
    dice.some(items).iter().map(|item| (*item).to_owned()).collect()
}

/// An object whose keys are what is permitted; now and then one of them says false.
fn permitted(dice: &mut Dice, items: &[&str]) -> Value {
    let members = dice.some(items).into_iter().map(|item| (item.to_owned(), json!(dice.roll(12) != 0)));
    Value::Object(members.collect())
}

fn actor(dice: &mut Dice) -> Value {
    json!({"issuer": "https://login.example.com", "subject": dice.pick(&["bot", "mia"])})
}

fn principal(dice: &mut Dice) -> Value {
    let delegated = dice.roll(2) == 0;
    let mut principal = json!({
        "issuer": "https://login.example.com",
        "subject": dice.pick(&["mia", "bot", "42"]),
        "groups": dice.few(&["desk", "night"], 2),
        "actorChain": [],
        "delegated": delegated,
    });
    let members = principal.as_object_mut().unwrap();
    if dice.roll(if delegated { 2 } else { 6 }) != 0 {
        members.insert("scopes".to_owned(), json!(set(dice, SCOPES)));
    }
    if dice.roll(6) != 0 {
        members.insert("tenant".to_owned(), json!(dice.pick(TENANTS)));
    }
    if dice.roll(5) == 0 {
        members.insert("actor".to_owned(), actor(dice));
        members.insert("actorChain".to_owned(), json!([actor(dice), actor(dice)]));
    }
    if dice.roll(6) == 0 {
        members.insert("serviceAccount".to_owned(), json!({"namespace": "desk", "name": "bot"}));
    }
    principal
}

fn grants(dice: &mut Dice) -> Value {
    let grant = |dice: &mut Dice| {
        json!({
            "scopes": permitted(dice, SCOPES),
            "effects": permitted(dice, EFFECTS),
            "tools": permitted(dice, TOOLS),
            "tenants": permitted(dice, TENANTS),
            "ancestors": dice.few(&["parent", "root"], 2),
        })
    };
    Value::Object((0..dice.roll(4)).map(|number| (format!("g{number}"), grant(dice))).collect())
}

fn tool(dice: &mut Dice, name: &str) -> Value {
    let mut pin = json!({"state": dice.pick(STATES)});
    if pin["state"] == "Drifted" {
        pin["class"] = json!(dice.pick(&["Text", "Schema"]));
    }
    let mut tool = json!({
        "name": name,
        "scope": dice.pick(SCOPES),
        "effect": dice.pick(EFFECTS),
        "approval": dice.pick(&["Never", "Never", "Always"]),
        "pin": pin,
    });
    declare(dice, tool.as_object_mut().unwrap());
    tool
}

/// What an owner need not declare, and what a server need not say.
fn declare(dice: &mut Dice, tool: &mut Map<String, Value>) {
    if dice.roll(2) == 0 {
        tool.insert("idempotencyKey".to_owned(), json!(dice.pick(&["/idempotency_key", "/a~1b/0"])));
    }
    if dice.roll(2) == 0 {
        let bounds = ["timeoutMs", "resultBytes"].map(|name| (name.to_owned(), json!(1 + dice.roll(100_000))));
        let kept = bounds.into_iter().filter(|_| dice.roll(4) != 0).collect();
        tool.insert("limits".to_owned(), Value::Object(kept));
    }
    if dice.roll(2) == 0 {
        let hints = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
        let said = dice.few(&hints, 2).into_iter().map(|name| (name.to_owned(), json!(dice.roll(2) == 0)));
        let mut said: Map<String, Value> = said.collect();
        if dice.roll(3) == 0 {
            said.insert("title".to_owned(), json!(dice.pick(WORDS)));
        }
        tool.insert("annotations".to_owned(), Value::Object(said));
    }
}

/// What is known of a call: its digest, and, as it will be one day, what became of it before.
fn history(dice: &mut Dice, input: &mut Value) {
    let digests = ["44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a", &"0".repeat(64)];
    input["argsDigest"] = json!(format!("sha256:{}", dice.pick(&digests)));
    if dice.roll(3) == 0 {
        let states = ["Pending", "Approved", "Denied", "Expired", "Used"];
        input["approval"] = json!({"state": dice.pick(&states), "id": dice.pick(&["support-1", "support-2"])});
    }
    if dice.roll(3) == 0 {
        let states = ["Reserved", "Dispatched", "Succeeded", "Failed", "Unknown"];
        input["ledger"] = json!({"state": dice.pick(&states)});
    }
}

pub(crate) fn number(dice: &mut Dice) -> Value {
    let numbers = [
        json!(0),
        json!(1),
        json!(-1),
        json!(100),
        json!(100.0),
        json!(100.5),
        json!(101),
        json!(50000),
        json!(50001),
        json!(0.1),
        json!(-2.5),
        json!(2.5),
        json!(3.5),
        json!(1e21),
        json!(9_007_199_254_740_993_u64),
        json!(u64::MAX),
        json!(1e-7),
    ];
    numbers[dice.roll(numbers.len())].clone()
}

/// Arguments as a model may make them up. What modules convert or match is of the type that they expect: an error is not an answer.
pub(crate) fn arguments(dice: &mut Dice) -> Value {
    let mut args = Map::new();
    let mut put = |name: &str, value: Value| drop(args.insert(name.to_owned(), value));
    for name in ["case_id", "text"] {
        if dice.roll(3) != 0 {
            put(name, json!(dice.pick(WORDS)));
        }
    }
    if dice.roll(3) != 0 {
        put("amount", if dice.roll(8) == 0 { json!(dice.pick(&["7", "-3", "1000"])) } else { number(dice) });
    }
    if dice.roll(3) != 0 {
        let other = [json!("10"), json!(null), json!([1]), json!({"x": 1}), json!(true)];
        put("amount_cents", if dice.roll(6) == 0 { other[dice.roll(5)].clone() } else { number(dice) });
    }
    if dice.roll(2) == 0 {
        put("number", number(dice));
        put("tags", json!((0..dice.roll(4)).map(|_| dice.pick(WORDS)).collect::<Vec<_>>()));
        put("nested", json!({"a": {"b": dice.pick(WORDS), "c": number(dice)}, "d": [null, true, dice.pick(WORDS)]}));
    }
    Value::Object(args)
}

/// An input about one tool, or about many.
pub(crate) fn any_input(dice: &mut Dice, many: bool) -> Value {
    let listing = many || dice.roll(3) == 0;
    let kind = if listing { "list" } else { "call" };
    let mut tenants = permitted(dice, TENANTS);
    if dice.roll(5) == 0 {
        tenants["*"] = json!(dice.roll(8) != 0);
    }
    let mut input = json!({
        "version": "cotter.input/v1",
        "era": dice.pick(&["modern", "legacy"]),
        "protocol": "mcp",
        "now": dice.pick(TIMES),
        "server": {"namespace": "support", "name": "support", "audience": "support://mcp", "labels": {"team": "desk"}, "tenants": tenants},
        "principal": principal(dice),
        "grants": grants(dice),
        "operation": {"method": format!("tools/{kind}"), "kind": kind},
    });
    if many {
        let tools = dice.some(TOOLS).into_iter().map(|name| (name.to_owned(), tool(dice, name)));
        input["tools"] = Value::Object(tools.collect());
    } else {
        let name = dice.pick(TOOLS);
        input["tool"] = tool(dice, name);
    }
    if !listing && dice.roll(6) != 0 {
        input["args"] = arguments(dice);
        history(dice, &mut input);
    }
    input
}
