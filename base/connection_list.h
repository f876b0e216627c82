// The open connections of a server, and which of them have to go.
//
// A connection is a stranger's until one of its calls has been let in. Strangers can have only so
// many connections, in all and from each host, and only for so long: a new one takes the place of
// the oldest, so that a caller who says at once who it is gets in however many others stand there.
// Connections of known callers stay; beyond the limit of all connections, new ones are turned away.
//
// Pure: no sockets, no clock. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace kiln {

class ConnectionList {
 public:
  struct Limits {
    size_t most = 4'000;  // in all
    size_t most_strangers = 1'024;
    size_t most_strangers_of_host = 256;
    absl::Duration longest_stranger = absl::Minutes(5);
  };

  explicit ConnectionList(const Limits& limits) : limits_(limits) {}

  // A new connection with the number `id` of the caller's choice. `peer` is its other end, host and
  // port, and `host` the host alone. Returns the connections that are to be closed now: at most
  // one, which may be the new one. They stay in the list until Remove.
  std::vector<int> Add(int id, std::string peer, std::string host, absl::Time now);
  void Remove(int id);

  // A call of the connection whose other end is `peer` was let in.
  void MakeKnown(std::string_view peer);

  // Those to close because they have been strangers for too long.
  std::vector<int> Overdue(absl::Time now);

  // The stranger's that is to be closed to make room; -1: there is none.
  int OldestStranger();

  size_t size() const { return connections_.size(); }
  size_t strangers() const { return strangers_.size(); }

 private:
  struct Connection {
    std::string peer;
    std::string host;
    absl::Time since;
    uint64_t serial = 0;
  };
  using Connections = std::map<int, Connection>;

  int TakeOldest(const std::map<uint64_t, int>& of);
  void NoStranger(const Connection& connection);

  const Limits limits_;
  uint64_t serial_ = 0;
  Connections connections_;
  std::map<std::string, int, std::less<>> by_peer_;
  std::map<uint64_t, int> strangers_;  // by age
  std::map<std::string, std::map<uint64_t, int>> strangers_of_;
};

}  // namespace kiln
