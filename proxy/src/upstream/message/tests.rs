use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn built(era: Era, arguments: Option<&RawValue>, meta: Option<&RawValue>) -> String {
    let asked = Call { arguments, meta, deadline: Duration::ZERO, result_bytes: 0 };
    String::from_utf8(call(7, era, "case_tag", &asked)).unwrap()
}

#[test]
fn arguments_pass_byte_for_byte() {
    let arguments = raw(r#"{ "id" : 12345678901234567890123, "x":1.0 ,"y":"é\u00e9"}"#);
    let text = built(Era::Legacy, Some(&arguments), None);
    assert!(text.contains(arguments.get()), "{text}");
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&value["method"], &value["id"], &value["params"]["name"]),
        (&json!("tools/call"), &json!(7), &json!("case_tag"))
    );
    assert_eq!(value["params"].get("_meta"), None);
}

#[test]
fn a_modern_call_carries_the_sidecars_own_meta_and_the_callers_rest() {
    let meta = raw(
        r#"{"progressToken":1,"io.modelcontextprotocol/clientInfo":{"name":"evil"},"io.modelcontextprotocol\/x":1}"#,
    );
    let text = built(Era::Modern, None, Some(&meta));
    strict::check(text.as_bytes(), Limits::default()).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    let meta = &value["params"]["_meta"];
    assert_eq!(meta["progressToken"], 1);
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], MODERN);
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "cotter");
    assert_eq!(meta.get("io.modelcontextprotocol/x"), None);
    assert_eq!(value["params"].get("arguments"), None);
}

#[test]
fn a_legacy_call_carries_the_callers_meta_alone() {
    let meta = raw(r#"{"progressToken":"a"}"#);
    let value: Value = serde_json::from_str(&built(Era::Legacy, None, Some(&meta))).unwrap();
    assert_eq!(value["params"]["_meta"], json!({"progressToken": "a"}));
}

#[test]
fn every_message_is_strict_json() {
    for message in [
        initialize(1),
        initialized(),
        discover(2),
        listen(3),
        cancelled(4),
        reply("\"a\"", "ping"),
        reply("5", "sampling/createMessage"),
        list(6, Era::Legacy, None),
        list(7, Era::Modern, None),
        list(8, Era::Legacy, Some("a\"\n")),
        list(9, Era::Modern, Some("")),
    ] {
        strict::check(&message, Limits::default()).unwrap();
    }
    let value: Value = serde_json::from_slice(&list(9, Era::Modern, Some(""))).unwrap();
    assert_eq!(value["params"]["cursor"], "");
}

fn fault(text: &str) -> Fault {
    match read(&Bytes::copy_from_slice(text.as_bytes())) {
        Err(fault) | Ok(Incoming::Response { answer: Err(fault), .. }) => fault,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn a_result_is_handed_on_as_the_exact_bytes() {
    let bytes = Bytes::from_static(br#" {"jsonrpc":"2.0","result": { "a" : 1.0 } ,"id":3}"#);
    let Ok(Incoming::Response { id: 3, answer: Ok(Answer::Result(result)) }) = read(&bytes) else { panic!() };
    assert_eq!(&*result, br#"{ "a" : 1.0 }"#);
}

#[test]
fn an_answer_that_could_be_read_in_two_ways_is_a_fault() {
    assert!(matches!(fault(r#"{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}"#), Fault::Json(_)));
    assert!(matches!(fault(r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#), Fault::Json(_)));
    assert!(matches!(fault(r#"{"jsonrpc":"2.0","id":1,"result":{}} x"#), Fault::Json(_)));
    assert!(matches!(
        fault(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"a":{}{}}}}}"#, "[".repeat(70), "]".repeat(70))),
        Fault::Json(_)
    ));
    assert_eq!(fault(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}"#), Fault::NotOneOutcome);
    assert_eq!(fault(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#), Fault::NotOneOutcome);
    assert_eq!(fault(r#"{"jsonrpc":"2.0","id":1}"#), Fault::NotOneOutcome);
    assert_eq!(fault(r#"{"jsonrpc":"2.0","id":1,"result":null}"#), Fault::ResultShape);
    assert_eq!(fault(r#"{"jsonrpc":"2.0","id":1,"result":[]}"#), Fault::ResultShape);
    assert_eq!(fault(r#"{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"x"}}"#), Fault::ErrorShape);
    assert_eq!(fault(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#), Fault::ErrorShape);
    assert_eq!(fault(r#"{"jsonrpc":"1.0","id":1,"result":{}}"#), Fault::NotAMessage);
    assert_eq!(fault(r#"{"id":1,"result":{}}"#), Fault::NotAMessage);
    assert_eq!(fault(r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#), Fault::Batch);
    assert_eq!(fault("7"), Fault::NotAMessage);
}

#[test]
fn an_id_that_is_not_exactly_ours_answers_nothing() {
    for id in ["null", "\"1\"", "1.0", "-1", "1e0"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        assert!(matches!(read(&Bytes::from(text)), Ok(Incoming::Stray)), "{id}");
    }
}

#[test]
fn what_a_server_asks_and_tells_is_told_apart() {
    let is = |text: &'static str| read(&Bytes::from_static(text.as_bytes()));
    assert!(
        matches!(is(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#), Ok(Incoming::Request { id, .. }) if id == "\"a\"")
    );
    assert!(matches!(is(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#), Ok(Incoming::Notification { .. })));
    assert!(is(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#).is_err());
    assert!(is(r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#).is_err());
}
