#include "scheduler/fair_share/fair_shares.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace kiln::scheduler {

FairShares::FairShares(store::Store& store, const Options& options, Clock& clock)
    : store_(store), options_(options), clock_(clock), start_s_(clock.MonotonicSeconds()) {}

FairShares::~FairShares() {
  writer_ = {};
  const Status written = Write();
  if (!written.ok()) LogWarn("the users' device seconds are not written: {}", Message(written));
}

// Times of the accounts count from the start.
double FairShares::NowSeconds() const { return clock_.MonotonicSeconds() - start_s_; }

Status FairShares::Start() {
  KILN_ASSIGN_OR_RETURN(const std::vector<store::UserRow> rows, store_.Users());
  std::lock_guard lock(mutex_);
  const double now_s = NowSeconds();
  const int64_t now_ms = absl::ToUnixMillis(clock_.Now());
  for (const store::UserRow& row : rows) {
    Account& account = Get(row.use.name);
    account.limits = row.limits;
    const double ago_s = 1e-3 * static_cast<double>(std::max<int64_t>(now_ms - row.use.at_ms, 0));
    account.history.Restore(row.use.device_s, now_s - ago_s);
    account.has_place = row.use.queue_use.has_value();
    account.use = row.use.queue_use.value_or(0);
    // A user with a place competed when the last process ended, or shortly before it.
    account.left_at_s = now_s;
  }
  writer_ = std::jthread([this](const std::stop_token& stop) { WriteNowAndThen(stop); });
  return OkStatus();
}

FairShares::Account& FairShares::Get(const std::string& user) {
  const auto [at, is_new] = accounts_.try_emplace(user, options_.half_life_s);
  if (is_new) {
    at->second.history.Restore(0, NowSeconds());
    at->second.use_at_s = NowSeconds();
  }
  return at->second;
}

void FairShares::Advance(Account& account) {
  const double now_s = NowSeconds();
  account.history.Advance(now_s, account.devices);
  account.use += account.devices * (now_s - account.use_at_s) / account.limits.weight;
  account.use_at_s = now_s;
  account.changed |= account.devices > 0;
}

void FairShares::AdvanceAll() {
  for (auto& [name, account] : accounts_) Advance(account);
}

const FairShares::Account* FairShares::Ahead(const Account& account) const {
  const Account* best = nullptr;
  for (const auto& [name, other] : accounts_) {
    if (&other == &account || !other.competes()) continue;
    const auto rank = [](const Account& a) { return std::pair(a.devices == 0, a.use); };
    if (best == nullptr || rank(other) < rank(*best)) best = &other;
  }
  return best;
}

bool FairShares::LeftJustNow(const Account& account) const {
  return account.has_place && account.left_at_s.has_value() &&
         NowSeconds() - *account.left_at_s <= options_.pause_s;
}

void FairShares::Place(Account& account) {
  const bool keeps = LeftJustNow(account);
  const double lead = options_.head_start_s;
  const Account* other = Ahead(account);
  if (other == nullptr) {
    if (!keeps) account.use = account.Score();
  } else if (keeps) {
    account.use = std::clamp(account.use, other->use - lead, other->use + lead);
  } else {
    account.use = other->use + std::clamp(account.Score() - other->Score(), -lead, lead);
  }
  account.has_place = true;
  account.left_at_s.reset();
}

void FairShares::Change(const std::string& user, const std::function<void(Account&)>& change) {
  std::lock_guard lock(mutex_);
  AdvanceAll();
  Account& account = Get(user);
  const bool before = account.competes();
  change(account);
  if (!before && account.competes()) Place(account);
  if (before && !account.competes()) account.left_at_s = NowSeconds();
  account.changed = true;
  changed_.notify_all();
}

void FairShares::BeginAsking(const std::string& user) {
  Change(user, [](Account& account) { ++account.asking; });
}
void FairShares::EndAsking(const std::string& user) {
  Change(user, [](Account& account) { --account.asking; });
}
void FairShares::EndReservation(const std::string& user) {
  Change(user, [](Account& account) { --account.reserved; });
}
void FairShares::BeginDevice(const std::string& user) {
  Change(user, [](Account& account) {
    --account.reserved;
    ++account.devices;
  });
}
void FairShares::EndDevice(const std::string& user) {
  Change(user, [](Account& account) { --account.devices; });
}

bool FairShares::MayReserve(const Account& account) const {
  const auto taken = static_cast<uint32_t>(account.devices + account.reserved);
  return account.limits.devices == 0 || taken < account.limits.devices;
}

bool FairShares::Reserve(const std::string& user, std::chrono::steady_clock::time_point until,
                         const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const auto place = waiting_.insert(waiting_.end(), user);
  const bool may = changed_.wait_until(lock, stop, until, [&] {
    return MayReserve(Get(user)) && std::ranges::find(waiting_, user) == place;
  });
  waiting_.erase(place);
  if (may) ++Get(user).reserved;
  changed_.notify_all();
  return may;
}

double FairShares::Use(const std::string& user) {
  std::lock_guard lock(mutex_);
  AdvanceAll();
  Account& account = Get(user);
  if (!account.has_place) return account.Score();
  // A user whom no device suits falls behind the others no further than a newcomer may be.
  const Account* other = Ahead(account);
  if (account.competes() && account.devices == 0 && other != nullptr && other->devices > 0) {
    account.use = std::max(account.use, other->use - options_.head_start_s);
  }
  return account.use;
}

std::string FairShares::WhyNoDevice(const std::string& user) const {
  std::lock_guard lock(mutex_);
  const auto it = accounts_.find(user);
  if (it == accounts_.end() || MayReserve(it->second)) return "";
  return fmt::format(
      "'{}' has {} devices at once, and his limit is {}; an admin changes it by `kiln users set {} "
      "--devices N`",
      user, it->second.devices + it->second.reserved, it->second.limits.devices, user);
}

std::vector<FairShares::User> FairShares::Users() {
  std::lock_guard lock(mutex_);
  AdvanceAll();
  std::vector<User> users;
  for (const auto& [name, account] : accounts_) {
    users.push_back({name, account.limits, account.history.device_s(), account.devices});
  }
  return users;
}

store::UserLimits FairShares::LimitsOf(const std::string& user) const {
  std::lock_guard lock(mutex_);
  const auto it = accounts_.find(user);
  return it == accounts_.end() ? store::UserLimits() : it->second.limits;
}

Status FairShares::SetLimits(const std::string& user, const store::UserLimits& limits) {
  const std::lock_guard write_lock(write_mutex_);
  KILN_RETURN_IF_ERROR(store_.SetUserLimits(user, limits));
  Change(user, [&](Account& account) { account.limits = limits; });
  return OkStatus();
}

Status FairShares::Write() {
  const std::lock_guard write_lock(write_mutex_);
  std::vector<store::UserUse> uses;
  {
    std::lock_guard lock(mutex_);
    AdvanceAll();
    const int64_t now_ms = absl::ToUnixMillis(clock_.Now());
    for (auto& [name, account] : accounts_) {
      const bool keeps = account.competes() || LeftJustNow(account);
      if (account.has_place && !keeps) {
        account.has_place = false;
        account.changed = true;
      }
      if (!std::exchange(account.changed, false)) continue;
      store::UserUse use{.name = name, .device_s = account.history.device_s(), .at_ms = now_ms};
      if (keeps) use.queue_use = account.use;
      uses.push_back(std::move(use));
    }
  }
  if (uses.empty()) return OkStatus();
  Status written = store_.SetUserUses(uses);
  if (written.ok()) return written;
  std::lock_guard lock(mutex_);
  for (const store::UserUse& use : uses) Get(use.name).changed = true;
  return written;
}

void FairShares::WriteNowAndThen(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any ended;
  std::unique_lock lock(mutex);
  std::string problem;
  while (!ended.wait_for(lock, stop, options_.write_every, [&] { return stop.stop_requested(); })) {
    const Status written = Write();
    const std::string now(written.ok() ? "" : Message(written));
    if (!now.empty() && now != problem) LogWarn("the users' device seconds wait: {}", now);
    problem = now;
  }
}

}  // namespace kiln::scheduler
