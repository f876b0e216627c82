// Tests requests of the registry: whose turn it is, how they wait, and how they end.
#include "tracker/registry_testing.h"

namespace kiln::tracker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using v1::BUILDER;

TEST_F(RegistryTest, GrantsAFreeSlotAtOnce) {
  Announce(Worker("w", 1, {"cuda", "NVIDIA H200"}));
  const v1::Lease lease = Granted(Ask("r1", "ann"));
  EXPECT_EQ(lease.worker().id(), "w");
  EXPECT_EQ(lease.user(), "ann");
  EXPECT_EQ(lease.lease_ms(), 10'000u);
  EXPECT_EQ(Waits(Ask("r2", "bob", "NVIDIA H200")), 1u);
}

TEST_F(RegistryTest, KeyAndKindMustMatch) {
  Announce(Worker("b", 4, {"cuda"}, BUILDER));
  Announce(Worker("w", 4, {"llvm"}));
  const auto reply = registry_.Acquire(Ask("r1", "ann"), now_ms_);
  ASSERT_OK(reply);
  EXPECT_FALSE(reply->has_lease());
  EXPECT_EQ(reply->matching_slots(), 0u);
  EXPECT_EQ(registry_.Acquire(Ask("r2", "ann", "llvm"), now_ms_)->lease().worker().id(), "w");
}

TEST_F(RegistryTest, ARepeatedIdQueuesOnceAndAnswersTheSameLease) {
  Announce(Worker("w", 1, {"cuda"}));
  const v1::Lease lease = Granted(Ask("r1", "ann"));
  EXPECT_EQ(Granted(Ask("r1", "ann")).id(), lease.id());
  EXPECT_EQ(Waits(Ask("r2", "ann")), 1u);
  EXPECT_EQ(Waits(Ask("r2", "ann")), 1u);
  EXPECT_EQ(registry_.List(now_ms_).keys(0).pending(), 1u);
}

TEST_F(RegistryTest, AnIdInUseForSomethingElseIsRefused) {
  Waits(Ask("r1", "ann"));
  EXPECT_THAT(registry_.Acquire(Ask("r1", "bob"), now_ms_),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("'r1' is in use")));
}

TEST_F(RegistryTest, OrderIsPriorityThenFewestLeasesThenArrival) {
  Announce(Worker("w", 3, {"cuda"}));
  const v1::Lease a1 = Granted(Ask("a1", "ann"));
  const v1::Lease a2 = Granted(Ask("a2", "ann"));
  const v1::Lease b1 = Granted(Ask("b1", "bob"));
  Waits(Ask("ann-first", "ann"));
  Waits(Ask("bob", "bob"));
  Waits(Ask("cid", "cid"));
  Waits(Ask("dan", "dan"));
  EXPECT_EQ(Waits(Ask("ann-urgent", "ann", "cuda", 5)), 1u);
  EXPECT_EQ(Waits(Ask("ann-first", "ann")), 5u);
  EXPECT_THAT(GrantedBy(ReleaseOf("ann", {a1.id()})), ElementsAre("ann-urgent"));
  EXPECT_THAT(GrantedBy(ReleaseOf("ann", {a2.id()})), ElementsAre("cid"));
  EXPECT_THAT(GrantedBy(ReleaseOf("bob", {b1.id()})), ElementsAre("bob"))
      << "bob holds none now and came before dan";
}

TEST_F(RegistryTest, ARequestThatNobodyServesHoldsUpNobody) {
  Waits(Ask("r1", "ann", "cuda/sm_100", 9));
  Announce(Worker("w", 1, {"cuda"}));
  Granted(Ask("r2", "bob"));
}

TEST_F(RegistryTest, LoadGoesRound) {
  Announce(Worker("w1", 2, {"cuda"}));
  Announce(Worker("w2", 2, {"cuda"}));
  const std::string first = Granted(Ask("r1", "ann")).worker().id();
  EXPECT_NE(Granted(Ask("r2", "ann")).worker().id(), first);
}

TEST_F(RegistryTest, AvoidedWorkersAreLeftToOthers) {
  Announce(Worker("a", 2, {"cuda"}));
  v1::AcquireRequest picky = Ask("1", "ada");
  picky.add_avoid_worker_ids("a");
  Waits(picky);
  // The request holds no other request up, and gets the next worker that it does not avoid.
  EXPECT_EQ(Granted(Ask("2", "bob")).worker().id(), "a");
  registry_.TakeGranted();
  EXPECT_OK(registry_.Announce(Worker("b", 1, {"cuda"}), now_ms_));
  EXPECT_THAT(registry_.TakeGranted(), ElementsAre("1"));
  EXPECT_EQ(registry_.Poll("1", now_ms_).lease().worker().id(), "b");
  v1::AcquireRequest again = Ask("3", "ada");
  again.add_avoid_worker_ids("b");
  EXPECT_EQ(Granted(again).worker().id(), "a");
}

TEST_F(RegistryTest, ReleasingARequestReleasesWhatItWasGranted) {
  Announce(Worker("w", 1, {"cuda"}));
  Granted(Ask("r1", "ann"));
  Waits(Ask("r2", "bob"));
  EXPECT_THAT(GrantedBy(ReleaseOf("ann", {}, {"r1"})), ElementsAre("r2"));
}

TEST_F(RegistryTest, ARequestThatIsNotPolledIsDropped) {
  Announce(Worker("w", 1, {"cuda"}));
  const v1::Lease lease = Granted(Ask("r1", "ann"));
  Waits(Ask("r2", "bob"));
  registry_.StopPolling("r2", now_ms_);
  EXPECT_EQ(registry_.List(now_ms_).keys(0).pending(), 1u);
  now_ms_ += 5'000;
  EXPECT_EQ(registry_.List(now_ms_).keys(0).pending(), 0u);
}

TEST_F(RegistryTest, AGrantThatNobodyFetchesIsTakenBack) {
  Announce(Worker("w", 1, {"cuda"}));
  const v1::Lease lease = Granted(Ask("r1", "ann"));
  Waits(Ask("r2", "bob"));
  registry_.StopPolling("r2", now_ms_);
  EXPECT_THAT(GrantedBy(ReleaseOf("ann", {lease.id()})), ElementsAre("r2"));
  now_ms_ += 4'999;
  EXPECT_EQ(registry_.List(now_ms_).busy_slots(0), 1u);
  now_ms_ += 1;
  EXPECT_EQ(registry_.List(now_ms_).busy_slots(0), 0u);
}

TEST_F(RegistryTest, TheQueueIsBounded) {
  Registry small({.max_waiting = 2, .max_workers = 1}, 0);
  ASSERT_OK(small.Acquire(Ask("r1", "ann"), 0));
  ASSERT_OK(small.Acquire(Ask("r2", "ann"), 0));
  EXPECT_THAT(small.Acquire(Ask("r3", "ann"), 0),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("2 requests are waiting")));
  ASSERT_OK(small.Acquire(Ask("r2", "ann"), 0));
  ASSERT_OK(small.Announce(Worker("w", 1, {"llvm"}), 0));
  EXPECT_THAT(small.Announce(Worker("x", 1, {"llvm"}), 0),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("1 workers")));
}

}  // namespace
}  // namespace kiln::tracker
