// Serves the requests of one connection: reads them, asks the guard, finds the page, answers.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/server/net.h"
#include "rpc/http/http_guard.h"
#include "rpc/http/http_routes.h"
#include "rpc/http/server_tls.h"
#include "rpc/http/sessions.h"

namespace kiln {

// All connections of a port share this. It outlives them. Thread-safe.
struct HttpServing {
  const HttpRoutes& routes;
  const HttpGuard& guard;
  // Null: there is no /login.
  BrowserSessions* sessions = nullptr;
  // Null: plain text.
  ServerTls* tls = nullptr;
  HostPort address;
  int max_streams = 0;
  // Tells that a caller was let in who has shown this certificate; "" = none.
  std::function<void(int socket, const std::string& certificate)> let_in;
  // Tells of a reply: its status, and why a caller was refused; OK for others.
  std::function<void(int http_status, const Status& refused)> replied;
  // Returns whether other connections wait for this one to end.
  std::function<bool()> others_wait;
  std::atomic<bool> stopping = false;
  std::atomic<int> streams = 0;
};

// Limits of a request: it is read within the time, and has at most so many bytes. Requests with a
// body are answered, their bodies are not read, and their connections end.
inline constexpr absl::Duration kHttpReadTime = absl::Seconds(10);
inline constexpr size_t kHttpRequestBytes = 64 << 10;
// A reply is written within this time, and so is each event of a stream: a slow client is dropped.
inline constexpr absl::Duration kHttpWriteTime = absl::Seconds(30);
inline constexpr absl::Duration kEventWriteTime = absl::Seconds(5);
// Time from one request of a connection to the next.
inline constexpr absl::Duration kHttpIdleTime = absl::Seconds(5);
inline constexpr int kRequestsOfConnection = 100;
// A stream without events gets a comment this often, and its caller is checked again.
inline constexpr absl::Duration kEventPulse = absl::Seconds(15);
// A stream looks this often whether the port stops or the browser has left.
inline constexpr absl::Duration kEventWait = absl::Milliseconds(500);

// Returns the name of the session's cookie: cookies are for a host, whatever the port is.
std::string SessionCookieName(int port);

// Returns when the connection is over. The socket belongs to the caller and does not block.
void ServeHttpConnection(int socket, HttpServing& serving);

}  // namespace kiln
