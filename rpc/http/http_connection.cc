#include "rpc/http/http_connection.h"

#include <httplib.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/server/socket_peer.h"
#include "base/text/utf8.h"
#include "rpc/http/host_check.h"
#include "rpc/http/http_message.h"
#include "rpc/http/socket_stream.h"

namespace kiln {
namespace {

constexpr size_t kShownBytes = 80;
// Pages load nothing from elsewhere, run no script that stands in them, and are shown in no frame.
constexpr char kContentPolicy[] =
    "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

httplib::Headers SafetyHeaders() {
  return {{"Content-Security-Policy", kContentPolicy},
          {"X-Content-Type-Options", "nosniff"},
          {"X-Frame-Options", "DENY"},
          {"Referrer-Policy", "no-referrer"},
          {"Cross-Origin-Resource-Policy", "same-origin"}};
}

// Gives httplib the bytes of a connection.
class HttplibStream : public httplib::Stream {
 public:
  HttplibStream(SocketStream& stream, int socket) : stream_(stream), socket_(socket) {}

  bool is_readable() const override { return stream_.WaitReadable(absl::ZeroDuration()); }
  bool is_writable() const override { return !stream_.PeerHasLeft(); }
  ssize_t read(char* to, size_t size) override { return stream_.Read(to, size); }
  ssize_t write(const char* from, size_t size) override {
    return stream_.Write(from, size) ? static_cast<ssize_t>(size) : -1;
  }
  // Addresses are the guard's matter and go into no header.
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

 private:
  SocketStream& stream_;
  const int socket_;
};

// Returns the value of a cookie, or "".
std::string CookieOf(const httplib::Request& request, const std::string& name) {
  const std::string cookies = request.get_header_value("Cookie");
  std::string_view left = cookies;
  while (!left.empty()) {
    const size_t end = left.find(';');
    std::string_view one = left.substr(0, end);
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    if (one.starts_with(name) && one.substr(name.size()).starts_with('=')) {
      return std::string(one.substr(name.size() + 1));
    }
    left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
  }
  return "";
}

HttpRequest RequestOf(const httplib::Request& request) {
  HttpRequest result;
  result.path = request.path;
  for (const auto& [name, value] : request.params) result.parameters.try_emplace(name, value);
  result.last_event_id = request.get_header_value("Last-Event-ID");
  return result;
}

// Counts a stream while it lives.
class StreamPlace {
 public:
  static std::shared_ptr<StreamPlace> Take(HttpServing& serving) {
    std::shared_ptr<StreamPlace> place(new StreamPlace(serving));
    return place->number_ <= serving.max_streams ? place : nullptr;
  }
  ~StreamPlace() { --serving_.streams; }
  StreamPlace(const StreamPlace&) = delete;
  StreamPlace& operator=(const StreamPlace&) = delete;

 private:
  explicit StreamPlace(HttpServing& serving) : serving_(serving), number_(++serving.streams) {}

  HttpServing& serving_;
  const int number_;
};

class Connection : private httplib::Server {
 public:
  Connection(int socket, HttpServing& serving, SocketStream& stream)
      : serving_(serving), socket_(socket), stream_(stream), adapter_(stream, socket) {
    // A server without a socket counts as one that stops.
    svr_sock_ = socket;
    set_default_headers(SafetyHeaders());
    set_keep_alive_max_count(kRequestsOfConnection);
    set_keep_alive_timeout(absl::ToInt64Seconds(kHttpIdleTime));
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      Answer(request, response);
      return HandlerResponse::Handled;
    });
    set_exception_handler([](const httplib::Request&, httplib::Response& response,
                             std::exception_ptr) { response.status = 500; });
    // No page takes a body.
    set_expect_100_continue_handler([](const httplib::Request&, httplib::Response& response) {
      response.status = 413;
      return response.status;
    });
  }

  void Serve() {
    certificate_ = stream_.PeerCertificate();
    for (int i = 0; i < kRequestsOfConnection && !serving_.stopping; ++i) {
      if (i > 0 && (serving_.others_wait() || !stream_.WaitReadable(kHttpIdleTime))) return;
      stream_.Allow(kHttpReadTime, kHttpRequestBytes);
      bool closed = false;
      const bool last = i + 1 == kRequestsOfConnection;
      const auto set_up = [](httplib::Request& request) { request.ranges.clear(); };
      answered_ = false;
      if (!process_request(adapter_, last, closed, set_up) || closed || ends_) return;
      // It was no request: nobody knows where the next one would begin.
      if (!answered_) return;
    }
  }

 private:
  void Answer(const httplib::Request& request, httplib::Response& response) {
    answered_ = true;
    stream_.Allow(kHttpWriteTime, 0);
    Status refused;
    const bool has_body =
        request.has_header("Transfer-Encoding") ||
        request.get_header_value("Content-Length").find_first_not_of('0') != std::string::npos;
    if (has_body) {
      // The bytes of the body are no request.
      ends_ = true;
      response.set_header("Connection", "close");
    }
    if (request.method != "GET" && request.method != "HEAD") {
      response.set_header("Allow", "GET, HEAD");
      Write(ErrorReply(Unimplemented("found the method {}, expected GET: pages only show",
                                     OneLine(request.method.substr(0, kShownBytes)))),
            response);
    } else if (refused = CheckHost(request.get_header_value("Host"), Listening()); !refused.ok()) {
      Write(ErrorReply(refused), response);
    } else if (request.path == "/login" && serving_.sessions != nullptr) {
      refused = LogIn(request, response);
    } else {
      refused = AnswerPage(request, response);
    }
    serving_.replied(response.status, refused);
  }

  // The check of the host is for ports that browsers reach without TLS.
  HostPort Listening() const {
    return serving_.tls == nullptr ? serving_.address : HostPort{"0.0.0.0", serving_.address.port};
  }

  // Gives the browser a cookie for a token. Returns why not.
  Status LogIn(const httplib::Request& request, httplib::Response& response) {
    if (request.method != "GET") {
      Write(ErrorReply(Unimplemented("expected the method GET")), response);
      return OkStatus();
    }
    const StatusOr<std::string> cookie =
        serving_.sessions->Exchange(request.get_param_value("token"));
    if (!cookie.ok()) {
      Write(ErrorReply(cookie.status()), response);
      return cookie.status();
    }
    response.set_header("Set-Cookie",
                        fmt::format("{}={}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict{}",
                                    SessionCookieName(serving_.address.port), *cookie,
                                    absl::ToInt64Seconds(serving_.sessions->session_time()),
                                    serving_.tls == nullptr ? "" : "; Secure"));
    Write({.status = 303, .location = "/"}, response);
    return OkStatus();
  }

  StatusOr<std::string> Admit(Role needed) {
    return serving_.guard.Admit({certificate_, authorization_, cookie_}, needed);
  }

  // Returns why the caller was refused.
  Status AnswerPage(const httplib::Request& request, httplib::Response& response) {
    HttpRequest asked = RequestOf(request);
    const HttpRoute* const route = serving_.routes.Find(asked.path, asked.stars);
    authorization_ = request.get_header_value("Authorization");
    cookie_ = CookieOf(request, SessionCookieName(serving_.address.port));
    // A stranger does not find out which pages there are.
    const std::optional<Role> needed = route == nullptr ? Role::kRead : route->needed;
    if (needed.has_value()) {
      StatusOr<std::string> caller = Admit(*needed);
      if (!caller.ok()) {
        Write(ErrorReply(caller.status()), response);
        return caller.status();
      }
      asked.caller = *std::move(caller);
      serving_.let_in(socket_, certificate_);
    }
    if (route == nullptr) {
      Write(ErrorReply(NotFound("there is no page {}", OneLine(asked.path.substr(0, kShownBytes)))),
            response);
    } else if (const auto* handler = std::get_if<HttpHandler>(&route->answer)) {
      Write((*handler)(asked), response);
    } else {
      OpenStream(std::get<EventSource>(route->answer), asked, needed.value_or(Role::kRead),
                 response);
    }
    return OkStatus();
  }

  void OpenStream(const EventSource& source, const HttpRequest& asked, Role needed,
                  httplib::Response& response) {
    ends_ = true;
    std::shared_ptr<StreamPlace> place = StreamPlace::Take(serving_);
    if (place == nullptr) {
      return Write(ErrorReply(ResourceExhausted("{} pages are followed already; close one of them",
                                                serving_.max_streams)),
                   response);
    }
    StatusOr<EventStream> stream = source(asked);
    if (!stream.ok()) return Write(ErrorReply(stream.status()), response);
    response.status = 200;
    response.set_header("Cache-Control", "no-store");
    response.set_header("X-Accel-Buffering", "no");
    response.set_chunked_content_provider(
        "text/event-stream",
        [this, needed, place, stream = *std::move(stream),
         pulse_s = Clock::Real().MonotonicSeconds()](size_t, httplib::DataSink& sink) mutable {
          return Feed(stream, needed, pulse_s, sink);
        });
  }

  // Writes the next events. False ends the connection.
  bool Feed(const EventStream& stream, Role needed, double& pulse_s, httplib::DataSink& sink) {
    if (serving_.stopping || stream_.PeerHasLeft()) return false;
    const std::optional<std::vector<ServerEvent>> events = stream(kEventWait);
    std::string text;
    if (!events.has_value()) {
      sink.done();
      return true;
    }
    for (const ServerEvent& event : *events) text += EventText(event);
    const double now_s = Clock::Real().MonotonicSeconds();
    if (now_s - pulse_s >= absl::ToDoubleSeconds(kEventPulse)) {
      if (!Admit(needed).ok()) return false;
      pulse_s = now_s;
      text += ":\n\n";
    }
    if (text.empty()) return true;
    stream_.Allow(kEventWriteTime, 0);
    return sink.write(text.data(), text.size());
  }

  void Write(HttpReply reply, httplib::Response& response) {
    response.status = reply.status;
    if (reply.status == 401) response.set_header("WWW-Authenticate", "Bearer realm=\"kiln\"");
    response.set_header("Cache-Control", reply.cache);
    if (!reply.location.empty()) response.set_header("Location", reply.location);
    response.set_header("Content-Type", reply.content_type);
    response.body = std::move(reply.body);
  }

  HttpServing& serving_;
  const int socket_;
  SocketStream& stream_;
  HttplibStream adapter_;
  // The caller shows these: the certificate of the connection, and the headers of the last request.
  std::string certificate_;
  std::string authorization_;
  std::string cookie_;
  // Whether the last request came as far as Answer.
  bool answered_ = false;
  // Whether the connection ends after this reply.
  bool ends_ = false;
};

}  // namespace

std::string SessionCookieName(int port) { return fmt::format("kiln_session_{}", port); }

void ServeHttpConnection(int socket, HttpServing& serving) {
  SocketStream stream(socket);
  stream.Allow(kHttpReadTime, kHttpRequestBytes);
  if (serving.tls != nullptr) {
    const auto context = serving.tls->Now();
    if (!context.ok()) {
      LogError("{}", Message(context.status()));
      return;
    }
    if (!stream.StartTls(*context)) return;
  }
  Connection(socket, serving, stream).Serve();
}

}  // namespace kiln
