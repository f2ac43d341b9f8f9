use super::*;

/// All data, with the stream given in pieces of `size` bytes.
fn events(text: &str, size: usize) -> Vec<String> {
    let (mut parser, mut out) = (Parser::new(1000), Vec::new());
    for chunk in text.as_bytes().chunks(size) {
        parser.push(chunk);
        while let Some(data) = parser.next().unwrap() {
            out.push(String::from_utf8(data.to_vec()).unwrap());
        }
    }
    out
}

#[test]
fn events_are_the_same_however_the_bytes_come() {
    let cases = [
        ("data: a\n\n", vec!["a"]),
        ("data:a\r\n\r\ndata:  b\r\n\r\n", vec!["a", " b"]),
        ("data: a\r\rdata: b\r\r", vec!["a", "b"]),
        ("data: a\ndata: b\ndata\n\n", vec!["a\nb\n"]),
        ("event: message\nid: 3\nretry: 3000\ndata: {}\n\n", vec!["{}"]),
        ("id: 0\nretry: 3000\ndata:\n\ndata: {}\n\n", vec!["{}"]),
        (": keep-alive\n\n: another\ndata: x\n\n", vec!["x"]),
        ("event: other\ndata: no\n\ndata: yes\n\n", vec!["yes"]),
        ("\u{feff}data: x\n\n", vec!["x"]),
        ("unknown: field\ndata: x\n\n", vec!["x"]),
        ("data: cut off", vec![]),
        ("data: no blank line\n", vec![]),
    ];
    for (text, expected) in cases {
        for size in [1, 2, 3, 7, 1000] {
            // A carriage return at the end of a piece may or may not have its line feed in the next one.
            assert_eq!(events(text, size), expected, "{text:?} in pieces of {size}");
        }
    }
}

#[test]
fn an_event_beyond_the_bound_is_refused_in_one_line_or_in_many() {
    let mut parser = Parser::new(10);
    parser.push(b"data: 0123456789\n\n");
    assert_eq!(parser.next(), Ok(Some(Bytes::from_static(b"0123456789"))));
    parser.push(b"data: 0123456789a\n\n");
    assert_eq!(parser.next(), Err(EventTooLarge));

    let mut parser = Parser::new(10);
    parser.push(b"data: 01234\ndata: 56789\n\n");
    assert_eq!(parser.next(), Err(EventTooLarge));

    let mut parser = Parser::new(10);
    parser.push(&[b'x'; 100]);
    assert_eq!(parser.next(), Err(EventTooLarge));
}
