// Accepts the connections of a server and hands each of them on, within limits.
//
// An acceptor has one thread of its own. Any thread may call MarkVerified; the owner calls the
// rest.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>

#include "base/file/fd.h"
#include "base/server/connection_list.h"
#include "base/server/listen.h"
#include "base/status.h"

namespace kiln {

class Acceptor {
 public:
  // Takes a connection over. The new owner must shut the socket down when it is done: the acceptor
  // keeps a second descriptor of the connection, to see its end and to be able to close it.
  using HandOver = std::function<void(UniqueFd connection)>;

  Acceptor(ListeningSockets listening, const ConnectionList::Limits& limits);
  // Calls Stop.
  ~Acceptor();

  // Accepts connections from now on. Called once.
  Status Start(HandOver hand_over);
  // Closes the listening sockets. Connections that were handed over are left as they are.
  void Stop();

  // Marks the connection of `peer` as verified: one of its calls was admitted. `peer` is named as
  // gRPC does ("ipv4:127.0.0.1:4711", "ipv6:%5B::1%5D:4711").
  void MarkVerified(std::string_view peer);

 private:
  void Run();
  Status Watch(int fd, uint32_t events);
  void AcceptAll(int listening);
  void AddConnection(UniqueFd connection);
  void HandleDescriptorShortage();
  void Close(int id);
  void Forget(int id);
  void CloseOverdue();

  ListeningSockets listening_;
  HandOver hand_over_;
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
