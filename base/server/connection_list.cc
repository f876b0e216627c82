#include "base/server/connection_list.h"

#include <utility>

namespace kiln {

std::vector<int> ConnectionList::Add(int id, std::string peer, std::string host, absl::Time now) {
  // The connection that must go is chosen before the new one is in the list, so that the new one
  // stays if another can go.
  int gone = -1;
  const auto of_host = unverified_of_.find(host);
  if (of_host != unverified_of_.end() && of_host->second.size() >= limits_.max_unverified_of_host) {
    gone = TakeOldest(of_host->second);
  } else if (unverified_.size() >= limits_.max_unverified || size() >= limits_.most) {
    gone = TakeOldestUnverified();
    if (gone < 0) gone = id;
  }
  const uint64_t serial = ++serial_;
  by_peer_[peer] = id;
  if (gone != id) {
    unverified_[serial] = id;
    unverified_of_[host][serial] = id;
  }
  connections_[id] = {std::move(peer), std::move(host), now, serial};
  return gone < 0 ? std::vector<int>() : std::vector<int>{gone};
}

void ConnectionList::Remove(int id) {
  const auto it = connections_.find(id);
  if (it == connections_.end()) return;
  RemoveUnverified(it->second);
  const auto peer = by_peer_.find(it->second.peer);
  if (peer != by_peer_.end() && peer->second == id) by_peer_.erase(peer);
  connections_.erase(it);
}

void ConnectionList::MarkVerified(std::string_view peer,
                                  absl::FunctionRef<std::string()> certificate) {
  const auto it = by_peer_.find(peer);
  if (it == by_peer_.end()) return;
  Connection& connection = connections_.at(it->second);
  RemoveUnverified(connection);
  if (connection.verified) return;
  connection.verified = true;
  connection.certificate = certificate();
}

std::map<std::string, std::vector<int>> ConnectionList::ByCertificate() const {
  std::map<std::string, std::vector<int>> ids;
  for (const auto& [id, connection] : connections_) {
    if (!connection.certificate.empty()) ids[connection.certificate].push_back(id);
  }
  return ids;
}

std::vector<int> ConnectionList::Overdue(absl::Time now) {
  std::vector<int> overdue;
  while (!unverified_.empty() &&
         now - connections_.at(unverified_.begin()->second).since >= limits_.longest_unverified) {
    overdue.push_back(TakeOldestUnverified());
  }
  return overdue;
}

int ConnectionList::TakeOldestUnverified() {
  return unverified_.empty() ? -1 : TakeOldest(unverified_);
}

// Removes the oldest from the unverified connections, so that it is closed only once.
int ConnectionList::TakeOldest(const std::map<uint64_t, int>& of) {
  const int id = of.begin()->second;
  RemoveUnverified(connections_.at(id));
  return id;
}

void ConnectionList::RemoveUnverified(const Connection& connection) {
  if (unverified_.erase(connection.serial) == 0) return;
  const auto of_host = unverified_of_.find(connection.host);
  of_host->second.erase(connection.serial);
  if (of_host->second.empty()) unverified_of_.erase(of_host);
}

}  // namespace kiln
