// The pages that every daemon has: /healthz, for everybody, and /metrics, for callers of the role
// `read`. The daemon adds its own pages and figures.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/metrics/metrics.h"
#include "base/status.h"
#include "rpc/call_metrics.h"
#include "rpc/farm_access.h"
#include "rpc/http/http_flags.h"
#include "rpc/http/http_port.h"
#include "rpc/http/sessions.h"

namespace kiln {

// Belongs to main's thread, which calls Make, adds pages and figures, then Start, then Stop. Any
// thread may use metrics().
class DaemonPages {
 public:
  struct Options {
    // --http-port.
    HttpFlags flags = {};
    // --listen: the pages are on its host.
    std::string listen;
    // --advertise of a worker: others reach the pages on its host; "" = the host of `listen`.
    std::string advertise = {};
    // "tracker"
    std::string service;
    FarmAccess access = {};
    // Null: browsers cannot log in. Outlives the object.
    BrowserSessions* sessions = nullptr;
    // Outlives the object.
    Clock* clock = &Clock::Real();
  };

  // Makes the pages. They are not served yet. InvalidArgument for a flag that is none.
  static StatusOr<std::unique_ptr<DaemonPages>> Make(Options options);
  // Calls Stop.
  ~DaemonPages();
  DaemonPages(const DaemonPages&) = delete;
  DaemonPages& operator=(const DaemonPages&) = delete;

  Metrics& metrics() { return metrics_; }
  // Counts of the daemon's calls of gRPC.
  CallMetrics& calls() { return calls_; }
  // For further pages. Null: the daemon serves none.
  HttpPort* port() { return port_.get(); }

  // Serves from now on, and logs where.
  Status Start();
  void Stop();

  // Returns HOST:PORT for others, after Start; "" if the daemon serves no pages.
  const std::string& address() const { return address_; }

 private:
  explicit DaemonPages(Options options);
  void AddPages();
  void Collect(MetricSheet& sheet) const;

  const Options options_;
  Metrics metrics_;
  CallMetrics calls_;
  std::shared_ptr<void> collector_;
  std::unique_ptr<HttpPort> port_;
  std::string address_;
};

}  // namespace kiln
