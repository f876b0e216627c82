#include "scheduler/remeasure/elites.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "search/tuning/device_drift.h"
#include "search/tuning/final_race.h"

namespace kiln::scheduler {
namespace {

constexpr int kReserve = 2;     // candidates kept for each elite
constexpr int kMaxBlocks = 50;  // enough to know a candidate well
// Another device's readings count from now on if it has more than so many times as many.
constexpr int64_t kManyMore = 2;
// Devices of a task whose readings are kept. Only those of one count; another one that reads more
// takes its place.
constexpr size_t kMostDevices = 8;
// The search is told of a cost that has changed by more than this share.
constexpr double kWorthTelling = 0.005;

}  // namespace

EliteSet::EliteSet(const Options& options, std::vector<int> group_of_task)
    : options_(options), tasks_(group_of_task.size()) {
  for (size_t i = 0; i < tasks_.size(); ++i) tasks_[i].group = group_of_task[i];
}

// ---- who leads ------------------------------------------------------------------------------

int EliteSet::MaxElites(const Task& task) const {
  return search::MaxFinalists(options_.finalists, task.trials);
}

double EliteSet::CostOf(const Task& task, const Entry& entry) const {
  const auto home = task.devices.find(task.home);
  if (home == task.devices.end()) return entry.elite.cost_s;
  const double median_s = home->second.readings.median(entry.elite.record_id).cost_s;
  return median_s > 0 ? median_s : entry.elite.cost_s;
}

std::vector<EliteSet::Entry*> EliteSet::ByCost(Task& task) const {
  std::vector<std::pair<double, Entry*>> all;
  for (auto& [id, entry] : task.entries) all.emplace_back(CostOf(task, entry), &entry);
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Entry*> sorted;
  for (const auto& [cost_s, entry] : all) sorted.push_back(entry);
  return sorted;
}

double EliteSet::BestOfGroup(int group) const {
  double best_s = std::numeric_limits<double>::infinity();
  for (const Task& task : tasks_) {
    if (task.group != group) continue;
    for (const auto& [id, entry] : task.entries) best_s = std::min(best_s, CostOf(task, entry));
  }
  return best_s;
}

std::vector<EliteSet::Entry*> EliteSet::ElitesOf(Task& task) {
  const double limit_s = search::kFinalistMargin * BestOfGroup(task.group);
  std::vector<Entry*> elites = ByCost(task);
  const auto most = static_cast<size_t>(MaxElites(task));
  if (elites.size() > most) elites.resize(most);
  while (!elites.empty() && CostOf(task, *elites.back()) > limit_s) elites.pop_back();
  return elites;
}

bool EliteSet::MayBeElite(int task, double cost_s) const {
  std::lock_guard lock(mutex_);
  if (cost_s > options_.slowest_s) return false;
  return cost_s <= search::kFinalistMargin * BestOfGroup(tasks_[task].group);
}

void EliteSet::CountTrials(int task, int trials) {
  std::lock_guard lock(mutex_);
  tasks_[task].trials += trials;
}

void EliteSet::Add(Elite elite) {
  std::lock_guard lock(mutex_);
  Task& task = tasks_[elite.task];
  Entry entry;
  if (const store::Remeasurement& known = elite.known; !known.device.empty()) {
    Device& device = PlaceOf(task, known.device);
    device.readings.Restore(elite.record_id, known.costs_s, static_cast<int>(known.readings));
    device.blocks += device.readings.blocks(elite.record_id);
    if (task.home.empty()) task.home = known.device;
  }
  entry.run_s = elite.known.run_s;
  const int64_t id = elite.record_id;
  entry.elite = std::move(elite);
  Entry& added = task.entries[id] = std::move(entry);
  added.told_s = CostOf(task, added);
  Crop(task);
  CropArtifacts();
}

void EliteSet::Crop(Task& task) {
  const std::vector<Entry*> sorted = ByCost(task);
  for (size_t i = static_cast<size_t>(kReserve * MaxElites(task)); i < sorted.size(); ++i) {
    const int64_t id = sorted[i]->elite.record_id;
    if (sorted[i]->unwritten) unwritten_.push_back(RemeasurementOf(task, *sorted[i], task.home));
    for (auto& [name, device] : task.devices) device.readings.Forget(id);
    task.entries.erase(id);
  }
}

void EliteSet::CropArtifacts() {
  struct Held {
    size_t rank;
    Entry* entry;
  };
  std::vector<Held> held;
  for (Task& task : tasks_) {
    const std::vector<Entry*> sorted = ByCost(task);
    for (size_t i = 0; i < sorted.size(); ++i) {
      if (sorted[i]->elite.artifact != nullptr) held.push_back({i, sorted[i]});
    }
  }
  std::stable_sort(held.begin(), held.end(),
                   [](const Held& a, const Held& b) { return a.rank < b.rank; });
  int64_t bytes = 0;
  for (const Held& h : held) {
    bytes += static_cast<int64_t>(h.entry->elite.artifact->ByteSizeLong());
    if (bytes > options_.most_bytes) h.entry->elite.artifact = nullptr;
  }
}

// ---- turns ----------------------------------------------------------------------------------

const EliteSet::Device& EliteSet::DeviceOf(const Task& task, const std::string& device) const {
  const auto found = task.devices.find(device);
  return found == task.devices.end() ? none_ : found->second;
}

int64_t EliteSet::LastOf(const std::string& device) const {
  uint64_t served = 0;
  int64_t last = 0;
  for (const Task& task : tasks_) {
    const Device& own = DeviceOf(task, device);
    if (own.served <= served) continue;
    served = own.served;
    last = own.last;
  }
  return last;
}

EliteSet::Device& EliteSet::PlaceOf(Task& task, const std::string& device) const {
  const auto found = task.devices.find(device);
  if (found != task.devices.end()) return found->second;
  if (task.devices.size() >= kMostDevices) {
    auto oldest = task.devices.end();
    for (auto at = task.devices.begin(); at != task.devices.end(); ++at) {
      if (at->first == task.home) continue;
      if (oldest == task.devices.end() || at->second.served < oldest->second.served) oldest = at;
    }
    task.devices.erase(oldest);
  }
  return task.devices[device];
}

std::vector<EliteSet::Entry*> EliteSet::Readable(Task& task, const Device& device) {
  std::vector<Entry*> elites = ElitesOf(task);
  std::erase_if(elites, [&](const Entry* entry) {
    return entry->elite.artifact == nullptr || CostOf(task, *entry) > options_.slowest_s ||
           device.readings.blocks(entry->elite.record_id) >= kMaxBlocks;
  });
  return elites;
}

std::optional<EliteSet::Turn> EliteSet::Next(const std::string& device) {
  std::lock_guard lock(mutex_);
  const int64_t last = LastOf(device);
  Task* chosen = nullptr;
  std::vector<Entry*> elites;
  std::tuple<bool, int, uint64_t> least;
  for (Task& task : tasks_) {
    const Device& own = DeviceOf(task, device);
    std::vector<Entry*> readable = Readable(task, own);
    if (readable.empty()) continue;
    int fewest = kMaxBlocks;
    for (const Entry* entry : readable) {
      fewest = std::min(fewest, own.readings.blocks(entry->elite.record_id));
    }
    const bool again = readable.size() == 1 && readable[0]->elite.record_id == last;
    const std::tuple key(again, fewest, own.served);
    if (chosen != nullptr && key >= least) continue;
    chosen = &task;
    elites = std::move(readable);
    least = key;
  }
  if (chosen == nullptr) return std::nullopt;
  Device& own = PlaceOf(*chosen, device);
  // Prefers entries that this round lacks, then the least known one, and avoids the last one if
  // there is another.
  const auto key = [&](const Entry* entry) {
    const int64_t id = entry->elite.record_id;
    const MedianCost median = own.readings.median(id);
    const double width = median.cost_s > 0 ? median.confidence_s / median.cost_s : 0;
    return std::tuple(id == last, own.readings.InRound(id), own.readings.blocks(id), -width);
  };
  const Elite& next = (*std::ranges::min_element(elites, {}, key))->elite;
  own.served = ++turns_;
  if (own.readings.InRound(next.record_id)) own.readings.BeginRound();
  own.last = next.record_id;
  return Turn{next.task, next.record_id, next.artifact};
}

void EliteSet::Read(const Turn& turn, const std::string& device, std::span<const double> costs_s,
                    double run_s) {
  std::lock_guard lock(mutex_);
  Task& task = tasks_[turn.task];
  const auto found = task.entries.find(turn.record_id);
  if (found == task.entries.end()) return;  // others have overtaken the candidate meanwhile
  Entry& entry = found->second;
  Device& own = PlaceOf(task, device);
  own.readings.Add(turn.record_id, costs_s);
  ++own.blocks;
  if (task.home.empty() || own.blocks > kManyMore * DeviceOf(task, task.home).blocks) {
    task.home = device;
  }
  entry.run_s += run_s;
  entry.suspect = false;
  entry.unwritten = true;
}

bool EliteSet::Fail(const Turn& turn, int error, std::string message, double run_s) {
  std::lock_guard lock(mutex_);
  Task& task = tasks_[turn.task];
  const auto found = task.entries.find(turn.record_id);
  if (found == task.entries.end()) return false;
  Entry& entry = found->second;
  entry.run_s += run_s;
  entry.unwritten = true;
  if (error != v1::WRONG_ANSWER_ERROR && !std::exchange(entry.suspect, true)) return false;
  unwritten_.push_back({.id = turn.record_id,
                        .run_s = entry.run_s,
                        .error = error,
                        .message = "when it was measured again: " + message});
  failures_ = true;
  corrections_.push_back({turn.task, entry.elite.trial, entry.elite.hash, std::nullopt});
  for (auto& [name, own] : task.devices) own.readings.Forget(turn.record_id);
  task.entries.erase(found);
  return true;
}

// ---- results --------------------------------------------------------------------------------

store::Remeasurement EliteSet::RemeasurementOf(const Task& task, const Entry& entry,
                                               const std::string& device) const {
  store::Remeasurement remeasured;
  remeasured.id = entry.elite.record_id;
  remeasured.run_s = entry.run_s;
  const auto own = task.devices.find(device);
  if (own == task.devices.end()) return remeasured;
  remeasured.costs_s = own->second.readings.values_s(remeasured.id);
  const MedianCost median = own->second.readings.median(remeasured.id);
  const double confidence_s =
      search::WithDrift(median.cost_s, median.confidence_s, own->second.readings.DriftShare());
  if (confidence_s > 0) remeasured.confidence_s = confidence_s;
  remeasured.readings = static_cast<uint32_t>(own->second.readings.readings(remeasured.id));
  if (!remeasured.costs_s.empty()) remeasured.device = device;
  return remeasured;
}

std::vector<store::Remeasurement> EliteSet::TakeUnwritten() {
  std::lock_guard lock(mutex_);
  std::vector<store::Remeasurement> all = std::exchange(unwritten_, {});
  failures_ = false;
  for (Task& task : tasks_) {
    for (auto& [id, entry] : task.entries) {
      if (std::exchange(entry.unwritten, false))
        all.push_back(RemeasurementOf(task, entry, task.home));
    }
  }
  return all;
}

bool EliteSet::has_unwritten() const {
  std::lock_guard lock(mutex_);
  if (!unwritten_.empty()) return true;
  return std::ranges::any_of(tasks_, [](const Task& task) {
    return std::ranges::any_of(task.entries, [](const auto& e) { return e.second.unwritten; });
  });
}

bool EliteSet::has_failures() const {
  std::lock_guard lock(mutex_);
  return failures_;
}

std::vector<EliteSet::Correction> EliteSet::TakeCorrections() {
  std::lock_guard lock(mutex_);
  std::vector<Correction> all = std::exchange(corrections_, {});
  for (size_t i = 0; i < tasks_.size(); ++i) {
    for (auto& [id, entry] : tasks_[i].entries) {
      const double cost_s = CostOf(tasks_[i], entry);
      if (std::abs(cost_s - entry.told_s) <= kWorthTelling * entry.told_s) continue;
      entry.told_s = cost_s;
      all.push_back({static_cast<int>(i), entry.elite.trial, entry.elite.hash, cost_s});
    }
  }
  return all;
}

const EliteSet::Entry* EliteSet::Find(int64_t record_id, const Task** task) const {
  for (const Task& t : tasks_) {
    const auto found = t.entries.find(record_id);
    if (found == t.entries.end()) continue;
    *task = &t;
    return &found->second;
  }
  return nullptr;
}

store::Remeasurement EliteSet::KnownOn(int64_t record_id, const std::string& device) const {
  std::lock_guard lock(mutex_);
  const Task* task = nullptr;
  const Entry* entry = Find(record_id, &task);
  return entry == nullptr ? store::Remeasurement{} : RemeasurementOf(*task, *entry, device);
}

std::shared_ptr<const v1::Artifact> EliteSet::ArtifactOf(int64_t record_id) const {
  std::lock_guard lock(mutex_);
  const Task* task = nullptr;
  const Entry* entry = Find(record_id, &task);
  return entry == nullptr ? nullptr : entry->elite.artifact;
}

}  // namespace kiln::scheduler
