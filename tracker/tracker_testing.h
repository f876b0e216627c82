// A tracker in the test's own process, on a port of its own that it keeps over restarts.
#pragma once

#include <memory>
#include <string>

#include "base/grpc_server.h"
#include "base/status_testing.h"
#include "rpc/channel.h"
#include "tracker/service.h"

namespace kiln::tracker {

class TestTracker {
 public:
  explicit TestTracker(TrackerService::Options options = {}) : options_(std::move(options)) {
    Start("127.0.0.1:0");
  }
  ~TestTracker() { Stop(); }

  void Stop() {
    if (server_ == nullptr) return;
    service_->Stop();
    server_->Shutdown(absl::Seconds(1));
    server_.reset();
    service_.reset();
  }
  // Called after Stop. The new tracker knows nothing of the old one's state.
  void Restart() { Start(address_); }

  const std::string& address() const { return address_; }

  std::unique_ptr<v1::Tracker::Stub> NewStub() const {
    return v1::Tracker::NewStub(MakeChannel(address_));
  }
  v1::ListReply List() const {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    v1::ListReply reply;
    const grpc::Status status = NewStub()->List(&context, {}, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply;
  }
  uint32_t BusySlots() const {
    uint32_t busy = 0;
    const v1::ListReply list = List();
    for (const uint32_t n : list.busy_slots()) busy += n;
    return busy;
  }

 private:
  void Start(const std::string& listen) {
    service_ = std::make_unique<TrackerService>(options_);
    auto server = GrpcServer::Start({.listen = listen, .services = {service_.get()}});
    KILN_CHECK(server.ok(), "{}", server.status().ToString());
    server_ = *std::move(server);
    address_ = server_->address();
  }

  const TrackerService::Options options_;
  std::string address_;
  std::unique_ptr<TrackerService> service_;
  std::unique_ptr<GrpcServer> server_;
};

// Looks every few milliseconds until `done`; false after ten seconds.
template <typename Done>
bool Eventually(const Done& done) {
  for (int i = 0; i < 1'000; ++i) {
    if (done()) return true;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return false;
}

}  // namespace kiln::tracker
