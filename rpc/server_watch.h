// Judges the servers that this process calls: when it connects, and as long as it is connected.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/keys/live_keys.h"
#include "base/status.h"
#include "rpc/member_check.h"

namespace kiln {

// Closes the connections of this process to a server whose certificate is revoked or has ended.
// Calls under way end with Unavailable; the channel connects again, and the server is judged anew.
// TLS names the host of a server, and not its port: the connections to all servers of the host are
// closed, and the good ones are made again.
//
// Thread-safe. The object has a thread from the first server on.
class ServerWatch {
 public:
  // Certificates are judged again at this interval.
  static constexpr absl::Duration kEvery = absl::Seconds(2);

  // `clock` outlives the object. The interval is one of real time.
  ServerWatch(std::shared_ptr<LiveKeys> keys, Clock& clock) : members_(std::move(keys), clock) {}
  ~ServerWatch();

  // Notes the address of a channel, HOST:PORT, before the channel connects.
  void AddAddress(const std::string& address);
  // OK if the certificate, in PEM, is that of a daemon of the farm and holds now. The server is
  // watched from then on. Unauthenticated otherwise, with the sentence of Verify
  // (base/keys/verify.h).
  Status Accept(std::string_view host, std::string_view certificate);

 private:
  Status Check(std::string_view certificate);
  void Run();
  void CloseRefused();

  MemberCheck members_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // All of these are guarded by mutex_.
  bool stopping_ = false;
  std::map<std::string, std::set<int>> ports_;
  // The hosts that have shown each certificate.
  std::map<std::string, std::set<std::string>> accepted_;
  std::thread thread_;
};

}  // namespace kiln
