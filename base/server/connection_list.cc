#include "base/server/connection_list.h"

#include <utility>

namespace kiln {

std::vector<int> ConnectionList::Add(int id, std::string peer, std::string host, absl::Time now) {
  // The connection that must go is chosen before the new one is in the list, so that the new one
  // stays if another can go.
  int gone = -1;
  const auto of_host = strangers_of_.find(host);
  if (of_host != strangers_of_.end() && of_host->second.size() >= limits_.most_strangers_of_host) {
    gone = TakeOldest(of_host->second);
  } else if (strangers_.size() >= limits_.most_strangers || size() >= limits_.most) {
    gone = OldestStranger();
    if (gone < 0) gone = id;
  }
  const uint64_t serial = ++serial_;
  by_peer_[peer] = id;
  if (gone != id) {
    strangers_[serial] = id;
    strangers_of_[host][serial] = id;
  }
  connections_[id] = {std::move(peer), std::move(host), now, serial};
  return gone < 0 ? std::vector<int>() : std::vector<int>{gone};
}

void ConnectionList::Remove(int id) {
  const auto it = connections_.find(id);
  if (it == connections_.end()) return;
  NoStranger(it->second);
  const auto peer = by_peer_.find(it->second.peer);
  if (peer != by_peer_.end() && peer->second == id) by_peer_.erase(peer);
  connections_.erase(it);
}

void ConnectionList::MakeKnown(std::string_view peer) {
  const auto it = by_peer_.find(peer);
  if (it != by_peer_.end()) NoStranger(connections_.at(it->second));
}

std::vector<int> ConnectionList::Overdue(absl::Time now) {
  std::vector<int> overdue;
  while (!strangers_.empty() &&
         now - connections_.at(strangers_.begin()->second).since >= limits_.longest_stranger) {
    overdue.push_back(OldestStranger());
  }
  return overdue;
}

int ConnectionList::OldestStranger() { return strangers_.empty() ? -1 : TakeOldest(strangers_); }

// Removes the oldest from the strangers, so that it is told to go only once.
int ConnectionList::TakeOldest(const std::map<uint64_t, int>& of) {
  const int id = of.begin()->second;
  NoStranger(connections_.at(id));
  return id;
}

void ConnectionList::NoStranger(const Connection& connection) {
  if (strangers_.erase(connection.serial) == 0) return;
  const auto of_host = strangers_of_.find(connection.host);
  of_host->second.erase(connection.serial);
  if (of_host->second.empty()) strangers_of_.erase(of_host);
}

}  // namespace kiln
