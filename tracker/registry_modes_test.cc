// Tests modes of workers: who asks for them, and which leases are granted and wanted then.
#include "tracker/registry_testing.h"

namespace kiln::tracker {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

v1::SetWorkerModeRequest Wish(std::string_view worker, v1::WorkerMode mode,
                              std::string_view user = "ada") {
  v1::SetWorkerModeRequest request;
  request.set_worker(std::string(worker));
  request.set_mode(mode);
  request.set_user(std::string(user));
  return request;
}

class RegistryModesTest : public RegistryTest {
 protected:
  std::vector<std::string> Asked(const v1::SetWorkerModeRequest& request) {
    const auto reply = registry_.SetWorkerMode(request, now_ms_);
    EXPECT_OK(reply);
    return {reply->workers().begin(), reply->workers().end()};
  }
  // Announces the worker in the mode that the registry asks for, as a worker does that has heard.
  void AnnounceAsAsked(v1::AnnounceRequest request) {
    const auto reply = registry_.Announce(request, now_ms_);
    ASSERT_OK(reply);
    const EffectiveMode mode = AskedMode(reply->asked_mode(), reply->asked_by());
    request.mutable_worker()->set_asked_mode(reply->asked_mode());
    request.mutable_worker()->set_asked_by(reply->asked_by());
    request.mutable_worker()->set_mode(mode.mode);
    request.mutable_worker()->set_mode_reason(mode.sentence);
    Announce(request);
  }
  v1::WorkerState Listed() { return registry_.List(now_ms_).workers(0); }
};

TEST_F(RegistryModesTest, OnlyAWorkerThatServesGetsLeases) {
  for (const v1::WorkerMode mode :
       {v1::WORKER_CORDONED, v1::WORKER_DRAINS, v1::WORKER_PAUSED, v1::WORKER_QUARANTINED}) {
    SCOPED_TRACE(v1::WorkerMode_Name(mode));
    v1::AnnounceRequest worker = Worker("w", 2, {"cuda"});
    worker.mutable_worker()->set_mode(mode);
    worker.mutable_worker()->set_mode_reason("not now");
    Announce(worker);
    EXPECT_EQ(Waits(Ask("r1", "ann")), 1u);
    EXPECT_EQ(registry_.Poll("r1", now_ms_).matching_slots(), 2u) << "the device is there";
    const v1::ListReply list = registry_.List(now_ms_);
    EXPECT_EQ(list.keys(0).total(), 2u);
    EXPECT_EQ(list.keys(0).free(), 0u);
    EXPECT_EQ(list.workers(0).mode_reason(), "not now");
    worker.mutable_worker()->clear_mode();
    worker.mutable_worker()->clear_mode_reason();
    EXPECT_OK(registry_.Announce(worker, now_ms_));
    EXPECT_THAT(registry_.TakeGranted(), ElementsAre("r1"));
    registry_.Release(ReleaseOf("ann", {}, {"r1"}), now_ms_);
  }
}

TEST_F(RegistryModesTest, LeasesOfADrainingWorkerAreWanted) {
  Announce(Worker("w", 2, {"cuda"}));
  const v1::Lease one = Granted(Ask("r1", "ann")), two = Granted(Ask("r2", "ann"));
  EXPECT_THAT(Renew(RenewOf("ann", {one, two})).wanted_lease_ids(), IsEmpty());
  EXPECT_THAT(Asked(Wish("w", v1::WORKER_CORDONED)), ElementsAre("w"));
  EXPECT_THAT(Renew(RenewOf("ann", {one, two})).wanted_lease_ids(), IsEmpty());
  for (const v1::WorkerMode mode : {v1::WORKER_DRAINS, v1::WORKER_PAUSED}) {
    Asked(Wish("w", mode));
    const v1::RenewReply reply = Renew(RenewOf("ann", {one, two}));
    EXPECT_THAT(reply.wanted_lease_ids(), ElementsAre(one.id(), two.id()));
    EXPECT_THAT(reply.lost_lease_ids(), IsEmpty());
  }
  EXPECT_THAT(GrantedBy(ReleaseOf("ann", {one.id()})), IsEmpty());
  Asked(Wish("w", v1::WORKER_SERVES));
  EXPECT_THAT(Renew(RenewOf("ann", {two})).wanted_lease_ids(), IsEmpty());
  EXPECT_EQ(registry_.List(now_ms_).keys(0).free(), 1u);
}

// The slot would go to nobody, so another one has to.
TEST_F(RegistryModesTest, AWaitingRequestWantsASlotThatItCanGet) {
  Announce(Worker("old", 1, {"cuda"}));
  const v1::Lease old = Granted(Ask("r1", "ann"));
  Announce(Worker("new", 1, {"cuda"}));
  const v1::Lease fresh = Granted(Ask("r2", "ann"));
  Waits(Ask("r3", "bob", "cuda", /*priority=*/1));
  EXPECT_THAT(Renew(RenewOf("ann", {old, fresh})).wanted_lease_ids(), ElementsAre(old.id()));
  Asked(Wish("old", v1::WORKER_CORDONED));
  EXPECT_THAT(Renew(RenewOf("ann", {old, fresh})).wanted_lease_ids(), ElementsAre(fresh.id()));
  Asked(Wish("old", v1::WORKER_DRAINS));
  EXPECT_THAT(Renew(RenewOf("ann", {old, fresh})).wanted_lease_ids(),
              ElementsAre(old.id(), fresh.id()));
}

TEST_F(RegistryModesTest, AWishCountsAtOnceAndAResumptionOnceTheWorkerKnows) {
  Announce(Worker("w", 1, {"cuda"}));
  Asked(Wish("w", v1::WORKER_PAUSED));
  EXPECT_EQ(Listed().mode(), v1::WORKER_PAUSED);
  EXPECT_EQ(Listed().mode_reason(), "paused by ada");
  AnnounceAsAsked(Worker("w", 1, {"cuda"}));
  EXPECT_EQ(Listed().mode(), v1::WORKER_PAUSED);
  Waits(Ask("r1", "ann"));
  Asked(Wish("w", v1::WORKER_SERVES, "bob"));
  EXPECT_EQ(Listed().mode(), v1::WORKER_PAUSED) << "it has not heard yet";
  AnnounceAsAsked(Worker("w", 1, {"cuda"}));
  EXPECT_EQ(Listed().mode(), v1::WORKER_SERVES);
  EXPECT_TRUE(registry_.Poll("r1", now_ms_).has_lease());
}

// The worker's own condition stays when the operator has no wish any more.
TEST_F(RegistryModesTest, TheStricterModeCounts) {
  v1::AnnounceRequest worker = Worker("w", 1, {"cuda"});
  worker.mutable_worker()->set_mode(v1::WORKER_QUARANTINED);
  worker.mutable_worker()->set_mode_reason("no child starts");
  Announce(worker);
  Asked(Wish("w", v1::WORKER_DRAINS));
  EXPECT_EQ(Listed().mode_reason(), "no child starts");
  Asked(Wish("w", v1::WORKER_PAUSED));
  EXPECT_EQ(Listed().mode_reason(), "paused by ada");
  Asked(Wish("w", v1::WORKER_SERVES));
  EXPECT_EQ(Listed().mode(), v1::WORKER_QUARANTINED);
}

TEST_F(RegistryModesTest, ARestartedRegistryLearnsTheWish) {
  Announce(Worker("w", 1, {"cuda"}));
  Asked(Wish("w", v1::WORKER_DRAINS, ""));  // by a caller without a name
  AnnounceAsAsked(Worker("w", 1, {"cuda"}));
  const v1::WorkerState said = Listed();
  Registry restarted(RegistryOptions(), now_ms_);
  v1::AnnounceRequest again;
  *again.mutable_worker() = said;
  again.set_rejoining(true);
  ASSERT_OK_AND_ASSIGN(const v1::AnnounceReply reply, restarted.Announce(again, now_ms_));
  EXPECT_EQ(reply.asked_mode(), v1::WORKER_DRAINS);
  EXPECT_EQ(restarted.List(now_ms_).workers(0).mode_reason(), "drained by an operator");
  // An announcement that was sent before the worker heard takes nothing back.
  ASSERT_OK(restarted.SetWorkerMode(Wish("w", v1::WORKER_PAUSED), now_ms_));
  ASSERT_OK_AND_ASSIGN(const v1::AnnounceReply later, restarted.Announce(again, now_ms_));
  EXPECT_EQ(later.asked_mode(), v1::WORKER_PAUSED);
  EXPECT_EQ(later.asked_by(), "ada");
}

TEST_F(RegistryModesTest, TheListSaysWhoseModeItIs) {
  v1::AnnounceRequest worker = Worker("w", 1, {"cuda"});
  Announce(worker);
  Asked(Wish("w", v1::WORKER_PAUSED));
  EXPECT_EQ(Listed().asked_mode(), v1::WORKER_PAUSED) << "the worker has not heard yet";
  EXPECT_EQ(Listed().asked_by(), "ada");
  AnnounceAsAsked(worker);
  Asked(Wish("w", v1::WORKER_SERVES, "bob"));
  EXPECT_EQ(Listed().asked_mode(), v1::WORKER_PAUSED) << "it is paused until it has heard";
  AnnounceAsAsked(worker);
  EXPECT_EQ(Listed().asked_mode(), v1::WORKER_SERVES);
  EXPECT_EQ(Listed().asked_by(), "bob");
  // The worker's own stricter mode stays its own.
  worker.mutable_worker()->set_mode(v1::WORKER_PAUSED);
  worker.mutable_worker()->set_mode_reason("outside of its hours");
  Announce(worker);
  Asked(Wish("w", v1::WORKER_CORDONED));
  EXPECT_EQ(Listed().asked_mode(), v1::WORKER_SERVES);
}

TEST_F(RegistryModesTest, AWorkerMaySayHowItServes) {
  v1::AnnounceRequest worker = Worker("w", 1, {"cuda"});
  Announce(worker);
  registry_.TakeEvents();
  worker.mutable_worker()->set_mode_reason("takes at most 25% of the device's time");
  Announce(worker);
  EXPECT_THAT(registry_.TakeEvents(),
              ElementsAre("worker w at w:1 serves: takes at most 25% of the device's time"));
  Granted(Ask("r1", "ann"));
}

TEST_F(RegistryModesTest, NobodyAsksForNothing) {
  const auto reply = registry_.Announce(Worker("w", 1, {"cuda"}), now_ms_);
  ASSERT_OK(reply);
  EXPECT_FALSE(reply->has_asked_mode());
}

TEST_F(RegistryModesTest, WorkersAreFoundByIdAddressOrAPartOfTheId) {
  Announce(Worker("a1b2", 1, {"cuda"}));
  Announce(Worker("a1b3", 1, {"cuda"}));
  Announce(Worker("a1", 1, {"cuda"}));
  EXPECT_THAT(Asked(Wish("b2", v1::WORKER_DRAINS)), ElementsAre("a1b2"));
  EXPECT_THAT(Asked(Wish("a1", v1::WORKER_DRAINS)), ElementsAre("a1")) << "the whole id";
  EXPECT_THAT(Asked(Wish("a1b3:1", v1::WORKER_DRAINS)), ElementsAre("a1b3"));
  EXPECT_THAT(
      registry_.SetWorkerMode(Wish("a1b", v1::WORKER_DRAINS), now_ms_),
      StatusIs(StatusCode::kFailedPrecondition,
               "'a1b' is a part of the ids of 2 workers: a1b2 at a1b2:1, a1b3 at a1b3:1; give more "
               "of the id"));
  EXPECT_THAT(registry_.SetWorkerMode(Wish("x", v1::WORKER_DRAINS), now_ms_),
              StatusIs(StatusCode::kNotFound,
                       AllOf(HasSubstr("no worker has the id or the address 'x'"),
                             HasSubstr("this tracker knows 3 workers: a1 at a1:1, a1b2 at "
                                       "a1b2:1, a1b3 at a1b3:1"))));
  for (int i = 0; i < 12; ++i) Announce(Worker(fmt::format("more{:02}", i), 1, {"cuda"}));
  EXPECT_THAT(registry_.SetWorkerMode(Wish("x", v1::WORKER_DRAINS), now_ms_),
              StatusIs(StatusCode::kNotFound, EndsWith("more06 at more06:1, and 5 more")));
  EXPECT_THAT(registry_.SetWorkerMode(Wish("", v1::WORKER_DRAINS), now_ms_),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("worker is empty")));
  EXPECT_THAT(registry_.SetWorkerMode(Wish("a1", v1::WORKER_QUARANTINED), now_ms_),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("mode is 4; expected")));
}

TEST_F(RegistryModesTest, OperatorsReadOfChanges) {
  Announce(Worker("w", 1, {"cuda"}));
  registry_.TakeEvents();
  Asked(Wish("w", v1::WORKER_PAUSED));
  AnnounceAsAsked(Worker("w", 1, {"cuda"}));
  EXPECT_THAT(registry_.TakeEvents(), ElementsAre("worker w at w:1 does not serve: paused by ada"));
  Asked(Wish("w", v1::WORKER_SERVES));
  EXPECT_THAT(registry_.TakeEvents(), IsEmpty());
  AnnounceAsAsked(Worker("w", 1, {"cuda"}));
  EXPECT_THAT(registry_.TakeEvents(), Contains("worker w at w:1 serves"));
}

TEST(RegistryIntervalTest, WorkersAnnounceOftenUntilTheyAreMany) {
  Registry registry({.max_workers = 3'000}, 0);
  EXPECT_EQ(registry.NextAnnounceMs(), 400);
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_OK(registry.Announce(Worker(fmt::format("w{}", i), 1, {"cuda"}), 0));
  }
  EXPECT_EQ(registry.NextAnnounceMs(), 2'000) << "500 a second";
  EXPECT_EQ(Registry({.deadline_ms = 1'000}, 0).NextAnnounceMs(), 250) << "four in a deadline";
  EXPECT_EQ(Registry({.deadline_ms = 1}, 0).NextAnnounceMs(), 1);
}

}  // namespace
}  // namespace kiln::tracker
