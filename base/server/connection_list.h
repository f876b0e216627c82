// The open connections of a server, and the choice of those that have to go.
//
// A connection is a stranger's until one of its calls has been let in. Strangers can have only a
// limited number of connections, in all and from each host, and only for a limited time. A new
// stranger takes the place of the oldest, so that a caller who identifies itself at once gets in,
// however many others stand there. Connections of known callers stay; beyond the limit of all
// connections, new ones are turned away.
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
    // Limit of all connections together.
    size_t most = 4'000;
    size_t most_strangers = 1'024;
    size_t most_strangers_of_host = 256;
    absl::Duration longest_stranger = absl::Minutes(5);
  };

  explicit ConnectionList(const Limits& limits) : limits_(limits) {}

  // Adds a connection with the number `id`, which the caller chooses. `peer` is the connection's
  // other end, host and port; `host` is the host alone. Returns the connections that are to be
  // closed now: at most one, which may be the new one. They stay in the list until Remove.
  std::vector<int> Add(int id, std::string peer, std::string host, absl::Time now);
  void Remove(int id);

  // Says that a call of the connection whose other end is `peer` was let in.
  void MakeKnown(std::string_view peer);

  // Returns the connections to close because they have been strangers for too long.
  std::vector<int> Overdue(absl::Time now);

  // Returns the stranger's connection that is to be closed to make room; -1: there is none.
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
  // Ordered by age, oldest first.
  std::map<uint64_t, int> strangers_;
  std::map<std::string, std::map<uint64_t, int>> strangers_of_;
};

}  // namespace kiln
