#include "tracker/service.h"

#include <future>
#include <thread>
#include <vector>

#include "base/server/grpc_status.h"
#include "tracker/tracker_testing.h"

namespace kiln::tracker {
namespace {

using testing::HasSubstr;

class ServiceTest : public testing::Test {
 protected:
  Status Announce(std::string_view id, uint32_t slots, bool leaving = false) {
    grpc::ClientContext context;
    v1::AnnounceRequest request;
    v1::WorkerState& worker = *request.mutable_worker();
    worker.set_id(std::string(id));
    worker.set_kind(v1::RUNNER);
    worker.set_address(fmt::format("{}:1", id));
    worker.add_keys("cuda");
    worker.set_slots(slots);
    worker.mutable_device_model()->set_name("a device");
    request.set_leaving(leaving);
    v1::AnnounceReply reply;
    return FromGrpc(stub_->Announce(&context, request, &reply));
  }

  static v1::AcquireRequest Request(std::string_view id, uint32_t wait_ms) {
    v1::AcquireRequest request;
    request.set_request_id(std::string(id));
    request.set_scheduler_id("s");
    request.set_kind(v1::RUNNER);
    request.set_key("cuda");
    request.set_wait_ms(wait_ms);
    return request;
  }

  StatusOr<v1::AcquireReply> Acquire(std::string_view id, uint32_t wait_ms) {
    grpc::ClientContext context;
    v1::AcquireReply reply;
    KILN_RETURN_IF_ERROR(FromGrpc(stub_->Acquire(&context, Request(id, wait_ms), &reply)));
    return reply;
  }

  std::future<StatusOr<v1::AcquireReply>> AcquireLater(std::string id, uint32_t wait_ms) {
    return std::async(std::launch::async,
                      [this, id = std::move(id), wait_ms] { return Acquire(id, wait_ms); });
  }

  void Release(const std::string& lease_id) {
    grpc::ClientContext context;
    v1::ReleaseRequest request;
    request.set_scheduler_id("s");
    request.add_lease_ids(lease_id);
    v1::ReleaseReply reply;
    ASSERT_OK(FromGrpc(stub_->Release(&context, request, &reply)));
  }

  uint32_t Pending() const {
    const v1::ListReply list = tracker_.List();
    return list.keys_size() == 0 ? 0 : list.keys(0).pending();
  }

  FakeClock clock_;
  const double start_seconds_ = clock_.MonotonicSeconds();
  TestTracker tracker_{{.registry = {}, .admission = {}, .revoked = {}, .clock = &clock_}};
  std::unique_ptr<v1::Tracker::Stub> stub_ = tracker_.NewStub();
};

TEST_F(ServiceTest, AWaitingAcquireIsAnsweredByRelease) {
  ASSERT_OK(Announce("w", 1));
  ASSERT_OK_AND_ASSIGN(const v1::AcquireReply first, Acquire("r1", 0));
  ASSERT_TRUE(first.has_lease());
  auto second = AcquireLater("r2", 30'000);
  ASSERT_TRUE(Eventually([&] { return Pending() == 1; }));
  Release(first.lease().id());
  ASSERT_OK_AND_ASSIGN(const v1::AcquireReply reply, second.get());
  EXPECT_TRUE(reply.has_lease());
}

TEST_F(ServiceTest, APollEndsWhenItsTimeIsUp) {
  auto poll = AcquireLater("r", 20'000);
  ASSERT_TRUE(Eventually([&] { return Pending() == 1; }));
  clock_.Advance(absl::Seconds(20));
  ASSERT_OK_AND_ASSIGN(const v1::AcquireReply reply, poll.get());
  EXPECT_FALSE(reply.has_lease());
  EXPECT_EQ(reply.queue_position(), 1u);
}

TEST_F(ServiceTest, SilentWorkersAreRemovedAndTheirLeasesLost) {
  ASSERT_OK(Announce("w", 1));
  ASSERT_OK_AND_ASSIGN(const v1::AcquireReply first, Acquire("r1", 0));
  clock_.Advance(absl::Seconds(10));
  EXPECT_TRUE(Eventually([&] { return tracker_.List().workers_size() == 0; }));
  grpc::ClientContext context;
  v1::RenewRequest request;
  request.set_scheduler_id("s");
  *request.add_leases() = first.lease();
  v1::RenewReply reply;
  ASSERT_OK(FromGrpc(stub_->Renew(&context, request, &reply)));
  EXPECT_THAT(reply.lost_lease_ids(), testing::ElementsAre(first.lease().id()));
}

TEST_F(ServiceTest, AClientThatGoesAwayLeavesTheQueue) {
  grpc::ClientContext context;
  std::thread waiter([&] {
    v1::AcquireReply reply;
    EXPECT_EQ(stub_->Acquire(&context, Request("r", 30'000), &reply).error_code(),
              grpc::StatusCode::CANCELLED);
  });
  ASSERT_TRUE(Eventually([&] { return Pending() == 1; }));
  context.TryCancel();
  waiter.join();
  // The server hears of the cancellation a little later. The request is dropped when it is not
  // polled again.
  EXPECT_TRUE(Eventually([&] {
    clock_.Advance(absl::Seconds(1));
    return Pending() == 0;
  }));
  EXPECT_LT(clock_.MonotonicSeconds() - start_seconds_, 30.0) << "not by the end of the poll";
}

TEST_F(ServiceTest, ASecondPollReplacesTheFirst) {
  auto first = AcquireLater("r", 30'000);
  ASSERT_TRUE(Eventually([&] { return Pending() == 1; }));
  auto second = AcquireLater("r", 30'000);
  ASSERT_OK_AND_ASSIGN(const v1::AcquireReply empty, first.get());
  EXPECT_FALSE(empty.has_lease());
  ASSERT_OK(Announce("w", 1));
  ASSERT_OK_AND_ASSIGN(const v1::AcquireReply granted, second.get());
  EXPECT_TRUE(granted.has_lease());
}

TEST_F(ServiceTest, BadRequestsAreRefusedWithTheReason) {
  EXPECT_THAT(Announce("w", 0),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("has 0 slots; expected 1 to")));
  EXPECT_THAT(Acquire("", 0), StatusIs(StatusCode::kInvalidArgument, HasSubstr("request_id")));
}

TEST_F(ServiceTest, StopAnswersAllWhoWait) {
  std::vector<std::future<StatusOr<v1::AcquireReply>>> polls;
  for (int i = 0; i < 5; ++i) polls.push_back(AcquireLater(fmt::format("r{}", i), 30'000));
  ASSERT_TRUE(Eventually([&] { return Pending() == 5; }));
  tracker_.Stop();
  for (auto& poll : polls) {
    EXPECT_THAT(poll.get(), StatusIs(StatusCode::kUnavailable, testing::_));
  }
}

// A synchronous server could not have a thread for each of these waiting calls.
TEST_F(ServiceTest, AThousandMayWait) {
  constexpr int kWaiting = 1'000;
  struct Call {
    grpc::ClientContext context;
    v1::AcquireRequest request;
    v1::AcquireReply reply;
    std::promise<grpc::Status> done;
  };
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < kWaiting; ++i) {
    calls.push_back(std::make_unique<Call>());
    Call& call = *calls.back();
    call.request = Request(fmt::format("r{}", i), 30'000);
    stub_->async()->Acquire(&call.context, &call.request, &call.reply,
                            [&call](grpc::Status status) { call.done.set_value(status); });
  }
  ASSERT_TRUE(Eventually([&] { return Pending() == kWaiting; }));
  // The tracker still answers.
  ASSERT_OK(Announce("w", kWaiting));
  for (const auto& call : calls) {
    ASSERT_TRUE(call->done.get_future().get().ok());
    ASSERT_TRUE(call->reply.has_lease());
  }
  EXPECT_EQ(tracker_.BusySlots(), static_cast<uint32_t>(kWaiting));
}

}  // namespace
}  // namespace kiln::tracker
