// A registry and shorthands for calling it, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status_testing.h"
#include "tracker/registry.h"

namespace kiln::tracker {

inline v1::AnnounceRequest Worker(std::string_view id, uint32_t slots,
                                  std::vector<std::string> keys, v1::WorkerKind kind = v1::RUNNER) {
  v1::AnnounceRequest request;
  v1::WorkerState& state = *request.mutable_worker();
  state.set_id(std::string(id));
  state.set_kind(kind);
  state.set_address(fmt::format("{}:1", id));
  for (std::string& key : keys) state.add_keys(std::move(key));
  state.set_slots(slots);
  if (kind == v1::RUNNER) state.mutable_device_model()->set_name("a device");
  return request;
}

inline v1::AcquireRequest Ask(std::string_view id, std::string_view user,
                              std::string_view key = "cuda", int priority = 0) {
  v1::AcquireRequest request;
  request.set_request_id(std::string(id));
  request.set_scheduler_id(fmt::format("s-{}", user));
  request.set_kind(v1::RUNNER);
  request.set_key(std::string(key));
  request.set_user(std::string(user));
  request.set_priority(priority);
  request.set_wait_ms(30'000);
  return request;
}

inline v1::AcquireRequest AskWithUse(std::string_view id, std::string_view user, double use,
                                     int priority = 0) {
  v1::AcquireRequest request = Ask(id, user, "cuda", priority);
  request.set_use(use);
  return request;
}

inline v1::RenewRequest RenewOf(std::string_view user, std::vector<v1::Lease> leases) {
  v1::RenewRequest request;
  request.set_scheduler_id(fmt::format("s-{}", user));
  for (v1::Lease& lease : leases) *request.add_leases() = std::move(lease);
  return request;
}

inline v1::ReleaseRequest ReleaseOf(std::string_view user, std::vector<std::string> leases,
                                    std::vector<std::string> requests = {}) {
  v1::ReleaseRequest request;
  request.set_scheduler_id(fmt::format("s-{}", user));
  for (std::string& id : leases) request.add_lease_ids(std::move(id));
  for (std::string& id : requests) request.add_request_ids(std::move(id));
  return request;
}

// Time stands still except for what a test adds.
class RegistryTest : public testing::Test {
 protected:
  v1::Lease Granted(const v1::AcquireRequest& request) {
    const auto reply = registry_.Acquire(request, now_ms_);
    EXPECT_OK(reply);
    EXPECT_TRUE(reply->has_lease()) << request.request_id();
    return reply->lease();
  }
  uint32_t Waits(const v1::AcquireRequest& request) {
    const auto reply = registry_.Acquire(request, now_ms_);
    EXPECT_OK(reply);
    EXPECT_FALSE(reply->has_lease()) << request.request_id();
    return reply->queue_position();
  }
  void Announce(const v1::AnnounceRequest& request) {
    EXPECT_OK(registry_.Announce(request, now_ms_));
    registry_.TakeGranted();
  }
  v1::RenewReply Renew(const v1::RenewRequest& request) {
    auto reply = registry_.Renew(request, now_ms_);
    EXPECT_OK(reply);
    return *std::move(reply);
  }
  std::vector<std::string> GrantedBy(const v1::ReleaseRequest& request) {
    registry_.TakeGranted();
    registry_.Release(request, now_ms_);
    return registry_.TakeGranted();
  }

  int64_t now_ms_ = 1'000;
  Registry registry_{RegistryOptions(), now_ms_};
};

}  // namespace kiln::tracker
