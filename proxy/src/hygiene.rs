//! What is checked before anybody is asked who they are: method, path, Host, Origin, head, media types, size. In this order.

use cotter_core::{reason::DenyReason, snapshot::Access};
use http::{HeaderMap, HeaderName, Method, Uri, header, request::Parts, uri::Authority};

use crate::respond::{Refusal, With};

/// The endpoint.
pub const ENDPOINT: &str = "/mcp";

/// Where RFC 9728 puts the metadata of a protected resource.
pub const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Bytes of all header lines together.
const HEAD_BYTES: usize = 32 * 1024;

/// Header lines.
const HEADERS: usize = 100;

/// What the clients of the official SDKs accept, to the byte: a comparison instead of a parse.
const USUAL: &str = "application/json, text/event-stream";

/// Where a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// A message.
    Message,
    /// The end of a legacy session.
    EndSession,
    /// The metadata of the protected resource.
    Metadata,
    /// A browser that asks whether it may send something.
    Preflight,
}

/// Method and path.
///
/// # Errors
/// `MethodNotAllowed`, `PathNotFound`.
pub fn route(method: &Method, uri: &Uri, public_url: Option<&str>) -> Result<Route, Refusal> {
    let known = [Method::GET, Method::POST, Method::DELETE, Method::OPTIONS];
    let not_allowed = |methods| Err(Refusal::new(DenyReason::MethodNotAllowed).with(With::Allow(methods)));
    if !known.contains(method) {
        return not_allowed("POST, DELETE, GET, OPTIONS");
    }
    let path = uri.path();
    if path == ENDPOINT {
        return match *method {
            Method::POST => Ok(Route::Message),
            Method::DELETE => Ok(Route::EndSession),
            Method::OPTIONS => Ok(Route::Preflight),
            _ => not_allowed("POST, DELETE, OPTIONS"),
        };
    }
    if !is_metadata(path, public_url) {
        return Err(Refusal::new(DenyReason::PathNotFound));
    }
    match *method {
        Method::GET => Ok(Route::Metadata),
        Method::OPTIONS => Ok(Route::Preflight),
        _ => not_allowed("GET, OPTIONS"),
    }
}

/// The well-known path alone, with the endpoint's path, or with the path that clients see.
fn is_metadata(path: &str, public_url: Option<&str>) -> bool {
    let Some(rest) = path.strip_prefix(WELL_KNOWN) else { return false };
    let public = public_url.and_then(|url| url.parse::<Uri>().ok());
    rest.is_empty() || rest == ENDPOINT || public.is_some_and(|url| url.path() == rest)
}

/// The Host that the client meant, if it is one that this server answers to. This is what stops DNS rebinding.
///
/// # Errors
/// `HostNotAllowed`.
pub fn host<'a>(parts: &'a Parts, access: &Access) -> Result<&'a str, Refusal> {
    let refuse = |why: &str| Refusal::because(DenyReason::HostNotAllowed, why);
    let mut named = parts.headers.get_all(header::HOST).iter();
    let host = match (named.next().map(|host| host.to_str()), named.next()) {
        (Some(Ok(host)), None) => host,
        (None, _) => return Err(refuse("no Host header")),
        _ => return Err(refuse("more than one Host header, or one that is not ASCII")),
    };
    if parts.uri.authority().is_some_and(|target| !target.as_str().eq_ignore_ascii_case(host)) {
        return Err(refuse("the request target names another host"));
    }
    let authority: Authority = host.parse().map_err(|_| refuse("not a host"))?;
    let port = host.strip_prefix(authority.host()).unwrap_or("@");
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    let plain = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
    let listed =
        |allowed: &String| allowed.eq_ignore_ascii_case(host) || allowed.eq_ignore_ascii_case(authority.host());
    let is_public = || {
        let public = access.public_url.as_deref().and_then(|url| url.parse::<Uri>().ok());
        public.as_ref().and_then(Uri::host).is_some_and(|own| own.eq_ignore_ascii_case(authority.host()))
    };
    if plain && (is_loopback(authority.host()) || access.hosts.iter().any(listed) || is_public()) {
        return Ok(host);
    }
    Err(refuse("not in access.hosts"))
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host == "127.0.0.1" || host == "[::1]"
}

/// The Origin, if there is one and it is allowed.
///
/// # Errors
/// `OriginNotAllowed`.
pub fn origin<'a>(headers: &'a HeaderMap, access: &Access) -> Result<Option<&'a http::HeaderValue>, Refusal> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (None, _) => Ok(None),
        (Some(origin), None) if access.origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes()) => {
            Ok(Some(origin))
        }
        _ => Err(Refusal::new(DenyReason::OriginNotAllowed)),
    }
}

/// The size of the head.
///
/// # Errors
/// `HeadersTooLarge`.
pub fn head(headers: &HeaderMap) -> Result<(), Refusal> {
    // A name, a colon, a space, a value and a line end.
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if headers.len() > HEADERS || bytes > HEAD_BYTES {
        return Err(Refusal::new(DenyReason::HeadersTooLarge));
    }
    Ok(())
}

/// How the body is framed: by its length or in chunks, and never both ways or in chunks of something else, which the next proxy may read
/// another way. Where a length stands beside chunks it is not seen here; see [`closes`].
///
/// # Errors
/// `InvalidRequest`.
pub fn framing(headers: &HeaderMap) -> Result<(), Refusal> {
    match single(headers, &header::TRANSFER_ENCODING) {
        None => Ok(()),
        Some(Some(coding)) if coding.eq_ignore_ascii_case("chunked") => Ok(()),
        Some(_) => Err(Refusal::because(DenyReason::InvalidRequest, "transfer encoding")),
    }
}

/// Whether the connection has to end with this request (RFC 9112 section 6.3): the library follows the chunks where a length stands
/// beside them, and removes the length before anybody sees it. What a proxy in front took for the rest of the body by that length would
/// then be read as the next request.
#[must_use]
pub fn closes(headers: &HeaderMap) -> bool {
    headers.contains_key(header::TRANSFER_ENCODING)
}

/// The media types and the announced size of a message.
///
/// # Errors
/// `UnsupportedMediaType`, `NotAcceptable`, `TooLarge`.
pub fn content(headers: &HeaderMap, limit: u64) -> Result<(), Refusal> {
    let media = |why: &str| Refusal::because(DenyReason::UnsupportedMediaType, why);
    match single(headers, &header::CONTENT_TYPE) {
        Some(Some(media)) if is_json(media) => {}
        _ => return Err(media("content type")),
    }
    if headers.contains_key(header::CONTENT_ENCODING) {
        return Err(media("content encoding"));
    }
    let usual = single(headers, &header::ACCEPT) == Some(Some(USUAL));
    if !usual && (!accepts(headers, "application", "json") || !accepts(headers, "text", "event-stream")) {
        return Err(Refusal::new(DenyReason::NotAcceptable));
    }
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit) {
        return Err(Refusal::new(DenyReason::TooLarge));
    }
    Ok(())
}

/// The value of a header that may occur once: `None` where it is absent, `Some(None)` where it is repeated or not ASCII.
#[must_use]
pub fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Option<&'a str>> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    Some(first.to_str().ok().filter(|_| values.next().is_none()))
}

fn is_json(media: &str) -> bool {
    let mut parts = media.split(';').map(str::trim);
    let json = parts.next().is_some_and(|essence| essence.eq_ignore_ascii_case("application/json"));
    let utf8 = |parameter: &str| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        !name.eq_ignore_ascii_case("charset") || value.trim_matches('"').eq_ignore_ascii_case("utf-8")
    };
    json && parts.all(utf8)
}

/// Whether the client takes this media type (RFC 9110 section 12.5.1); without an Accept header MCP does not.
fn accepts(headers: &HeaderMap, kind: &str, subtype: &str) -> bool {
    let ranges = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    ranges.flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let (left, right) = parts.next().and_then(|range| range.split_once('/')).unwrap_or_default();
        let fits = |wanted: &str, offered: &str| offered == "*" || offered.eq_ignore_ascii_case(wanted);
        let wanted = (left != "*" || right == "*") && fits(kind, left) && fits(subtype, right);
        let refused = |parameter: &str| {
            let weight = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="));
            weight.is_some_and(|weight| weight.parse::<f32>().is_ok_and(|weight| weight <= 0.0))
        };
        wanted && !parts.any(refused)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_json_in_utf8_is_json() {
        for good in ["application/json", "Application/JSON; charset=utf-8", "application/json;charset=\"UTF-8\""] {
            assert!(is_json(good), "{good}");
        }
        for bad in ["", "text/plain", "application/json; charset=latin1", "application/jsonp", "application/json-rpc"] {
            assert!(!is_json(bad), "{bad}");
        }
    }

    #[test]
    fn a_client_has_to_take_both_forms_of_an_answer() {
        let both = |value: &str| {
            let headers = headers(&[("accept", value)]);
            accepts(&headers, "application", "json") && accepts(&headers, "text", "event-stream")
        };
        assert!(both(USUAL), "the short way says what the long one would");
        assert!(both("text/event-stream;q=0.5,APPLICATION/json"));
        assert!(both("*/*"));
        for bad in ["application/json", "text/event-stream", "application/json, text/event-stream;q=0", "text/*", ""] {
            assert!(!both(bad), "{bad}");
        }
        assert!(!accepts(&HeaderMap::new(), "application", "json"));
    }

    #[test]
    fn a_header_that_may_occur_once_may_not_be_repeated() {
        let name = HeaderName::from_static("mcp-method");
        let mut twice = headers(&[("mcp-method", "a")]);
        assert_eq!(single(&twice, &name), Some(Some("a")));
        twice.append(name.clone(), "a".parse().unwrap());
        assert_eq!(single(&twice, &name), Some(None));
        assert_eq!(single(&HeaderMap::new(), &name), None);
    }
}
