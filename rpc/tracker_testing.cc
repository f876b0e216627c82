#include "rpc/tracker_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

namespace kiln {

FakeTracker::FakeTracker() {
  reply_.set_next_announce_ms(50);
  GrpcServer::Options options;
  options.services = {this};
  auto server = GrpcServer::Start(options);
  KILN_CHECK(server.ok(), "{}", Message(server.status()));
  server_ = *std::move(server);
}

FakeTracker::~FakeTracker() { server_.reset(); }

v1::AnnounceRequest FakeTracker::WaitFor(
    const std::function<bool(const v1::AnnounceRequest&)>& wanted) {
  std::unique_lock lock(mutex_);
  auto found = requests_.end();
  const bool there = changed_.wait_for(lock, std::chrono::seconds(20), [&] {
    found = std::find_if(requests_.begin(), requests_.end(), wanted);
    return found != requests_.end();
  });
  EXPECT_TRUE(there) << requests_.size() << " announcements";
  return there ? *found : v1::AnnounceRequest();
}

void FakeTracker::Ask(v1::WorkerMode mode, const std::string& by) {
  std::lock_guard lock(mutex_);
  reply_.set_asked_mode(mode);
  reply_.set_asked_by(by);
}

grpc::Status FakeTracker::Announce(grpc::ServerContext*, const v1::AnnounceRequest* request,
                                   v1::AnnounceReply* reply) {
  std::lock_guard lock(mutex_);
  requests_.push_back(*request);
  *reply = reply_;
  changed_.notify_all();
  return grpc::Status::OK;
}

}  // namespace kiln
