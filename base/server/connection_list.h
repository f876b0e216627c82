// The open connections of a server, and the choice of those that have to go.
//
// A connection is unverified until one of its calls has been admitted. The number of unverified
// connections is limited, in all and from each host, and so is their time. A new connection
// replaces the oldest unverified one, so that a caller who identifies itself at once gets in,
// however many others are open. Verified connections stay. Beyond the limit of all connections,
// new ones are refused.
//
// Pure: no sockets, no clock. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace kiln {

class ConnectionList {
 public:
  struct Limits {
    // Limit of all connections together.
    size_t most = 4'000;
    size_t max_unverified = 1'024;
    size_t max_unverified_of_host = 256;
    absl::Duration longest_unverified = absl::Minutes(5);
  };

  explicit ConnectionList(const Limits& limits) : limits_(limits) {}

  // Adds a connection with the number `id`, which the caller chooses. `peer` is the connection's
  // other end, host and port; `host` is the host alone. Returns the connections that are to be
  // closed now: at most one, which may be the new one. They stay in the list until Remove.
  std::vector<int> Add(int id, std::string peer, std::string host, absl::Time now);
  void Remove(int id);

  // Marks the connection whose other end is `peer`: one of its calls was admitted. `certificate`
  // returns its client's certificate, "" for none; it is called when the connection is marked
  // first.
  void MarkVerified(std::string_view peer, absl::FunctionRef<std::string()> certificate);

  // Returns the verified connections of each certificate.
  std::map<std::string, std::vector<int>> ByCertificate() const;

  // Returns the connections to close because they have been unverified for too long.
  std::vector<int> Overdue(absl::Time now);

  // Returns the oldest unverified connection, which is to be closed to make room; -1 if there is
  // none.
  int TakeOldestUnverified();

  size_t size() const { return connections_.size(); }
  size_t unverified() const { return unverified_.size(); }

 private:
  struct Connection {
    std::string peer;
    std::string host;
    absl::Time since;
    uint64_t serial = 0;
    bool verified = false;
    std::string certificate = {};
  };
  using Connections = std::map<int, Connection>;

  int TakeOldest(const std::map<uint64_t, int>& of);
  void RemoveUnverified(const Connection& connection);

  const Limits limits_;
  uint64_t serial_ = 0;
  Connections connections_;
  std::map<std::string, int, std::less<>> by_peer_;
  // Ordered by age, oldest first.
  std::map<uint64_t, int> unverified_;
  std::map<std::string, std::map<uint64_t, int>> unverified_of_;
};

}  // namespace kiln
