// The questions to a page and its answers: values, without a socket or a library.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"

namespace kiln {

// A request of GET that the guard has let in (rpc/http/http_guard.h). All texts are a stranger's.
struct HttpRequest {
  // The decoded path, "/api/jobs/7", without the part from '?' on.
  std::string path = {};
  // The segments of the path that the stars of the route's pattern stand for.
  std::vector<std::string> stars = {};
  // The decoded parameters behind '?'. The first one of a name counts.
  std::map<std::string, std::string, std::less<>> parameters = {};
  // The sender: the name in the certificate, or the name for which the session was made. "" where
  // the farm has no keys.
  std::string caller = {};
  // The id of the last event that a browser has seen of a stream that broke off; "" = none.
  std::string last_event_id = {};

  // Returns the parameter, or "".
  std::string Parameter(std::string_view name) const {
    const auto found = parameters.find(name);
    return found == parameters.end() ? "" : found->second;
  }
};

struct HttpReply {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};
  // Value of Cache-Control. Answers that change are not kept.
  std::string cache = "no-store";
  // Address of the page that the browser is to show; "" = this one. For a status of 3xx.
  std::string location = {};
};

// Returns a reply whose body says the error in one line. The HTTP status is that of the code:
// kNotFound gives 404, kInvalidArgument 400, kUnauthenticated 401, kPermissionDenied 403,
// kResourceExhausted and kUnavailable 503, kUnimplemented 405, others 500.
HttpReply ErrorReply(const Status& status);

// Answers a request. Called by a thread of the port, by many at once.
using HttpHandler = std::function<HttpReply(const HttpRequest&)>;

// An event of a stream (text/event-stream). An id or a name with a line break loses it.
struct ServerEvent {
  // The browser tells it again when it comes back after a break; "" = none.
  std::string id = {};
  // The name for which the page listens; "" = "message".
  std::string name = {};
  // Lines are kept.
  std::string data = {};
};

// Returns the text of the event in a stream.
std::string EventText(const ServerEvent& event);

// Returns the next events of a stream. It waits for them `most` at most; an empty list says that
// there was none in that time, and nothing that the stream has ended. A thread of the port calls
// it again and again, until the stream ends, the browser leaves, or the port stops.
using EventStream = std::function<std::optional<std::vector<ServerEvent>>(absl::Duration most)>;

// Opens a stream. An error is the answer (ErrorReply).
using EventSource = std::function<StatusOr<EventStream>(const HttpRequest&)>;

}  // namespace kiln
