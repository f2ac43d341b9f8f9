//! The reader against servers that do not want to be read.

use std::sync::atomic::{AtomicUsize, Ordering};

use cotter_core::snapshot::Sessions;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::*;
use crate::upstream::fake::{self, Fake, HELLO, Reply, events, http, json as json_reply, open_stream, script};

const PATIENT: Duration = Duration::from_secs(10);
const TIMES: Times = Times { page: Duration::from_secs(3), list: Duration::from_secs(20) };

/// A server that answers `tools/list` in this way.
async fn lists(handler: impl Fn(&fake::Seen) -> Reply + Send + Sync + 'static) -> Fake {
    Fake::legacy(move |seen| if seen.rpc() == "tools/list" { handler(seen) } else { http(405, "", "") }).await
}

fn page(seen: &fake::Seen, names: &[&str], cursor: Option<&str>) -> Reply {
    let tools: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    let mut result = json!({"tools": tools});
    if let Some(cursor) = cursor {
        result["nextCursor"] = json!(cursor);
    }
    json_reply(&seen.result(&result))
}

async fn read(fake: &Fake) -> Result<Arc<Observed>, Unfinished> {
    let conversation = fake.upstream().open().await.unwrap();
    walk::walk(&conversation, &mut Memo::default(), TIMES).await.map(|(observed, _)| observed)
}

async fn refused(handler: impl Fn(&fake::Seen) -> Reply + Send + Sync + 'static) -> ReadError {
    read(&lists(handler).await).await.unwrap_err().error
}

fn names(tools: &[ToolObject]) -> Vec<&str> {
    tools.iter().map(|tool| tool.name.as_str()).collect()
}

fn cursor(seen: &fake::Seen) -> &str {
    seen.json["params"]["cursor"].as_str().unwrap_or("none")
}

#[tokio::test]
async fn all_pages_are_read_and_an_empty_cursor_is_one() {
    let fake = lists(|seen| match cursor(seen) {
        "none" => page(seen, &["a"], Some("")),
        "" => page(seen, &["b", "c"], Some("2")),
        "2" => page(seen, &["d"], None),
        other => panic!("{other}"),
    })
    .await;
    let observed = read(&fake).await.unwrap();
    assert_eq!(names(&observed.tools), ["a", "b", "c", "d"]);
}

#[tokio::test]
async fn a_list_in_an_event_stream_is_read_as_well() {
    let fake = lists(|seen| events(&format!("data: {}\n\n", seen.result(&json!({"tools": [{"name": "a"}]}))))).await;
    assert_eq!(names(&read(&fake).await.unwrap().tools), ["a"]);
}

#[tokio::test]
async fn garbage_half_an_answer_and_nothing_each_have_their_error() {
    let garbage = refused(|_| json_reply("this is not JSON")).await;
    assert!(garbage.to_string().contains("not JSON"), "{garbage}");
    let twice =
        refused(|seen| json_reply(&seen.result(&json!({"tools": []})).replace("[]", r#"[{"name":"a","name":"b"}]"#)))
            .await;
    assert!(twice.to_string().contains("occurs twice"), "{twice}");
    let half = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n{\"jsonrpc\"";
    let half = refused(|_| Reply::Last(half.to_vec())).await;
    assert!(half.to_string().contains("ended before the answer was whole"), "{half}");
    let nothing = refused(|_| Reply::Hang(vec![])).await;
    assert!(nothing.to_string().contains("did not answer in time (page 1)"), "{nothing}");
    let shape = refused(|seen| json_reply(&seen.result(&json!({"tools": {}})))).await;
    assert!(shape.to_string().contains("`tools` is not an array"), "{shape}");
    let kind = refused(|seen| json_reply(&seen.result(&json!({"tools": [], "resultType": "input_required"})))).await;
    assert!(matches!(kind, ReadError::ResultType { page: 1 }));
}

#[tokio::test]
async fn a_hundred_megabytes_are_left_at_the_bound() {
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, " ".repeat(1 << 20)).into_bytes();
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let fake = lists(move |_| Reply::Endless(head.clone(), chunk.clone())).await;
    let conversation = fake.upstream().open().await.unwrap();
    let slow = Times { page: PATIENT, list: PATIENT };
    let error = walk::walk(&conversation, &mut Memo::default(), slow).await.unwrap_err().error;
    assert!(matches!(error, ReadError::TooLarge), "{error}");
}

#[tokio::test]
async fn a_list_that_leads_back_or_never_ends_is_refused() {
    let circle = refused(|seen| page(seen, &["a"], Some(if cursor(seen) == "1" { "2" } else { "1" }))).await;
    assert!(matches!(circle, ReadError::RepeatedCursor { page: 3 }), "{circle}");

    let fake = lists(|seen| {
        let number: usize = cursor(seen).parse().unwrap_or(0);
        assert!(number < 10_000);
        page(seen, &[&format!("t{number}")], Some(&(number + 1).to_string()))
    })
    .await;
    let endless = read(&fake).await.unwrap_err();
    assert!(matches!(endless.error, ReadError::TooManyPages), "{}", endless.error);
    assert_eq!(endless.partial.len(), 1000);
    assert_eq!(fake.asked("tools/list").len(), 1000);

    let many = refused(|seen| page(seen, &vec!["a"; 10_001], None)).await;
    assert!(matches!(many, ReadError::TooManyTools), "{many}");
    let long = refused(|seen| page(seen, &[], Some(&"x".repeat(17 * 1024)))).await;
    assert!(matches!(long, ReadError::Cursor { page: 1 }), "{long}");
}

#[tokio::test]
async fn what_was_seen_of_an_unfinished_list_is_handed_on() {
    let fake = lists(|seen| match cursor(seen) {
        "none" => page(seen, &["a", "b"], Some("2")),
        _ => json_reply("garbage"),
    })
    .await;
    let unfinished = read(&fake).await.unwrap_err();
    assert_eq!(names(&unfinished.partial), ["a", "b"]);
    assert!(unfinished.error.to_string().contains("(page 2)"), "{}", unfinished.error);
}

#[tokio::test]
async fn an_unchanged_list_is_not_parsed_again_and_a_changed_one_is() {
    let version = Arc::new(AtomicUsize::new(0));
    let serves = Arc::clone(&version);
    let fake = lists(move |seen| match (cursor(seen), serves.load(Ordering::SeqCst)) {
        ("none", 2) => page(seen, &["a"], None),
        ("none", _) => page(seen, &["a"], Some("2")),
        (_, 0) => page(seen, &["b"], None),
        _ => page(seen, &["c"], None),
    })
    .await;
    let conversation = fake.upstream().open().await.unwrap();
    let mut memo = Memo::default();
    let mut seen = Vec::new();
    for now in [0, 0, 1, 2, 0] {
        version.store(now, Ordering::SeqCst);
        seen.push(walk::walk(&conversation, &mut memo, TIMES).await.unwrap().0);
    }
    assert!(Arc::ptr_eq(&seen[0], &seen[1]));
    let lists: Vec<_> = seen.iter().map(|observed| names(&observed.tools)).collect();
    assert_eq!(lists, [vec!["a", "b"], vec!["a", "b"], vec!["a", "c"], vec!["a"], vec!["a", "b"]]);
    assert_eq!(seen[4].digest, seen[0].digest);
    assert_ne!(seen[2].digest, seen[0].digest);
    assert_ne!(seen[3].digest, seen[0].digest);
}

/// The next observation.
async fn next(observations: &mut watch::Receiver<Option<Observation>>) -> Observation {
    timeout(PATIENT, observations.changed()).await.unwrap().unwrap();
    observations.borrow_and_update().clone().unwrap()
}

#[tokio::test]
async fn the_reader_reads_at_start_on_request_and_at_the_interval() {
    let fake = lists(|seen| page(seen, &["a"], None)).await;
    let reader = Reader::start(fake.upstream(), Duration::from_secs(3600));
    let mut observations = reader.observations();
    let first = next(&mut observations).await;
    assert_eq!(names(&first.observed.unwrap().tools), ["a"]);
    assert_eq!(first.surface.unwrap().server_name, "fake");
    reader.refresh();
    next(&mut observations).await;
    assert!(timeout(Duration::from_millis(300), observations.changed()).await.is_err());
    reader.set_interval(Duration::from_millis(150));
    next(&mut observations).await;
    next(&mut observations).await;
    reader.stop().await;
    assert_eq!(fake.seen().last().unwrap().method, "DELETE");
}

#[tokio::test]
async fn an_announcement_is_a_reason_to_read() {
    let (announced, lists) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let fake = Fake::legacy(move |seen| match (seen.method.as_str(), seen.rpc()) {
        ("GET", _) if announced.fetch_add(1, Ordering::SeqCst) == 0 => {
            open_stream("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
        }
        (_, "tools/list") if lists.fetch_add(1, Ordering::SeqCst) == 0 => page(seen, &["before"], None),
        (_, "tools/list") => page(seen, &["after"], None),
        _ => http(405, "", ""),
    })
    .await;
    let reader = Reader::start(fake.upstream(), Duration::from_secs(3600));
    let mut observations = reader.observations();
    let wanted = async {
        loop {
            let seen = next(&mut observations).await.observed.unwrap();
            if names(&seen.tools) == ["after"] {
                return;
            }
        }
    };
    timeout(PATIENT, wanted).await.unwrap();
}

#[tokio::test]
async fn failures_are_told_and_tried_again_until_the_server_is_back() {
    let count = AtomicUsize::new(0);
    let fake =
        lists(
            move |seen| {
                if count.fetch_add(1, Ordering::SeqCst) < 2 { json_reply("garbage") } else { page(seen, &["a"], None) }
            },
        )
        .await;
    let reader = Reader::start(fake.upstream(), Duration::from_secs(3600));
    let mut observations = reader.observations();
    assert!(next(&mut observations).await.observed.is_err());
    assert!(next(&mut observations).await.observed.is_err());
    assert!(next(&mut observations).await.observed.is_ok());
}

#[tokio::test]
async fn a_child_that_died_is_started_anew_and_read_again() {
    let body = r#"read -r line; echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"a"}]}}'; exit 0"#;
    let upstream = script(&format!("{HELLO}{body}"), Sessions::PerSession);
    let reader = Reader::start(upstream.clone(), Duration::from_secs(3600));
    let mut observations = reader.observations();
    for _ in 0..2 {
        assert_eq!(names(&next(&mut observations).await.observed.unwrap().tools), ["a"]);
    }
    reader.stop().await;
    upstream.shutdown().await;
}

#[tokio::test]
async fn a_program_that_was_replaced_is_seen_when_the_next_session_starts_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("list");
    let body = format!(
        r#"
list=$(cat {})
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  echo "{{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{{\"tools\":[{{\"name\":\"$list\"}}]}}}}"
done"#,
        file.display()
    );
    std::fs::write(&file, "before").unwrap();
    let upstream = script(&format!("{HELLO}{body}"), Sessions::PerSession);
    let reader = Reader::start(upstream.clone(), Duration::from_secs(3600));
    let mut observations = reader.observations();
    assert_eq!(names(&next(&mut observations).await.observed.unwrap().tools), ["before"]);
    let same = upstream.open().await.unwrap();
    assert!(same.own_list(same.session()).await.unwrap().is_none(), "it is the list that the reader saw");
    assert!(timeout(Duration::from_millis(500), observations.changed()).await.is_err());

    std::fs::write(&file, "after").unwrap();
    let newer = upstream.open().await.unwrap();
    let own = newer.own_list(newer.session()).await.unwrap().unwrap();
    assert_eq!(names(&own.tools), ["after"], "a call through it is decided on this");
    assert_eq!(names(&next(&mut observations).await.observed.unwrap().tools), ["after"]);
    assert!(newer.own_list(newer.session()).await.unwrap().is_none(), "the reader caught up");
    drop((same, newer));
    reader.stop().await;
    upstream.shutdown().await;
}
