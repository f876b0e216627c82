// The port of a daemon for pages: metrics, health, a dashboard. It asks each caller who he is.
//
//   HttpPort port({.listen = "127.0.0.1:0", .service = "tracker", .access = access});
//   port.Handle("/metrics", Role::kRead, [](const HttpRequest&) { return HttpReply{...}; });
//   KILN_RETURN_IF_ERROR(port.Start());
//
// Pages are asked for by GET (and HEAD) alone: they show and change nothing. With the farm's keys
// the port speaks TLS with the daemon's certificate, and reloads it as the gRPC port does. Who gets
// in says rpc/http/http_guard.h. The port answers with headers that keep a browser from scripts,
// frames and contents of elsewhere.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/keys/role.h"
#include "base/server/acceptor.h"
#include "base/status.h"
#include "rpc/farm_access.h"
#include "rpc/http/connection_pool.h"
#include "rpc/http/http_connection.h"
#include "rpc/http/http_guard.h"
#include "rpc/http/http_message.h"
#include "rpc/http/http_routes.h"
#include "rpc/http/server_tls.h"
#include "rpc/http/sessions.h"

namespace kiln {

// Threads: one that accepts connections, and one for each open connection, at most
// Options::max_connections; further connections wait, or are closed. All of them end in Stop. The
// owner calls Handle and HandleStream, then Start, then Stop; any thread may call the rest.
class HttpPort {
 public:
  struct Options {
    // HOST:PORT; port 0 = any free port. Other machines may reach the host only where OpenAccess
    // (rpc/daemon_access.h) lets the daemon listen on it.
    std::string listen = "127.0.0.1:0";
    // Whether any free port will do where that one is taken. The log says so.
    bool or_any_port = false;
    // Names the daemon in messages: "tracker".
    std::string service = "daemon";
    // Keys: TLS and certificates. A secret: asked for in the header Authorization. Nothing: open.
    FarmAccess access = {};
    // Lets browsers in at /login?token=TOKEN. Null: there is no such page. Outlives the port.
    BrowserSessions* sessions = nullptr;
    int max_connections = 32;
    // Streams are connections, too, so they are fewer.
    int max_streams = 16;
    // Told of each reply: its HTTP status, and why a caller was refused (OK for others). Null:
    // nobody is told. Threads of the port call it, many at once.
    std::function<void(int http_status, const Status& refused)> replied = nullptr;
    // For the ends of certificates. Outlives the port.
    Clock* clock = &Clock::Real();
  };

  explicit HttpPort(Options options);
  // Calls Stop.
  ~HttpPort();

  // Adds a page before Start. `pattern` is a path whose segments may be "*" (rpc/http/
  // http_routes.h). `needed` is the least role of a caller; none: everybody, strangers included.
  void Handle(std::string pattern, std::optional<Role> needed, HttpHandler handler);
  // Adds a stream of server-sent events. A client that does not take an event within some seconds
  // is dropped. A caller whose certificate or session ends loses the stream.
  void HandleStream(std::string pattern, Role needed, EventSource source);

  // Listens from now on. Unavailable "cannot listen on ...; choose another port with --http-port".
  Status Start();
  // Ends all connections, and waits until handlers that run have returned. A source of events is
  // left within kEventWait (http_connection.h).
  void Stop();

  // After Start.
  int port() const { return address_.port; }
  // Returns HOST:PORT with the port that was bound.
  std::string address() const { return address_.ToString(); }
  bool has_tls() const { return tls_ != nullptr; }

 private:
  const Options options_;
  const std::unique_ptr<ServerTls> tls_;
  const HttpGuard guard_;
  HttpRoutes routes_;
  HostPort address_;
  // Made by Start, in this order, because each has references to those before.
  std::unique_ptr<HttpServing> serving_;
  std::unique_ptr<ConnectionPool> pool_;
  std::unique_ptr<Acceptor> acceptor_;
};

}  // namespace kiln
