// Accepts the connections of a server and hands each on, within limits.
//
// One thread of its own. MakeKnown by any thread; the rest by the owner.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>

#include "base/connection_list.h"
#include "base/fd.h"
#include "base/listen.h"
#include "base/status.h"

namespace kiln {

class Acceptor {
 public:
  // Takes a connection over. It must shut the socket down when it is done with it: the acceptor
  // keeps a second descriptor of it, to see its end and to be able to close it.
  using HandOver = std::function<void(UniqueFd connection)>;

  Acceptor(ListeningSockets listening, const ConnectionList::Limits& limits);
  ~Acceptor();  // stops

  // From now on connections are accepted. Once.
  Status Start(HandOver hand_over);
  // Closes the listening sockets. Connections that were handed over are left as they are.
  void Stop();

  // A call from `peer`, named as gRPC does ("ipv4:127.0.0.1:4711", "ipv6:%5B::1%5D:4711"), was let
  // in: its connection is no stranger's any more.
  void MakeKnown(std::string_view peer);

 private:
  void Run();
  Status Watch(int fd, uint32_t events);
  void AcceptAll(int listening);
  void AddConnection(UniqueFd connection);
  void NoRoom();
  void Close(int id);
  void Forget(int id);
  void CloseOverdue();

  ListeningSockets listening_;
  HandOver hand_over_;
  UniqueFd events_;
  UniqueFd stop_;
  std::map<int, UniqueFd> kept_;  // by their own number, which is the connection's id in the list
  std::mutex mutex_;              // for the list
  ConnectionList list_;
  std::thread thread_;
};

}  // namespace kiln
