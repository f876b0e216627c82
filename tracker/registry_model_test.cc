// Compares the registry with a simple model, through random operations and through all short
// sequences of operations.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "tracker/registry_model_testing.h"
#include "tracker/registry_testing.h"

namespace kiln::tracker {
namespace {

using v1::BUILDER;
using v1::RUNNER;

// Follows the registry operation by operation. Checks that each grant was due and goes to a free
// slot, that no grant is missing, and that the books agree afterwards.
class RegistryRandomTest : public testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override {
    rng_.seed(GetParam());
    options_.new_lease_id = [this] { return fmt::format("l{}", next_id_++); };
    Restart();
  }

  int Uniform(int n) { return static_cast<int>(rng_() % static_cast<uint64_t>(n)); }

  v1::WorkerMode RandomMode() { return static_cast<v1::WorkerMode>(Uniform(5)); }

  void RandomWish() {
    v1::SetWorkerModeRequest request;
    request.set_worker(fmt::format("w{}", Uniform(7)));
    request.set_mode(Uniform(2) == 0 ? v1::WORKER_SERVES : RandomMode());
    request.set_user(fmt::format("u{}", Uniform(2)));
    const auto reply = registry_->SetWorkerMode(request, now_);
    if (request.mode() == v1::WORKER_QUARANTINED) {
      EXPECT_EQ(reply.status().code(), StatusCode::kInvalidArgument);
      return;
    }
    model_.Advance(now_);
    RegistryModel::W* w = model_.FindWorker(request.worker());
    ASSERT_EQ(reply.ok(), w != nullptr) << reply.status();
    if (w != nullptr) w->wish = {request.mode(), request.user()};
  }

  void RandomAnnounce() {
    static const std::vector<std::vector<std::string>> kKeys = {
        {"cuda", "cuda/sm_90", "NVIDIA H200"}, {"cuda", "cuda/sm_80"}, {"llvm"}, {"llvm", "cuda"}};
    const int i = Uniform(7);
    v1::AnnounceRequest request =
        Worker(fmt::format("w{}", i), 1 + (Uniform(20) == 0 ? Uniform(3) : i % 3), kKeys[i % 4],
               i % 2 == 0 ? RUNNER : BUILDER);
    if (Uniform(10) == 0) request.mutable_worker()->set_address("shared:1");
    // Some workers have heard what is asked of them, and some have it from another tracker.
    const RegistryModel::W* known = model_.FindWorker(request.worker().id());
    if (Uniform(3) != 0 && known != nullptr && known->wish) {
      request.mutable_worker()->set_asked_mode(known->wish->first);
      request.mutable_worker()->set_asked_by(known->wish->second);
    } else if (Uniform(20) == 0) {
      request.mutable_worker()->set_asked_mode(RandomMode());
    }
    request.mutable_worker()->set_mode(Uniform(4) == 0 ? RandomMode() : v1::WORKER_SERVES);
    request.set_leaving(Uniform(25) == 0);
    request.set_rejoining(Uniform(4) == 0);
    const auto announced = registry_->Announce(request, now_);
    model_.Advance(now_);
    const int64_t interval = options_.deadline_ms / 4;
    const bool is_refused =
        !request.leaving() && model_.Contradicts(request.worker(), now_, interval + interval / 2);
    ASSERT_EQ(announced.ok(), !is_refused) << StatusOf(announced);
    if (is_refused) return;
    RegistryModel::W* w = model_.FindWorker(request.worker().id());
    if (request.leaving()) {
      if (w != nullptr) model_.DropWorker(request.worker().id());
      return;
    }
    if (w == nullptr) {
      std::vector<std::string> same;
      for (const RegistryModel::W& other : model_.workers) {
        if (other.state.address() == request.worker().address()) same.push_back(other.state.id());
      }
      for (const std::string& id : same) model_.DropWorker(id);
      model_.workers.emplace_back();
      w = &model_.workers.back();
    }
    if (!w->announced && request.rejoining()) w->grantable_from = now_ + options_.refill_ms;
    w->announced = true;
    w->state = request.worker();
    const bool repeats = w->state.asked_mode() != v1::WORKER_SERVES || !w->state.asked_by().empty();
    if (!w->wish && repeats) w->wish = {w->state.asked_mode(), w->state.asked_by()};
    if (w->wish) {
      EXPECT_EQ(announced->asked_mode(), w->wish->first);
      EXPECT_EQ(announced->asked_by(), w->wish->second);
    }
    EXPECT_EQ(announced->has_asked_mode(), w->wish.has_value());
    w->heard = now_;
    w->gone_at = now_ + options_.deadline_ms;
    while (model_.Busy(*w) > w->state.slots()) {
      const auto newest = std::find_if(
          model_.leases.rbegin(), model_.leases.rend(),
          [&](const RegistryModel::L& l) { return l.lease.worker().id() == w->state.id(); });
      model_.leases.erase(std::next(newest).base());
    }
  }

  void RandomAcquire() {
    static const std::vector<std::string> kKeys = {"cuda", "llvm", "NVIDIA H200", "cuda/sm_80",
                                                   "nobody"};
    v1::AcquireRequest ask;
    if (!model_.waiting.empty() && Uniform(3) == 0) {
      ask = model_.waiting[Uniform(static_cast<int>(model_.waiting.size()))].ask;
    } else {
      ask = Ask(fmt::format("r{}", next_id_++), fmt::format("u{}", Uniform(4)), kKeys[Uniform(5)],
                Uniform(3));
      ask.set_kind(Uniform(2) == 0 ? RUNNER : BUILDER);
    }
    ask.set_wait_ms(Uniform(2) == 0 ? 0 : 20'000);
    ask.set_lease_ms(Uniform(2) == 0 ? 0 : 3'000);
    ask.set_use(Uniform(3));
    model_.use[{ask.kind(), ask.user()}] = ask.use();
    model_.Advance(now_);
    auto known = std::find_if(
        model_.waiting.begin(), model_.waiting.end(),
        [&](const RegistryModel::R& r) { return r.ask.request_id() == ask.request_id(); });
    if (known == model_.waiting.end()) {
      model_.waiting.push_back({ask, 0});
      known = std::prev(model_.waiting.end());
    }
    known->ask = ask;
    known->keep_until =
        std::max(known->keep_until, now_ + ask.wait_ms() + options_.request_idle_ms);
    ASSERT_OK(registry_->Acquire(ask, now_));
  }

  bool ModelRenews(const v1::Lease& lease, const std::string& scheduler) {
    if (RegistryModel::L* known = model_.FindLease(lease.id())) {
      if (known->scheduler != scheduler) return false;
      known->expires = now_ + known->lease.lease_ms();
      return true;
    }
    if (released_.count(lease.id()) > 0) return false;
    RegistryModel::W* w = model_.FindWorker(lease.worker().id());
    if (w == nullptr) {
      if (now_ >= model_.start + options_.deadline_ms) return false;
      if (model_.departed.count(lease.worker().id()) > 0) return false;
      for (const RegistryModel::W& other : model_.workers) {
        if (other.state.address() == lease.worker().address()) return false;
      }
      model_.workers.push_back(
          {.state = lease.worker(), .gone_at = model_.start + options_.deadline_ms});
      w = &model_.workers.back();
    }
    if (model_.Busy(*w) >= w->state.slots()) return false;
    model_.leases.push_back({lease, scheduler, "", now_ + lease.lease_ms()});
    model_.use[{w->state.kind(), lease.user()}] = lease.use();
    return true;
  }

  // Schedulers remember every lease that they ever got, lost and released ones too.
  void RandomRenew() {
    const std::string user = fmt::format("u{}", Uniform(4));
    std::vector<v1::Lease> mine;
    for (const v1::Lease& lease : given_) {
      const bool own = lease.user() == user;
      if (own ? Uniform(5) != 0 : Uniform(50) == 0) mine.push_back(lease);
    }
    for (v1::Lease& lease : mine) {
      lease.set_use(Uniform(3));
      const RegistryModel::L* known = model_.FindLease(lease.id());
      if (known == nullptr || known->scheduler != fmt::format("s-{}", user)) continue;
      model_.use[{known->lease.worker().kind(), known->lease.user()}] = lease.use();
    }
    model_.Advance(now_);
    const v1::RenewRequest request = RenewOf(user, mine);
    const auto reply = registry_->Renew(request, now_);
    ASSERT_OK(reply);
    // Grants that come from the passing of time precede the renewal.
    CheckGrants();
    std::vector<std::string> lost;
    for (const v1::Lease& lease : mine) {
      if (!ModelRenews(lease, request.scheduler_id())) lost.push_back(lease.id());
    }
    EXPECT_THAT(reply->lost_lease_ids(), testing::ElementsAreArray(lost));
    const std::set<std::string> wanted(reply->wanted_lease_ids().begin(),
                                       reply->wanted_lease_ids().end());
    for (const v1::Lease& lease : mine) {
      const RegistryModel::L* held = model_.FindLease(lease.id());
      if (held == nullptr || held->scheduler != request.scheduler_id()) continue;
      const bool gives_back = model_.GivesBack(*model_.FindWorker(lease.worker().id()));
      EXPECT_TRUE(!gives_back || wanted.contains(lease.id())) << lease.id();
    }
    size_t for_others = 0;
    for (const std::string& id : reply->wanted_lease_ids()) {
      const RegistryModel::L* lease = model_.FindLease(id);
      ASSERT_NE(lease, nullptr);
      const int strictness = model_.StrictnessOf(*model_.FindWorker(lease->lease.worker().id()));
      if (strictness >= 2) continue;
      EXPECT_EQ(strictness, 0) << "the slot of a cordoned worker goes to nobody";
      ++for_others;
      EXPECT_TRUE(std::any_of(model_.waiting.begin(), model_.waiting.end(),
                              [&](const auto& r) {
                                const RegistryModel::W* w =
                                    model_.FindWorker(lease->lease.worker().id());
                                return Serves(w->state, r.ask.kind(), r.ask.key()) &&
                                       r.ask.priority() >= lease->lease.priority();
                              }))
          << "nobody who waits may have lease " << id;
    }
    EXPECT_LE(for_others, model_.waiting.size());
    std::erase_if(given_, [&](const v1::Lease&) { return Uniform(40) == 0; });
  }

  void RandomRelease() {
    v1::ReleaseRequest request = ReleaseOf(fmt::format("u{}", Uniform(4)), {});
    for (const v1::Lease& lease : given_) {
      if (Uniform(6) == 0) request.add_lease_ids(lease.id());
    }
    for (const RegistryModel::R& r : model_.waiting) {
      if (Uniform(6) == 0) request.add_request_ids(r.ask.request_id());
    }
    for (const RegistryModel::L& l : model_.leases) {
      if (!l.request.empty() && Uniform(10) == 0) request.add_request_ids(l.request);
    }
    for (const std::string& id : request.lease_ids()) {
      const RegistryModel::L* lease = model_.FindLease(id);
      if (lease != nullptr && lease->scheduler != request.scheduler_id()) continue;
      released_.insert(id);
      std::erase_if(model_.leases, [&](const RegistryModel::L& l) { return l.lease.id() == id; });
    }
    for (const std::string& id : request.request_ids()) {
      std::erase_if(model_.waiting, [&](const RegistryModel::R& r) {
        return r.ask.request_id() == id && r.ask.scheduler_id() == request.scheduler_id();
      });
      std::erase_if(model_.leases, [&](const RegistryModel::L& l) {
        const bool drop = l.request == id && l.scheduler == request.scheduler_id();
        if (drop) released_.insert(l.lease.id());
        return drop;
      });
    }
    registry_->Release(request, now_);
    model_.Advance(now_);
  }

  void Restart() {
    registry_.emplace(options_, now_);
    model_ = RegistryModel(now_);
    released_.clear();
  }

  void CheckGrants() {
    for (const std::string& id : registry_->TakeGranted()) {
      const std::optional<size_t> due = model_.Due(now_);
      ASSERT_TRUE(due.has_value()) << id << " was granted and nothing was due";
      const v1::AcquireRequest ask = model_.waiting[*due].ask;
      ASSERT_EQ(ask.request_id(), id) << "out of order";
      const v1::AcquireReply reply = registry_->Poll(id, now_);
      ASSERT_TRUE(reply.has_lease());
      const v1::Lease& lease = reply.lease();
      RegistryModel::W* w = model_.FindWorker(lease.worker().id());
      ASSERT_NE(w, nullptr) << "lease on a worker that is gone";
      ASSERT_TRUE(Serves(w->state, ask.kind(), ask.key()));
      ASSERT_GT(model_.Free(*w, now_), 0) << "slot granted twice";
      ASSERT_EQ(model_.FindLease(lease.id()), nullptr);
      model_.leases.push_back({lease, ask.scheduler_id(), id, now_ + lease.lease_ms()});
      given_.push_back(lease);
      model_.waiting.erase(model_.waiting.begin() + static_cast<ptrdiff_t>(*due));
      ++grants_;
    }
    ASSERT_FALSE(model_.Due(now_).has_value()) << "a free slot and a request that fits it";
  }

  void CheckInvariants() {
    const v1::ListReply list = registry_->List(now_);
    ASSERT_EQ(static_cast<size_t>(list.workers_size()), model_.workers.size());
    for (int i = 0; i < list.workers_size(); ++i) {
      const RegistryModel::W* w = model_.FindWorker(list.workers(i).id());
      ASSERT_NE(w, nullptr);
      ASSERT_EQ(list.busy_slots(i), model_.Busy(*w)) << w->state.id();
      ASSERT_LE(list.busy_slots(i), w->state.slots());
    }
    size_t pending = 0;
    for (const v1::KeyState& row : list.keys()) {
      ASSERT_LE(row.free(), row.total());
      pending += row.pending();
    }
    ASSERT_EQ(pending, model_.waiting.size());
    ASSERT_GT(registry_->NextEventMs().value_or(std::numeric_limits<int64_t>::max()), now_);
  }

  std::mt19937_64 rng_;
  RegistryOptions options_;
  int64_t now_ = 0;
  std::optional<Registry> registry_{std::in_place, RegistryOptions(), 0};
  RegistryModel model_{0};
  std::vector<v1::Lease> given_;
  std::set<std::string> released_;
  int next_id_ = 0;
  int grants_ = 0;
};

TEST_P(RegistryRandomTest, AgreesWithTheModel) {
  for (int step = 0; step < 4'000; ++step) {
    SCOPED_TRACE(fmt::format("seed {} step {} now {}", GetParam(), step, now_));
    const int op = Uniform(100);
    if (op < 28) {
      RandomAnnounce();
    } else if (op < 30) {
      RandomWish();
    } else if (op < 60) {
      RandomAcquire();
    } else if (op < 75) {
      RandomRenew();
    } else if (op < 80) {
      RandomRelease();
    } else if (op < 99) {
      now_ += Uniform(4) == 0 ? Uniform(6'000) : Uniform(300);
      registry_->Advance(now_);
      model_.Advance(now_);
    } else if (Uniform(4) == 0) {
      Restart();
    }
    // The registry forgets released leases after a minute; so do schedulers here.
    if (step % 200 == 0) given_.clear();
    CheckGrants();
    CheckInvariants();
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(grants_, 200) << "the run exercised nothing";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RegistryRandomTest, testing::Range<uint64_t>(1, 33),
                         [](const auto& p) { return fmt::format("seed{}", p.param); });

// Runs every sequence of six operations on one slot and two users. The slot is never held twice,
// and is never idle while a request waits.
TEST(RegistryExhaustiveTest, OneSlotTwoUsers) {
  constexpr int kOps = 8;
  constexpr int kLength = 6;
  int total = 1;
  for (int i = 0; i < kLength; ++i) total *= kOps;
  for (int code = 0; code < total; ++code) {
    Registry registry({.deadline_ms = 3'000, .default_lease_ms = 2'000, .request_idle_ms = 1'500},
                      0);
    int64_t now = 0;
    // The last lease of each user.
    std::map<std::string, v1::Lease> last;
    int rest = code;
    for (int i = 0; i < kLength; ++i, rest /= kOps) {
      const int op = rest % kOps;
      const std::string user = op % 2 == 0 ? "ann" : "bob";
      switch (op / 2) {
        case 0: {
          v1::AnnounceRequest request = Worker("w", 1, {"cuda"});
          request.set_leaving(op == 1);
          ASSERT_OK(registry.Announce(request, now));
          break;
        }
        case 1: {
          v1::AcquireRequest ask = Ask("r-" + user, user);
          ask.set_wait_ms(0);
          const auto reply = registry.Acquire(ask, now);
          ASSERT_OK(reply);
          if (reply->has_lease()) last[user] = reply->lease();
          break;
        }
        case 2: {
          if (last.count(user) == 0) break;
          ASSERT_OK(registry.Renew(RenewOf(user, {last[user]}), now));
          break;
        }
        default:
          if (op == 6) {
            now += 1'000;
          } else if (last.count("ann") > 0) {
            registry.Release(ReleaseOf("ann", {last["ann"].id()}), now);
          }
      }
      const v1::ListReply list = registry.List(now);
      ASSERT_LE(list.workers_size(), 1) << code;
      const uint32_t busy = list.workers_size() == 1 ? list.busy_slots(0) : 0;
      ASSERT_LE(busy, 1u) << code;
      for (const v1::KeyState& row : list.keys()) {
        ASSERT_EQ(row.free() + busy, row.total()) << code;
        ASSERT_FALSE(row.free() > 0 && row.pending() > 0) << code;
      }
    }
  }
}

}  // namespace
}  // namespace kiln::tracker
