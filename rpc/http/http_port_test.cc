#include "rpc/http/http_port.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <stdexcept>

#include "absl/time/clock.h"
#include "base/file/file.h"
#include "base/keys/authority_folder.h"
#include "base/keys/key_folder.h"
#include "base/keys/live_keys.h"
#include "base/numbers/rng.h"
#include "base/server/grpc_server.h"
#include "base/status_testing.h"
#include "rpc/http/http_testing.h"

namespace kiln {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Returns a page that says what it was asked.
HttpReply Echo(const HttpRequest& request) {
  HttpReply reply;
  reply.body =
      fmt::format("path={} caller={} a={}", request.path, request.caller, request.Parameter("a"));
  for (const std::string& star : request.stars) reply.body += " star=" + star;
  return reply;
}

void AddPages(HttpPort& port) {
  port.Handle("/healthz", std::nullopt, [](const HttpRequest&) {
    HttpReply reply;
    reply.body = "ok\n";
    return reply;
  });
  port.Handle("/page", Role::kRead, Echo);
  port.Handle("/jobs/*", Role::kRead, Echo);
  port.Handle("/operate", Role::kOperate, Echo);
  port.Handle("/throws", Role::kRead,
              [](const HttpRequest&) -> HttpReply { throw std::runtime_error("oh"); });
}

// Returns the whole reply to a GET.
std::string Get(int port, std::string_view path, std::string_view lines = "") {
  auto client = TestHttpClient::Connect(port);
  if (!client.ok() || !client->SendGet(path, lines)) return "no connection";
  return client->ReadAll();
}

// Sends the bytes and says no more; returns what comes back.
std::string Exchange(int port, std::string_view bytes) {
  auto client = TestHttpClient::Connect(port);
  if (!client.ok()) return "no connection";
  // The server may have closed the connection before it has all bytes.
  static_cast<void>(client->Send(bytes));
  return client->ReadAll();
}

TEST(OpenPortTest, AnswersPages) {
  HttpPort port({});
  AddPages(port);
  ASSERT_OK(port.Start());
  EXPECT_FALSE(port.has_tls());
  EXPECT_EQ(port.address(), fmt::format("127.0.0.1:{}", port.port()));
  EXPECT_THAT(Get(port.port(), "/page?a=1%202&b=3"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("path=/page caller= a=1 2")));
  EXPECT_THAT(Get(port.port(), "/jobs/a%2Fb"), Not(HasSubstr("200")));
  EXPECT_THAT(Get(port.port(), "/jobs/a%20b"), HasSubstr("star=a b"));
  EXPECT_THAT(Get(port.port(), "/none"),
              AllOf(StartsWith("HTTP/1.1 404"), HasSubstr("there is no page /none\n")));
  EXPECT_THAT(Get(port.port(), "/login?token=x"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Get(port.port(), "/throws"), StartsWith("HTTP/1.1 500"));
}

TEST(OpenPortTest, KeepsBrowsersFromContentsOfElsewhere) {
  HttpPort port({});
  AddPages(port);
  ASSERT_OK(port.Start());
  for (const char* path : {"/page", "/none"}) {
    EXPECT_THAT(
        Get(port.port(), path),
        AllOf(HasSubstr("Content-Security-Policy: default-src 'self'; frame-ancestors"),
              HasSubstr("X-Content-Type-Options: nosniff\r\n"),
              HasSubstr("X-Frame-Options: DENY\r\n"), HasSubstr("Cache-Control: no-store\r\n")));
  }
}

TEST(OpenPortTest, OtherMethodsAndBodiesAreRefused) {
  HttpPort port({});
  AddPages(port);
  ASSERT_OK(port.Start());
  const std::string head = " /page HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
  EXPECT_THAT(Exchange(port.port(), "HEAD" + head + "\r\n"),
              AllOf(StartsWith("HTTP/1.1 200"), Not(HasSubstr("path="))));
  for (const std::string method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) {
    EXPECT_THAT(Exchange(port.port(), method + head + "\r\n"),
                AllOf(StartsWith("HTTP/1.1 405"), HasSubstr("expected GET")));
  }
  // The rest behind the head is a body and no request.
  const std::string smuggled = "GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n";
  EXPECT_THAT(Exchange(port.port(), fmt::format("GET /page HTTP/1.1\r\nHost: localhost\r\n"
                                                "Content-Length: {}\r\n\r\n{}",
                                                smuggled.size(), smuggled)),
              AllOf(StartsWith("HTTP/1.1 200"), Not(HasSubstr("404"))));
  EXPECT_THAT(Exchange(port.port(),
                       "GET /page HTTP/1.1\r\nHost: localhost\r\nExpect: "
                       "100-continue\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 413"));
}

TEST(OpenPortTest, AConnectionHasManyRequests) {
  HttpPort port({});
  AddPages(port);
  ASSERT_OK(port.Start());
  ASSERT_OK_AND_ASSIGN(TestHttpClient client, TestHttpClient::Connect(port.port()));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.Send("GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    EXPECT_THAT(client.ReadUntil("a="), StartsWith("HTTP/1.1 200"));
  }
}

TEST(OpenPortTest, NamesOfOtherSitesAreRefused) {
  HttpPort port({});
  AddPages(port);
  ASSERT_OK(port.Start());
  for (const char* path : {"/page", "/healthz"}) {
    EXPECT_THAT(Exchange(port.port(), fmt::format("GET {} HTTP/1.1\r\nHost: evil.example\r\n"
                                                  "Connection: close\r\n\r\n",
                                                  path)),
                AllOf(StartsWith("HTTP/1.1 403"), HasSubstr("'evil.example'")));
  }
}

TEST(OpenPortTest, APortThatIsTakenIsSaid) {
  HttpPort port({});
  ASSERT_OK(port.Start());
  HttpPort other({.listen = port.address()});
  EXPECT_THAT(other.Start(), StatusIs(StatusCode::kUnavailable,
                                      AllOf(HasSubstr(port.address()), HasSubstr("--http-port"))));
}

TEST(OpenPortTest, AnyPortWillDoIfTheOwnerSaysSo) {
  HttpPort port({});
  ASSERT_OK(port.Start());
  HttpPort other({.listen = port.address(), .or_any_port = true});
  AddPages(other);
  ASSERT_OK(other.Start());
  EXPECT_NE(other.port(), port.port());
  EXPECT_THAT(Get(other.port(), "/healthz"), HasSubstr("\r\n\r\nok\n"));
}

// Requests that are too large, never end, or are none. The port answers good ones all the time.
TEST(OpenPortTest, BadRequestsEndTheirConnectionsAlone) {
  HttpPort port({});
  AddPages(port);
  ASSERT_OK(port.Start());
  const std::string start = "GET /page HTTP/1.1\r\nHost: localhost\r\n";
  std::string many;
  while (many.size() < 2 * kHttpRequestBytes) many += "A: b\r\n";
  std::string ranges = "Range: bytes=0-1";
  while (ranges.size() < 8'000) ranges += ",0-1";
  const std::string requests[] = {
      std::string(2 * kHttpRequestBytes, 'x'),
      "GET /" + std::string(5'000, 'a') + " HTTP/1.1\r\n\r\n",
      start + many + "\r\n",
      start + "A: " + std::string(10'000, 'b') + "\r\n\r\n",
      "GET /none HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + ranges + "\r\n\r\n",
      "GET /%ZZ%00%u12 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
      "GET\r\n\r\n",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "GET /page HTTP/9.9\r\nConnection: close\r\n\r\n",
      std::string("\0\0\0\0\r\n\r\n", 8),
  };
  for (const std::string& request : requests) {
    // A reply may be lost with the bytes that nobody has read.
    EXPECT_THAT(Exchange(port.port(), request), AnyOf("", StartsWith("HTTP/1.1 4")))
        << request.substr(0, 60);
    EXPECT_THAT(Get(port.port(), "/healthz"), HasSubstr("\r\n\r\nok\n"));
  }
}

TEST(OpenPortTest, RandomBytesDoNoHarm) {
  HttpPort port({});
  AddPages(port);
  ASSERT_OK(port.Start());
  Rng rng(20261129);
  const std::string good =
      "GET /page?a=%41 HTTP/1.1\r\nHost: localhost\r\nCookie: a=b; "
      "kiln_session_1=c\r\nRange: bytes=1-2\r\nConnection: close\r\n\r\n";
  for (int i = 0; i < 300; ++i) {
    std::string bytes = good;
    if (Chance(rng, 0.3)) bytes = std::string(static_cast<size_t>(UniformInt(rng, 200)), '\0');
    for (char& byte : bytes) {
      if (Chance(rng, bytes[0] == '\0' ? 1.0 : 0.05)) byte = static_cast<char>(rng());
    }
    ASSERT_OK_AND_ASSIGN(TestHttpClient client, TestHttpClient::Connect(port.port()));
    static_cast<void>(client.Send(bytes));
  }
  EXPECT_THAT(Get(port.port(), "/healthz"), HasSubstr("\r\n\r\nok\n"));
}

TEST(SecretPortTest, AsksForTheSecret) {
  const TempDir folder = *TempDir::Make("http-port-test");
  ASSERT_OK(WriteFileAtomically(folder.Join("secret"), "0123456789abcdef", 0600));
  std::atomic<int> refusals = 0;
  HttpPort port({.service = "tracker",
                 .access = FarmAccess(*Secret::Read(folder.Join("secret"))),
                 .replied = [&](int, const Status& refused) { refusals += refused.ok() ? 0 : 1; }});
  AddPages(port);
  ASSERT_OK(port.Start());
  EXPECT_THAT(Get(port.port(), "/page"),
              AllOf(StartsWith("HTTP/1.1 401"), HasSubstr("WWW-Authenticate: Bearer"),
                    HasSubstr("this tracker asks for the secret")));
  // A stranger does not find out which pages there are.
  EXPECT_THAT(Get(port.port(), "/none"), StartsWith("HTTP/1.1 401"));
  EXPECT_EQ(refusals, 2);
  EXPECT_THAT(Get(port.port(), "/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get(port.port(), "/page", "Authorization: Bearer 0123456789abcdef\r\n"),
              StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(refusals, 2);
}

TEST(SecretPortTest, ASecretWithAPercentSignIsItself) {
  const TempDir folder = *TempDir::Make("http-port-test");
  ASSERT_OK(WriteFileAtomically(folder.Join("secret"), "0123456789%41%0a%", 0600));
  HttpPort port({.access = FarmAccess(*Secret::Read(folder.Join("secret")))});
  AddPages(port);
  ASSERT_OK(port.Start());
  EXPECT_THAT(Get(port.port(), "/page", "Authorization: Bearer 0123456789%41%0a%\r\n"),
              StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get(port.port(), "/page", "Authorization: Bearer 0123456789A%0a%\r\n"),
              StartsWith("HTTP/1.1 401"));
}

TEST(SessionPortTest, ATokenLetsOneBrowserIn) {
  const TempDir folder = *TempDir::Make("http-port-test");
  ASSERT_OK(WriteFileAtomically(folder.Join("secret"), "0123456789abcdef", 0600));
  BrowserSessions sessions({});
  HttpPort port(
      {.access = FarmAccess(*Secret::Read(folder.Join("secret"))), .sessions = &sessions});
  AddPages(port);
  ASSERT_OK(port.Start());
  const std::string login = "/login?token=" + sessions.MakeToken({.name = "alice"});
  // A look ahead at the address does not use the token up.
  EXPECT_THAT(
      Exchange(port.port(),
               "HEAD " + login + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
      StartsWith("HTTP/1.1 405"));
  const std::string reply = Get(port.port(), login);
  EXPECT_THAT(reply, AllOf(StartsWith("HTTP/1.1 303"), HasSubstr("Location: /\r\n"),
                           HasSubstr("HttpOnly; SameSite=Strict\r\n")));
  const std::string name = SessionCookieName(port.port()) + "=";
  ASSERT_THAT(reply, HasSubstr("Set-Cookie: " + name));
  const std::string cookie = reply.substr(reply.find(name) + name.size(), 64);
  EXPECT_THAT(Get(port.port(), "/page", "Cookie: other=1; " + name + cookie + "\r\n"),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("caller=alice")));
  EXPECT_THAT(Get(port.port(), "/operate", "Cookie: " + name + cookie + "\r\n"),
              StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(Get(port.port(), login), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(Get(port.port(), "/page", "Cookie: " + name + "forged\r\n"),
              StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(Get(port.port(), "/page"), HasSubstr("kiln dashboard"));
}

// A source of the numbers after the last one seen, up to `last`.
EventSource Numbers(int last) {
  return [last](const HttpRequest& request) -> StatusOr<EventStream> {
    const std::string& seen = request.last_event_id;
    auto next = std::make_shared<int>(seen.empty() ? 1 : std::atoi(seen.c_str()) + 1);
    return EventStream([next, last](absl::Duration) -> std::optional<std::vector<ServerEvent>> {
      if (*next > last) return std::nullopt;
      const std::string number = fmt::format("{}", (*next)++);
      return std::vector<ServerEvent>{{.id = number, .data = "n" + number}};
    });
  };
}

// A source without events.
StatusOr<EventStream> Nothing(const HttpRequest&) {
  return EventStream([](absl::Duration most) -> std::optional<std::vector<ServerEvent>> {
    absl::SleepFor(std::min(most, absl::Milliseconds(5)));
    return std::vector<ServerEvent>{};
  });
}

TEST(StreamPortTest, GoesOnAfterTheLastEventThatWasSeen) {
  HttpPort port({});
  port.HandleStream("/numbers", Role::kRead, Numbers(3));
  ASSERT_OK(port.Start());
  const std::string all = Get(port.port(), "/numbers");
  EXPECT_THAT(all, AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("text/event-stream"),
                         HasSubstr("id: 1\ndata: n1\n\n"), HasSubstr("id: 3\ndata: n3\n\n")));
  const std::string rest = Get(port.port(), "/numbers", "Last-Event-ID: 2\r\n");
  EXPECT_THAT(rest, AllOf(Not(HasSubstr("n2")), HasSubstr("n3")));
}

TEST(StreamPortTest, ErrorsOfASourceAreReplies) {
  HttpPort port({});
  port.HandleStream("/jobs/*", Role::kRead, [](const HttpRequest&) -> StatusOr<EventStream> {
    return NotFound("there is no such job");
  });
  ASSERT_OK(port.Start());
  EXPECT_THAT(Get(port.port(), "/jobs/7"),
              AllOf(StartsWith("HTTP/1.1 404"), HasSubstr("there is no such job\n")));
}

TEST(StreamPortTest, TheirNumberIsLimitedAndStopEndsThem) {
  HttpPort port({.max_connections = 8, .max_streams = 2});
  port.HandleStream("/nothing", Role::kRead, Nothing);
  AddPages(port);
  ASSERT_OK(port.Start());
  std::vector<TestHttpClient> clients;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(*TestHttpClient::Connect(port.port()));
    ASSERT_TRUE(clients.back().SendGet("/nothing"));
    EXPECT_THAT(clients.back().ReadUntil("\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  }
  EXPECT_THAT(Get(port.port(), "/nothing"),
              AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("2 pages are followed already")));
  EXPECT_THAT(Get(port.port(), "/healthz"), StartsWith("HTTP/1.1 200"));
  port.Stop();
  for (TestHttpClient& client : clients) EXPECT_EQ(client.ReadAll(), "");
}

TEST(StreamPortTest, ABrowserThatLeavesMakesRoom) {
  HttpPort port({.max_streams = 1});
  port.HandleStream("/nothing", Role::kRead, Nothing);
  ASSERT_OK(port.Start());
  for (int i = 0; i < 3; ++i) {
    std::string reply;
    // The port notices within moments that the browser before has left.
    for (int attempt = 0; attempt < 1'000 && !reply.starts_with("HTTP/1.1 200"); ++attempt) {
      ASSERT_OK_AND_ASSIGN(TestHttpClient client, TestHttpClient::Connect(port.port()));
      ASSERT_TRUE(client.SendGet("/nothing"));
      reply = client.ReadUntil("\r\n\r\n");
    }
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 200"));
  }
}

class TlsPortTest : public testing::Test {
 protected:
  TlsPortTest() {
    InitGrpc();
    Issue({"box1", Role::kWork});
    Issue({"prometheus", Role::kRead});
    keys_ = *LiveKeys::Open(farm_.FolderOf("box1"), clock_);
    port_ = std::make_unique<HttpPort>(HttpPort::Options{.service = "tracker",
                                                         .access = FarmAccess(keys_, clock_),
                                                         .sessions = &sessions_,
                                                         .clock = &clock_});
    AddPages(*port_);
    const Status started = port_->Start();
    KILN_CHECK(started.ok(), "{}", Message(started));
  }

  void Issue(const Member& member) {
    KILN_CHECK(farm_.Issue(member, 100, false).ok(), "no certificate of {}", member.name);
  }
  KeyFolder Keys(const std::string& name) { return *ReadKeyFolder(farm_.FolderOf(name)); }

  // Returns the reply to a GET of somebody with these keys; null = none.
  std::string Get(const KeyFolder* shown, std::string_view path, std::string_view lines = "") {
    auto client = TestHttpClient::ConnectTls(port_->port(), Keys("box1"), shown);
    if (!client.ok() || !client->SendGet(path, lines)) return "no connection";
    return client->ReadAll();
  }

  FakeClock clock_{absl::Now()};
  const TempDir folder_ = *TempDir::Make("http-port-test");
  AuthorityFolder farm_ = *AuthorityFolder::Init(folder_.Join("keys"), {&clock_, nullptr});
  BrowserSessions sessions_{{.clock = &clock_}};
  std::shared_ptr<LiveKeys> keys_;
  std::unique_ptr<HttpPort> port_;
};

TEST_F(TlsPortTest, MembersAreKnownByTheirCertificates) {
  EXPECT_TRUE(port_->has_tls());
  const KeyFolder prometheus = Keys("prometheus");
  EXPECT_THAT(Get(&prometheus, "/page"),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("caller=prometheus")));
  EXPECT_THAT(Get(&prometheus, "/operate"),
              AllOf(StartsWith("HTTP/1.1 403"), HasSubstr("prometheus has the role read")));
}

TEST_F(TlsPortTest, StrangersAreToldWhatIsWrong) {
  EXPECT_THAT(Get(nullptr, "/page"),
              AllOf(StartsWith("HTTP/1.1 401"), HasSubstr("none was shown")));
  EXPECT_THAT(Get(nullptr, "/healthz"), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("ok\n")));
  AuthorityFolder other = *AuthorityFolder::Init(folder_.Join("other"), {&clock_, nullptr});
  ASSERT_OK(other.Issue({"eve", Role::kAdmin}, 100, false));
  const KeyFolder eve = *ReadKeyFolder(other.FolderOf("eve"));
  EXPECT_THAT(Get(&eve, "/page"),
              AllOf(StartsWith("HTTP/1.1 401"), HasSubstr("'eve' was issued by")));
}

TEST_F(TlsPortTest, PlainTextGetsNoPage) {
  EXPECT_THAT(kiln::Get(port_->port(), "/healthz"), Not(HasSubstr("ok\n")));
  const KeyFolder prometheus = Keys("prometheus");
  EXPECT_THAT(Get(&prometheus, "/page"), StartsWith("HTTP/1.1 200"));
}

TEST_F(TlsPortTest, ARevokedOneIsRefused) {
  const KeyFolder prometheus = Keys("prometheus");
  EXPECT_THAT(Get(&prometheus, "/page"), StartsWith("HTTP/1.1 200"));
  ASSERT_OK(farm_.Revoke("prometheus"));
  clock_.Advance(LiveKeys::kLookEvery);
  EXPECT_THAT(Get(&prometheus, "/page"),
              AllOf(StartsWith("HTTP/1.1 401"), HasSubstr("was revoked")));
}

TEST_F(TlsPortTest, ARenewedCertificateIsShownToNewConnections) {
  const KeyFolder prometheus = Keys("prometheus");
  const KeyFolder before = Keys("box1");
  ASSERT_OK_AND_ASSIGN(TestHttpClient first,
                       TestHttpClient::ConnectTls(port_->port(), before, &prometheus));
  EXPECT_EQ(first.ServerSerial(), before.certificate.Serial());
  ASSERT_OK(farm_.Renew("box1", 90));
  const KeyFolder after = Keys("box1");
  ASSERT_NE(after.certificate.Serial(), before.certificate.Serial());
  clock_.Advance(LiveKeys::kLookEvery);
  ASSERT_OK_AND_ASSIGN(TestHttpClient second,
                       TestHttpClient::ConnectTls(port_->port(), after, &prometheus));
  EXPECT_EQ(second.ServerSerial(), after.certificate.Serial());
  // The connection from before the renewal goes on.
  for (TestHttpClient* const client : {&first, &second}) {
    ASSERT_TRUE(client->SendGet("/page"));
    EXPECT_THAT(client->ReadAll(),
                AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("caller=prometheus")));
  }
}

TEST_F(TlsPortTest, TheCookieIsForTlsAlone) {
  const std::string token = sessions_.MakeToken({.name = "alice"});
  const std::string reply = Get(nullptr, "/login?token=" + token);
  EXPECT_THAT(reply, AllOf(StartsWith("HTTP/1.1 303"), HasSubstr("; Secure\r\n")));
  const std::string name = SessionCookieName(port_->port()) + "=";
  const std::string cookie = reply.substr(reply.find(name) + name.size(), 64);
  EXPECT_THAT(Get(nullptr, "/page", "Cookie: " + name + cookie + "\r\n"),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("caller=alice")));
}

}  // namespace
}  // namespace kiln
