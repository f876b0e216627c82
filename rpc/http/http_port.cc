#include "rpc/http/http_port.h"

#include <utility>

#include "base/log.h"
#include "base/server/listen.h"
#include "base/server/socket_peer.h"

namespace kiln {
namespace {

// All callers of a daemon may be on one machine, behind one address.
ConnectionList::Limits ConnectionLimits(int max_connections) {
  const size_t most = static_cast<size_t>(max_connections) * 4;
  return {.most = most,
          .max_unverified = most / 2,
          .max_unverified_of_host = most / 4,
          .longest_unverified = absl::Seconds(60)};
}

std::unique_ptr<ServerTls> TlsOf(const FarmAccess& access) {
  return access.keys() == nullptr ? nullptr : std::make_unique<ServerTls>(access.keys());
}

}  // namespace

HttpPort::HttpPort(Options options)
    : options_(std::move(options)),
      tls_(TlsOf(options_.access)),
      guard_({.service = options_.service,
              .access = options_.access,
              .sessions = options_.sessions,
              .clock = options_.clock}) {}

HttpPort::~HttpPort() { Stop(); }

void HttpPort::Handle(std::string pattern, std::optional<Role> needed, HttpHandler handler) {
  KILN_CHECK(serving_ == nullptr, "pages are added before Start");
  routes_.Add({std::move(pattern), needed, std::move(handler)});
}

void HttpPort::HandleStream(std::string pattern, Role needed, EventSource source) {
  KILN_CHECK(serving_ == nullptr, "streams are added before Start");
  routes_.Add({std::move(pattern), needed, std::move(source)});
}

Status HttpPort::Start() {
  KILN_ASSIGN_OR_RETURN(address_, ParseListenAddress(options_.listen));
  StatusOr<ListeningSockets> listening = Listen(address_);
  if (!listening.ok() && options_.or_any_port && address_.port != 0) {
    LogWarn("cannot listen on {}; the pages get another port", Message(listening.status()));
    listening = Listen({address_.host, 0});
  }
  if (!listening.ok()) {
    return Unavailable("cannot listen on {}; choose another port with --http-port",
                       Message(listening.status()));
  }
  address_.port = listening->port;
  serving_.reset(new HttpServing{.routes = routes_,
                                 .guard = guard_,
                                 .sessions = options_.sessions,
                                 .tls = tls_.get(),
                                 .address = address_,
                                 .max_streams = options_.max_streams,
                                 .let_in =
                                     [this](int socket, const std::string& certificate) {
                                       const auto peer = PeerOfSocket(socket);
                                       if (!peer.has_value()) return;
                                       acceptor_->MarkVerified(peer->GrpcName(),
                                                               [&] { return certificate; });
                                     },
                                 .replied =
                                     [this](int http_status, const Status& refused) {
                                       if (options_.replied) options_.replied(http_status, refused);
                                     },
                                 .others_wait = [this] { return pool_->IsFull(); }});
  pool_ = std::make_unique<ConnectionPool>(
      ConnectionPool::Options{.max_threads = static_cast<size_t>(options_.max_connections)},
      [this](int socket) { ServeHttpConnection(socket, *serving_); });
  acceptor_ =
      std::make_unique<Acceptor>(*std::move(listening), ConnectionLimits(options_.max_connections),
                                 guard_.MakeCertificateCheck());
  return acceptor_->Start([this](UniqueFd connection) { pool_->Add(std::move(connection)); });
}

void HttpPort::Stop() {
  if (serving_ != nullptr) serving_->stopping = true;
  // The acceptor hands connections to the pool, whose threads mark connections of the acceptor.
  if (acceptor_ != nullptr) acceptor_->Stop();
  if (pool_ != nullptr) pool_->Stop();
}

}  // namespace kiln
