// A tracker in the test's own process, on a port of its own that it keeps over restarts.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/server/grpc_server.h"
#include "base/status_testing.h"
#include "rpc/channel.h"
#include "tracker/service.h"

namespace kiln::tracker {

// Counts the calls that renew leases.
class CountingService final : public TrackerService {
 public:
  CountingService(const Options& options, std::atomic<int>& renewals)
      : TrackerService(options), renewals_(renewals) {}

  grpc::ServerUnaryReactor* Renew(grpc::CallbackServerContext* context,
                                  const v1::RenewRequest* request, v1::RenewReply* reply) override {
    ++renewals_;
    return TrackerService::Renew(context, request, reply);
  }

 private:
  std::atomic<int>& renewals_;
};

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
  // Returns the number of calls that renewed leases so far.
  int renewals() const { return renewals_; }

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
    service_ = std::make_unique<CountingService>(options_, renewals_);
    auto server = GrpcServer::Start({.listen = listen, .services = {service_.get()}});
    KILN_CHECK(server.ok(), "{}", server.status().ToString());
    server_ = *std::move(server);
    address_ = server_->address();
  }

  const TrackerService::Options options_;
  std::string address_;
  std::atomic<int> renewals_ = 0;
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
