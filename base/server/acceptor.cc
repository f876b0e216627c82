#include "base/server/acceptor.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/errno_status.h"
#include "base/log.h"
#include "base/server/socket_peer.h"

namespace kiln {
namespace {

// Interval of the search for overdue unverified connections.
constexpr int kLookMs = 1'000;
constexpr double kCheckEverySeconds = 2;
constexpr absl::Duration kDescriptorShortagePause = absl::Milliseconds(50);

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Returns "ipv6:[::1]:4711" for "ipv6:%5B::1%5D:4711".
std::string WithoutPercents(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
        HexDigit(text[i + 2]) >= 0) {
      plain += static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

}  // namespace

Acceptor::Acceptor(ListeningSockets listening, const ConnectionList::Limits& limits,
                   CertificateCheck check)
    : listening_(std::move(listening)), check_(std::move(check)), list_(limits) {}

Acceptor::~Acceptor() { Stop(); }

Status Acceptor::Start(HandOver hand_over) {
  hand_over_ = std::move(hand_over);
  events_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  stop_ = UniqueFd(eventfd(0, EFD_CLOEXEC));
  if (!events_.valid() || !stop_.valid()) return ErrnoStatus(errno, "cannot wait for connections");
  KILN_RETURN_IF_ERROR(Watch(stop_.get(), EPOLLIN));
  for (const UniqueFd& socket : listening_.sockets) {
    KILN_RETURN_IF_ERROR(Watch(socket.get(), EPOLLIN));
  }
  thread_ = std::thread([this] { Run(); });
  return OkStatus();
}

void Acceptor::Stop() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    while (write(stop_.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    thread_.join();
  }
  listening_.sockets.clear();
}

void Acceptor::MarkVerified(std::string_view peer, absl::FunctionRef<std::string()> certificate) {
  std::lock_guard lock(mutex_);
  list_.MarkVerified(
      peer.find('%') == std::string_view::npos ? std::string(peer) : WithoutPercents(peer),
      certificate);
}

Status Acceptor::Watch(int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return OkStatus();
  return ErrnoStatus(errno, "cannot wait for a connection");
}

void Acceptor::Run() {
  std::array<epoll_event, 64> happened;
  while (true) {
    const int count =
        epoll_wait(events_.get(), happened.data(), static_cast<int>(happened.size()), kLookMs);
    // Ended connections come first, because new connections may get their numbers.
    for (int i = 0; i < count; ++i) {
      if (happened[i].data.fd == stop_.get()) return;
      Forget(happened[i].data.fd);
    }
    for (int i = 0; i < count; ++i) {
      for (const UniqueFd& socket : listening_.sockets) {
        if (happened[i].data.fd == socket.get()) AcceptAll(socket.get());
      }
    }
    CloseOverdue();
    if (check_ != nullptr && Clock::Real().MonotonicSeconds() >= next_check_s_) CloseRefused();
  }
}

// Accepts at most as many connections as one turn has events, so that ended connections are seen in
// between.
void Acceptor::AcceptAll(int listening) {
  constexpr int kOfOneTurn = 64;
  for (int i = 0; i < kOfOneTurn; ++i) {
    UniqueFd connection(accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (connection.valid()) {
      AddConnection(std::move(connection));
      continue;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
      HandleDescriptorShortage();
    if (errno != EINTR && errno != ECONNABORTED) return;
  }
}

void Acceptor::AddConnection(UniqueFd connection) {
  std::optional<SocketPeer> peer = PeerOfSocket(connection.get());
  if (!peer.has_value()) return;
  UniqueFd kept(fcntl(connection.get(), F_DUPFD_CLOEXEC, 0));
  if (!kept.valid()) return HandleDescriptorShortage();
  const int id = kept.get();
  if (!Watch(id, EPOLLHUP).ok()) return;
  std::string name = peer->GrpcName();
  std::vector<int> gone;
  {
    std::lock_guard lock(mutex_);
    gone = list_.Add(id, std::move(name), std::move(peer->host), absl::Now());
  }
  kept_[id] = std::move(kept);
  const bool refused = !gone.empty() && gone[0] == id;
  for (const int one : gone) Close(one);
  if (!refused) hand_over_(std::move(connection));
}

// Handles the lack of a descriptor: closes the oldest unverified connection, and waits a little.
void Acceptor::HandleDescriptorShortage() {
  int gone = -1;
  {
    std::lock_guard lock(mutex_);
    gone = list_.TakeOldestUnverified();
  }
  LogDebug("no descriptor is left for a connection");
  if (gone >= 0) Close(gone);
  Clock::Real().SleepFor(kDescriptorShortagePause);
}

// Shuts the connection down. The owner that it was handed to sees the end and closes the other
// descriptor.
void Acceptor::Close(int id) {
  const auto it = kept_.find(id);
  if (it != kept_.end()) shutdown(it->second.get(), SHUT_RDWR);
}

void Acceptor::Forget(int id) {
  const auto it = kept_.find(id);
  if (it == kept_.end()) return;
  {
    std::lock_guard lock(mutex_);
    list_.Remove(id);
  }
  epoll_ctl(events_.get(), EPOLL_CTL_DEL, id, nullptr);
  kept_.erase(it);
}

void Acceptor::CloseOverdue() {
  std::vector<int> overdue;
  {
    std::lock_guard lock(mutex_);
    overdue = list_.Overdue(absl::Now());
  }
  for (const int id : overdue) Close(id);
}

// Ends the connections, and so the streams, of callers whose certificates no longer hold.
void Acceptor::CloseRefused() {
  next_check_s_ = Clock::Real().MonotonicSeconds() + kCheckEverySeconds;
  std::map<std::string, std::vector<int>> by_certificate;
  {
    std::lock_guard lock(mutex_);
    by_certificate = list_.ByCertificate();
  }
  for (const auto& [certificate, ids] : by_certificate) {
    const Status holds = check_(certificate);
    if (holds.ok()) continue;
    LogInfo("closing {} connections: {}", ids.size(), Message(holds));
    for (const int id : ids) Close(id);
  }
}

}  // namespace kiln
