#include "scheduler/callbacks/callback_hub.h"

#include <atomic>
#include <future>
#include <set>
#include <thread>

#include "base/status_testing.h"

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;

constexpr char kJob[] = "job";

v1::CallbackRequest Objective(double latency_s) {
  v1::CallbackRequest request;
  request.mutable_objective()->add_latencies_s(latency_s);
  return request;
}

class CallbackHubTest : public testing::Test {
 protected:
  std::unique_ptr<CallbackHub::Connection> Connect() {
    auto connection = hub_.Connect(kJob, [this] { ++hang_ups_; });
    KILN_CHECK(connection.ok(), "{}", connection.status().ToString());
    return *std::move(connection);
  }
  std::unique_ptr<CallbackHub::Caller> Open() {
    auto caller = hub_.Open(kJob);
    KILN_CHECK(caller.ok(), "{}", caller.status().ToString());
    return *std::move(caller);
  }
  // Makes a call in a thread of its own.
  std::future<StatusOr<v1::CallbackReply>> Call(CallbackHub::Caller& caller, double latency_s,
                                                const std::stop_token& stop = {}) {
    return std::async(std::launch::async, [&caller, latency_s, stop] {
      return caller.Call(Objective(latency_s), absl::Seconds(10), stop);
    });
  }
  v1::CallbackRequest Take(CallbackHub::Connection& connection) {
    std::optional<v1::CallbackRequest> request = connection.Take(absl::InfiniteDuration());
    KILN_CHECK(request.has_value());
    return *std::move(request);
  }

  FakeClock clock_;
  CallbackHub hub_{clock_};
  std::atomic<int> hang_ups_{0};
};

TEST_F(CallbackHubTest, ACallGoesToTheProcessAndItsAnswerComesBack) {
  const auto connection = Connect();
  EXPECT_TRUE(hub_.IsServed(kJob));
  const auto caller = Open();
  for (int i = 1; i <= 2; ++i) {
    auto answer = Call(*caller, i);
    const v1::CallbackRequest request = Take(*connection);
    EXPECT_EQ(request.objective().latencies_s(0), i);
    v1::CallbackReply reply;
    reply.set_number(request.number());
    reply.add_values(10 * i);
    EXPECT_OK(connection->Answer(reply));
    const auto got = answer.get();
    ASSERT_OK(got);
    EXPECT_EQ(got->values(0), 10 * i);
  }
}

TEST_F(CallbackHubTest, CallsTakeTurns) {
  const auto connection = Connect();
  const auto caller = Open();
  auto one = Call(*caller, 1), two = Call(*caller, 2);
  double sum = 0;
  for (int i = 0; i < 2; ++i) {
    const v1::CallbackRequest request = Take(*connection);
    sum += request.objective().latencies_s(0);
    v1::CallbackReply reply;
    reply.set_number(request.number());
    reply.add_values(request.objective().latencies_s(0));
    EXPECT_OK(connection->Answer(reply));
  }
  EXPECT_EQ(sum, 3);
  EXPECT_EQ(one.get()->values(0), 1);
  EXPECT_EQ(two.get()->values(0), 2);
}

v1::CallbackReply Reply(uint64_t number) {
  v1::CallbackReply reply;
  reply.set_number(number);
  reply.set_binary(fmt::format("binary {}", number));
  return reply;
}

TEST_F(CallbackHubTest, BuildsAreUnderWayBesideOthersAndAreAnsweredInAnyOrder) {
  const auto connection = Connect();
  const auto caller = Open();
  auto first = Call(*caller, 1);
  const uint64_t of_search = Take(*connection).number();
  const auto build = [&](absl::Duration timeout) {
    return std::async(std::launch::async, [&caller, timeout] {
      return caller->CallBeside(Objective(0), timeout, std::stop_token());
    });
  };
  auto one = build(absl::Seconds(100));
  const uint64_t of_one = Take(*connection).number();
  auto two = build(absl::Seconds(100));
  const uint64_t of_two = Take(*connection).number();
  EXPECT_OK(connection->Answer(Reply(of_two)));
  EXPECT_EQ(two.get()->binary(), fmt::format("binary {}", of_two));
  EXPECT_EQ(first.wait_for(std::chrono::milliseconds(0)), std::future_status::timeout);
  EXPECT_OK(connection->Answer(Reply(of_search)));
  EXPECT_EQ(first.get()->number(), of_search);
  // A build that takes too long does not disconnect the process, and its answer comes for nothing.
  auto slow = build(absl::Seconds(3));
  const uint64_t of_slow = Take(*connection).number();
  clock_.WaitForSleepers(2);
  clock_.Advance(absl::Seconds(4));
  EXPECT_THAT(slow.get().status(), StatusIs(StatusCode::kDeadlineExceeded,
                                            "the user's process did not answer within 3 s"));
  EXPECT_EQ(hang_ups_, 0);
  EXPECT_OK(connection->Answer(Reply(of_slow)));
  EXPECT_OK(connection->Answer(Reply(of_one)));
  EXPECT_EQ(one.get()->number(), of_one);
}

TEST_F(CallbackHubTest, ACallThatIsGivenUpBeforeItIsSentIsNotSent) {
  const auto connection = Connect();
  const auto caller = Open();
  EXPECT_THAT(caller->CallBeside(Objective(1), absl::ZeroDuration(), {}).status(),
              StatusIs(StatusCode::kDeadlineExceeded, HasSubstr("within 0 s")));
  EXPECT_FALSE(connection->Take(absl::ZeroDuration()).has_value());
}

TEST_F(CallbackHubTest, AJobHasOneProcess) {
  auto connection = Connect();
  EXPECT_THAT(hub_.Connect(kJob, [] {}).status(),
              StatusIs(StatusCode::kAlreadyExists,
                       "another process serves job job; end it, and connect again"));
  EXPECT_OK(hub_.Connect("another", [] {}).status());
  connection.reset();
  EXPECT_FALSE(hub_.IsServed(kJob));
  EXPECT_THAT(hub_.Open(kJob).status(), StatusIs(StatusCode::kUnavailable, HasSubstr("disconn")));
  EXPECT_OK(hub_.Connect(kJob, [] {}).status());
}

TEST_F(CallbackHubTest, AProcessThatGoesEndsTheCallInHand) {
  auto connection = Connect();
  const auto caller = Open();
  auto answer = Call(*caller, 1);
  Take(*connection);
  connection.reset();
  EXPECT_THAT(answer.get().status(),
              StatusIs(StatusCode::kUnavailable, "the user's process has disconnected"));
  // A process that comes later knows nothing of this caller.
  connection = Connect();
  EXPECT_THAT(Call(*caller, 2).get().status(), StatusIs(StatusCode::kUnavailable, HasSubstr("")));
}

TEST_F(CallbackHubTest, AnAnswerThatComesTooLateIsRefused) {
  const auto connection = Connect();
  const auto caller = Open();
  auto answer = Call(*caller, 1);
  const v1::CallbackRequest request = Take(*connection);
  clock_.WaitForSleepers(1);
  clock_.Advance(absl::Seconds(9));
  EXPECT_EQ(answer.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  clock_.Advance(absl::Seconds(2));
  EXPECT_THAT(answer.get().status(), StatusIs(StatusCode::kDeadlineExceeded,
                                              "the user's process did not answer within 10 s"));
  EXPECT_EQ(hang_ups_, 1);
  v1::CallbackReply reply;
  reply.set_number(request.number());
  EXPECT_OK(connection->Answer(reply));  // nobody waits for it
}

TEST_F(CallbackHubTest, ACallerThatStopsDoesNotWait) {
  const auto connection = Connect();
  const auto caller = Open();
  std::stop_source stop;
  auto answer = Call(*caller, 1, stop.get_token());
  Take(*connection);
  stop.request_stop();
  EXPECT_THAT(answer.get().status(), StatusIs(StatusCode::kCancelled, "stopped"));
  EXPECT_EQ(hang_ups_, 0);
}

TEST_F(CallbackHubTest, AnAnswerToAnotherCallIsRefused) {
  const auto connection = Connect();
  const auto caller = Open();
  auto answer = Call(*caller, 1);
  Take(*connection);
  v1::CallbackReply reply;
  reply.set_number(7);
  EXPECT_THAT(connection->Answer(reply),
              StatusIs(StatusCode::kInvalidArgument,
                       "the user's process answered call 7, expected call 1"));
  EXPECT_THAT(answer.get().status(), StatusIs(StatusCode::kInvalidArgument, HasSubstr("call 7")));
}

// Notes what its users wait on.
class NotingClock final : public FakeClock {
 public:
  bool WaitFor(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
               absl::Duration timeout, const std::function<bool()>& done) override {
    waits.insert(&cv);
    return FakeClock::WaitFor(lock, cv, timeout, done);
  }
  std::set<const std::condition_variable*> waits;
};

TEST(CallbackHub, AJobIsNotWokenByTheCallsOfAnother) {
  NotingClock clock;
  CallbackHub hub(clock);
  ASSERT_OK_AND_ASSIGN(const auto a, hub.Connect("a", [] {}));
  ASSERT_OK_AND_ASSIGN(const auto b, hub.Connect("b", [] {}));
  for (CallbackHub::Connection* const each : {a.get(), b.get()})
    EXPECT_FALSE(each->Take(absl::ZeroDuration()).has_value());
  EXPECT_EQ(clock.waits.size(), 2u);
}

TEST_F(CallbackHubTest, ChangesAreTold) {
  std::vector<bool> served;
  hub_.OnChange([&](const std::string& job) { served.push_back(hub_.IsServed(job)); });
  Connect();
  EXPECT_THAT(served, testing::ElementsAre(true, false));
}

}  // namespace
}  // namespace kiln::scheduler
