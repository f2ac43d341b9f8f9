use cotter_core::{reason::DenyReason, snapshot::Sessions};
use serde_json::json;

use super::super::fake::{HELLO, script, script_within};
use super::*;
use crate::session::owner;

/// Answers each request with a result that holds its own line's end, and logs to both streams as real servers do.
const ECHO: &str = r#"
echo 'a banner that strayed to stdout'
echo 'a log line' >&2
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  [ -n "$id" ] && echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"pid\":$$}}"
done
"#;

fn server(body: &str, sessions: Sessions) -> Upstream {
    script(&format!("{HELLO}{body}"), sessions)
}

async fn open(body: &str) -> (Upstream, Conversation) {
    let upstream = server(body, Sessions::PerSession);
    let conversation = upstream.open().await.unwrap();
    (upstream, conversation)
}

/// A number of seconds that no other run of the tests sleeps for, and by which a process is found.
fn mark(number: u32) -> String {
    format!("{number}.{}", std::process::id())
}

/// Whether any process has this word in its command line.
fn runs(word: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        // The test itself names the word in its own arguments at most as a filter.
        String::from_utf8_lossy(&line).contains(word) && entry.file_name() != std::process::id().to_string().as_str()
    })
}

#[tokio::test]
async fn calls_in_flight_at_once_get_their_own_answers() {
    let (upstream, conversation) = open(ECHO).await;
    assert_eq!(conversation.surface().transport, "stdio");
    let calls = (0..20).map(|_| call(&conversation, "{}"));
    for outcome in futures::future::join_all(calls).await {
        assert!(result(outcome)["pid"].is_u64());
    }
    upstream.shutdown().await;
}

#[tokio::test]
async fn a_message_is_one_line_whatever_white_space_its_arguments_have() {
    let body = r#"read -r line; echo "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"line\":$line}}"; cat >/dev/null"#;
    let (upstream, conversation) = open(body).await;
    let said = result(call(&conversation, "{\n\"a\":\r\n1}").await);
    assert_eq!(said["line"]["params"]["arguments"], json!({"a": 1}));
    upstream.shutdown().await;
}

#[tokio::test]
async fn sessions_have_processes_of_their_own_or_share_one() {
    for (sessions, same) in [(Sessions::PerSession, false), (Sessions::Shared, true)] {
        let upstream = server(ECHO, sessions);
        let (one, two) = (upstream.open().await.unwrap(), upstream.open().await.unwrap());
        let (one, two) = (result(call(&one, "{}").await), result(call(&two, "{}").await));
        assert_eq!(one == two, same, "{sessions:?}");
        upstream.shutdown().await;
    }
}

/// Opens conversations for a principal until that is refused, and says why.
async fn open_all(upstream: &Upstream, owner: &Arc<Owner>) -> (Vec<Conversation>, UpstreamError) {
    let mut held = Vec::new();
    loop {
        match upstream.open_for(Some(owner)).await {
            Ok(conversation) => held.push(conversation),
            Err(error) => return (held, error),
        }
    }
}

#[tokio::test]
async fn no_principal_takes_all_processes_and_none_takes_the_readers() {
    let upstream = server(ECHO, Sessions::PerSession);
    let (mallory, alice, bob) = (owner("mallory"), owner("alice"), owner("bob"));
    let (mut first, refused) = open_all(&upstream, &mallory).await;
    assert_eq!(first.len(), 31);
    assert!(matches!(refused, UpstreamError::Share(31)), "{refused}");
    assert_eq!(DenyReason::from(&refused), DenyReason::TooManySessions);
    let (second, _) = open_all(&upstream, &alice).await;
    assert_eq!(second.len(), 31, "the others have as much");
    let (none, refused) = open_all(&upstream, &bob).await;
    assert!(none.is_empty() && matches!(refused, UpstreamError::Busy(62)), "{refused}");
    assert_eq!(DenyReason::from(&refused), DenyReason::TooManySessions);
    let reader = upstream.open().await.unwrap();
    assert!(result(call(&reader, "{}").await)["pid"].is_u64(), "the reader has a place of its own");
    first.pop().unwrap().close().await;
    assert!(upstream.open_for(Some(&bob)).await.is_ok(), "a process that ended makes room");
    upstream.shutdown().await;
}

#[tokio::test]
async fn a_process_that_all_share_is_nobodys_share() {
    let upstream = server(ECHO, Sessions::Shared);
    let mallory = owner("mallory");
    let mut held = Vec::new();
    for _ in 0..100 {
        held.push(upstream.open_for(Some(&mallory)).await.unwrap());
    }
    assert_eq!((upstream.most_sessions(), server(ECHO, Sessions::PerSession).most_sessions()), (u32::MAX, 62));
    upstream.shutdown().await;
}

#[tokio::test]
async fn a_child_sees_what_is_declared_and_little_else() {
    let body = r#"read -r line; n=$(env | wc -l); echo "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"declared\":\"$DECLARED\",\"cargo\":\"$CARGO\"}}"; cat >/dev/null"#;
    let (upstream, conversation) = open(body).await;
    assert!(std::env::var_os("CARGO").is_some(), "the test runs under cargo");
    assert_eq!(result(call(&conversation, "{}").await), json!({"declared": "yes", "cargo": ""}));
    upstream.shutdown().await;
}

#[tokio::test]
async fn a_child_that_dies_fails_what_was_dispatched_and_says_how_it_ended() {
    let (_upstream, conversation) = open("read -r line; exit 3").await;
    let lost = call(&conversation, "{}").await.unwrap_err();
    assert!(lost.dispatched());
    assert_eq!(lost.to_string(), "the server cannot be reached: its process exited with status 3");
    conversation.ended().await;
    let later = call(&conversation, "{}").await.unwrap_err();
    assert!(!later.dispatched() && !conversation.is_alive(), "{later}");
}

#[tokio::test]
async fn a_shared_child_that_died_is_started_anew_and_that_counts_as_a_change() {
    let upstream = server("read -r line; exit 0", Sessions::Shared);
    let first = upstream.open().await.unwrap();
    let changes = upstream.changes();
    assert!(call(&first, "{}").await.is_err());
    let second = upstream.open().await.unwrap();
    assert!(second.is_alive());
    assert_eq!(*changes.borrow(), 1);
    upstream.shutdown().await;
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_fails_its_own_request() {
    for (line, fault) in [
        (r#"{"jsonrpc":"2.0","id":2,"result":{"a":1,"a":2}}"#, "twice"),
        (r#"{"jsonrpc":"2.0","id":2,"result":7}"#, "not an object"),
        (r#"{"jsonrpc":"2.0","id":2,"#, "not JSON"),
        (r#"[{"jsonrpc":"2.0","id":2,"result":{}}]"#, "array of messages"),
    ] {
        let (upstream, conversation) = open(&format!("read -r line; echo '{line}'; cat >/dev/null")).await;
        let error = call(&conversation, "{}").await.unwrap_err();
        assert!(error.to_string().contains(fault) && error.dispatched(), "{error}");
        assert!(conversation.is_alive());
        upstream.shutdown().await;
    }
}

#[tokio::test]
async fn half_a_line_and_silence_are_failures_of_their_own() {
    let (_upstream, conversation) = open(r#"read -r line; printf '{"jsonrpc":"2.0","id":2,"res'"#).await;
    assert_eq!(call(&conversation, "{}").await, Err(CallError::Malformed(Fault::Truncated)));

    let (upstream, conversation) = open(r#"read -r line; printf '{"jsonrpc'; cat >/dev/null"#).await;
    let outcome = call_within(&conversation, "{}", Duration::from_millis(200)).await;
    assert_eq!(outcome, Err(CallError::Timeout { dispatched: true }));
    upstream.shutdown().await;
}

#[tokio::test]
async fn a_line_without_end_and_noise_without_end_end_the_conversation() {
    let (_upstream, conversation) = open("read -r line; tr '\\0' x < /dev/zero").await;
    assert!(matches!(call(&conversation, "{}").await, Err(CallError::TooLarge { .. })));
    let (_upstream, conversation) = open("read -r line; yes noise").await;
    assert_eq!(call(&conversation, "{}").await, Err(CallError::Malformed(Fault::Noise(1000))));
    conversation.ended().await;
}

#[tokio::test]
async fn a_call_that_is_late_is_cancelled_and_its_late_answer_is_nobodys() {
    let body = r#"
read -r line
read -r cancelled
echo '{"jsonrpc":"2.0","id":2,"result":{"late":true}}'
read -r line
case "$cancelled" in
  *notifications/cancelled*'"requestId":2'*) echo '{"jsonrpc":"2.0","id":3,"result":{"told":true}}' ;;
esac
cat >/dev/null"#;
    let (upstream, conversation) = open(body).await;
    assert!(call_within(&conversation, "{}", Duration::from_millis(100)).await.is_err());
    assert_eq!(result(call(&conversation, "{}").await), json!({"told": true}));
    upstream.shutdown().await;
}

#[tokio::test]
async fn questions_are_answered_and_announcements_are_heard() {
    let body = r#"
echo '{"jsonrpc":"2.0","id":"p","method":"ping"}'; read -r pong
echo '{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{}}'; read -r no
echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
read -r line
echo "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"pong\":$pong,\"no\":$no}}"
cat >/dev/null"#;
    let upstream = server(body, Sessions::PerSession);
    let mut changes = upstream.changes();
    let conversation = upstream.open().await.unwrap();
    tokio::time::timeout(PATIENT, changes.changed()).await.unwrap().unwrap();
    let said = result(call(&conversation, "{}").await);
    assert_eq!(said["pong"], json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
    assert_eq!(said["no"]["error"]["code"], -32601);
    upstream.shutdown().await;
}

#[tokio::test]
async fn a_server_that_ignores_its_end_is_killed_with_all_that_it_started() {
    // The mark is on the grandchild, which ignores SIGTERM like its parent.
    let mark = mark(86001);
    let body = format!("trap '' TERM; sleep {mark} & echo ready; while :; do sleep {mark}; done");
    let (upstream, conversation) = open(&body).await;
    assert!(runs(&mark));
    let began = std::time::Instant::now();
    conversation.close().await;
    gone(&mark).await;
    assert!(began.elapsed() >= Duration::from_secs(4), "it was asked twice first");
    upstream.shutdown().await;
}

/// Waits for it: a group was killed, and that a process of it is gone is seen a moment later.
async fn gone(word: &str) {
    for _ in 0..100 {
        if !runs(word) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{word} still runs");
}

#[tokio::test]
async fn what_a_server_started_ends_with_it_even_if_it_ends_by_itself() {
    let mark = mark(86002);
    let body = format!("sleep {mark} >/dev/null 2>&1 & read -r line; exit 0");
    let (_upstream, conversation) = open(&body).await;
    assert!(call(&conversation, "{}").await.is_err());
    gone(&mark).await;
}

#[tokio::test]
async fn a_server_that_ends_with_its_input_is_not_waited_for() {
    let (upstream, conversation) = open(ECHO).await;
    let pid = result(call(&conversation, "{}").await)["pid"].to_string();
    let began = std::time::Instant::now();
    drop(conversation);
    upstream.shutdown().await;
    assert!(began.elapsed() < Duration::from_secs(2));
    // Not even as a zombie.
    assert!(!std::path::Path::new("/proc").join(pid).exists());
}

#[tokio::test]
async fn a_server_that_cannot_be_started_or_says_nothing_is_named() {
    let config = snapshot::Upstream::Child {
        command: vec!["/nowhere/server".to_owned()],
        env: std::collections::BTreeMap::new(),
        sessions: Sessions::PerSession,
    };
    let error = Upstream::new(&config, super::super::fake::BOUNDS, None).unwrap().open().await.unwrap_err();
    assert!(error.to_string().contains(r#"failed to start "/nowhere/server""#), "{error}");
    let silent = script_within("cat >/dev/null", Sessions::PerSession, Duration::from_millis(200));
    let error = silent.open().await.unwrap_err();
    assert_eq!(error.to_string(), "failed to open a session with `initialize`: the server did not answer in time");
    let gone = script("exit 7", Sessions::PerSession).open().await.unwrap_err();
    assert!(gone.to_string().contains("its process exited with status 7"), "{gone}");
    silent.shutdown().await;
}

#[tokio::test]
async fn a_modern_server_over_stdio_is_asked_what_it_is() {
    let body = r#"
read -r line
echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}'
read -r discover
echo '{"jsonrpc":"2.0","id":2,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}'
read -r line
echo "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"line\":$line}}"
cat >/dev/null"#;
    let upstream = script(body, Sessions::PerSession);
    let conversation = upstream.open().await.unwrap();
    assert_eq!(conversation.surface().protocol, "2026-07-28");
    let said = result(call(&conversation, "{}").await);
    let meta = &said["line"]["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    upstream.shutdown().await;
}
