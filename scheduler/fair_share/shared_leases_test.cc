#include "scheduler/fair_share/shared_leases.h"

#include <thread>

#include "base/status_testing.h"
#include "rpc/lease_source_testing.h"
#include "store/memory_store.h"

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;

// Passes calls on to a source that outlives it.
class Passing : public LeaseSource {
 public:
  explicit Passing(LeaseSource& source) : source_(source) {}
  StatusOr<LeasedWorker> Acquire(absl::Duration timeout, std::stop_token stop,
                                 const std::vector<std::string>& avoid) override {
    return source_.Acquire(timeout, std::move(stop), avoid);
  }

 private:
  LeaseSource& source_;
};

class SharedLeasesTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(shares_.Start());
    for (int i = 0; i < 3; ++i) {
      v1::WorkerState worker;
      worker.set_id(fmt::format("w{}", i));
      worker.set_slots(1);
      workers_.AddWorker(worker);
    }
  }
  Leases LeasesOf(const std::string& user, v1::WorkerKind kind = v1::RUNNER) {
    LeaseSpec spec;
    spec.kind = kind;
    spec.key = "null";
    spec.user = user;
    return ShareFairly(
        [this](const LeaseSpec& asked) {
          spec_ = asked;
          return Leases{.source = std::make_unique<Passing>(workers_),
                        .why_waiting = [] { return std::string("all busy"); }};
        },
        shares_)(spec);
  }

  FakeClock clock_;
  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  FairShares shares_{*store_, {.write_every = std::chrono::hours(1)}, clock_};
  FakeLeaseSource workers_;
  LeaseSpec spec_;
};

TEST_F(SharedLeasesTest, ChargesTheUserForAsLongAsTheLeaseIsHeld) {
  const Leases leases = LeasesOf("ann");
  {
    ASSERT_OK_AND_ASSIGN(const LeasedWorker lease, leases.source->Acquire(absl::Seconds(10), {}));
    clock_.Advance(absl::Seconds(5));
    EXPECT_NEAR(shares_.Users()[0].device_s, 5, 0.01) << "a lease in use is charged already";
    EXPECT_EQ(shares_.Users()[0].devices, 1);
    EXPECT_NEAR(spec_.use(), 5, 0.01);
  }
  EXPECT_EQ(workers_.held(), 0);
  clock_.Advance(absl::Seconds(5));
  EXPECT_NEAR(shares_.Users()[0].device_s, 5, 0.01);
  EXPECT_EQ(shares_.Users()[0].devices, 0);
}

TEST_F(SharedLeasesTest, BuildersAreNeitherChargedNorLimited) {
  ASSERT_OK(shares_.SetLimits("ann", {.devices = 1}));
  const Leases leases = LeasesOf("ann", v1::BUILDER);
  ASSERT_OK_AND_ASSIGN(const LeasedWorker one, leases.source->Acquire(absl::Seconds(10), {}));
  ASSERT_OK_AND_ASSIGN(const LeasedWorker two, leases.source->Acquire(absl::Seconds(10), {}));
  EXPECT_EQ(shares_.Users()[0].devices, 0);
  EXPECT_EQ(spec_.use, nullptr);
}

TEST_F(SharedLeasesTest, WaitsAtTheLimitAndSaysSo) {
  ASSERT_OK(shares_.SetLimits("ann", {.devices = 1}));
  const Leases leases = LeasesOf("ann"), other_job = LeasesOf("ann");
  EXPECT_EQ(leases.why_waiting(), "all busy");
  ASSERT_OK_AND_ASSIGN(LeasedWorker lease, leases.source->Acquire(absl::Seconds(10), {}));
  EXPECT_THAT(leases.why_waiting(), HasSubstr("his limit is 1; an admin changes it"));
  EXPECT_THAT(other_job.source->Acquire(absl::Milliseconds(1), {}),
              StatusIs(StatusCode::kDeadlineExceeded, HasSubstr("his limit is 1")));
  EXPECT_OK(LeasesOf("bob").source->Acquire(absl::Seconds(10), {}));
  StatusOr<LeasedWorker> next = Unavailable("none");
  std::jthread waits([&] { next = other_job.source->Acquire(absl::Minutes(1), {}); });
  lease.Release();
  waits.join();
  EXPECT_OK(next);
}

TEST_F(SharedLeasesTest, AJobWithoutADeviceHoldsUpNoOtherJobOfItsUser) {
  ASSERT_OK(shares_.SetLimits("ann", {.devices = 1}));
  const Leases picky = LeasesOf("ann"), easy = LeasesOf("ann");
  std::stop_source stop;
  std::jthread waits([&] {
    EXPECT_THAT(
        picky.source->Acquire(absl::InfiniteDuration(), stop.get_token(), {"w0", "w1", "w2"}),
        StatusIs(StatusCode::kCancelled, testing::_));
  });
  while (shares_.WhyNoDevice("ann").empty()) std::this_thread::yield();
  EXPECT_OK(easy.source->Acquire(absl::Minutes(1), {}));
  stop.request_stop();
}

}  // namespace
}  // namespace kiln::scheduler
