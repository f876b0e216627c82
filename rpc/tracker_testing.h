// A tracker for tests of workers. It serves on a free port, takes every announcement and keeps it.
// Thread-safe.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/server/grpc_server.h"
#include "proto/tracker.grpc.pb.h"

namespace kiln {

class FakeTracker : public v1::Tracker::Service {
 public:
  FakeTracker();
  ~FakeTracker() override;

  std::string address() const { return server_->address(); }

  // Returns the first announcement, past or to come, for which `wanted` holds. Fails the test after
  // 20 seconds.
  v1::AnnounceRequest WaitFor(const std::function<bool(const v1::AnnounceRequest&)>& wanted);

  // Asks each worker for the mode from now on.
  void Ask(v1::WorkerMode mode, const std::string& by);

  grpc::Status Announce(grpc::ServerContext* context, const v1::AnnounceRequest* request,
                        v1::AnnounceReply* reply) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<v1::AnnounceRequest> requests_;
  v1::AnnounceReply reply_;
  std::unique_ptr<GrpcServer> server_;
};

}  // namespace kiln
