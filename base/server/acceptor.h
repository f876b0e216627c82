// Accepts the connections of a server and hands each of them on, within limits.
//
// An acceptor has one thread of its own. Any thread may call MarkVerified; the owner calls the
// rest.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "absl/functional/function_ref.h"
#include "base/file/fd.h"
#include "base/server/caller_check.h"
#include "base/server/connection_list.h"
#include "base/server/listen.h"
#include "base/status.h"

namespace kiln {

class Acceptor {
 public:
  // Takes a connection over. The new owner must shut the socket down when it is done: the acceptor
  // keeps a second descriptor of the connection, to see its end and to be able to close it.
  using HandOver = std::function<void(UniqueFd connection)>;

  // Connections whose certificate fails `check` are shut down within seconds. Null: none are.
  Acceptor(ListeningSockets listening, const ConnectionList::Limits& limits,
           CertificateCheck check = nullptr);
  // Calls Stop.
  ~Acceptor();

  // Accepts connections from now on. Called once.
  Status Start(HandOver hand_over);
  // Closes the listening sockets. Connections that were handed over are left as they are.
  void Stop();

  // Marks the connection of `peer` as verified: one of its calls was admitted. `peer` is named as
  // gRPC does ("ipv4:127.0.0.1:4711", "ipv6:%5B::1%5D:4711"). `certificate` returns what the client
  // has shown, "" if nothing; it is called for the first such call of a connection.
  void MarkVerified(std::string_view peer, absl::FunctionRef<std::string()> certificate);

 private:
  void Run();
  Status Watch(int fd, uint32_t events);
  void AcceptAll(int listening);
  void AddConnection(UniqueFd connection);
  void HandleDescriptorShortage();
  void Close(int id);
  void Forget(int id);
  void CloseOverdue();
  void CloseRefused();

  ListeningSockets listening_;
  HandOver hand_over_;
  const CertificateCheck check_;
  // Monotonic time of the next check of certificates.
  double next_check_s_ = 0;
  UniqueFd events_;
  UniqueFd stop_;
  // Keyed by the kept descriptor's number, which is the connection's id in the list.
  std::map<int, UniqueFd> kept_;
  // Guards list_.
  std::mutex mutex_;
  ConnectionList list_;
  std::thread thread_;
};

}  // namespace kiln
