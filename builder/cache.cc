#include "builder/cache.h"

#include <chrono>
#include <utility>

#include "base/hash/digest.h"
#include "rpc/hardware_message.h"

namespace kiln::builder {
namespace {

constexpr auto kCancelPoll = std::chrono::milliseconds(50);
// Rough size of an entry's nodes and pointers, beside its reply and its key.
constexpr int64_t kEntryBytes = 256;

BuildOutcome FromCache(const v1::BuildReply& reply) {
  BuildOutcome outcome;
  outcome.reply = reply;
  outcome.reply.set_cached(true);
  outcome.reply.set_build_s(0);
  outcome.reply.clear_times();
  return outcome;
}

}  // namespace

std::string RequestKey(const v1::BuildRequest& request, std::string_view version) {
  Sha256 sha;
  for (const std::string_view part :
       {version, std::string_view(request.dag()), std::string_view(request.target()),
        std::string_view(request.steps()), std::string_view(request.kernel())}) {
    sha.Update(fmt::format("{}:", part.size())).Update(part);
  }
  sha.Update(fmt::format("{}:", static_cast<int>(request.fault())));
  if (request.source_only()) sha.Update("source:");
  // The key has the limits that the code is checked against, but not the figures that only matter
  // for its speed.
  HardwareParams limits = HardwareParamsOf(request.hardware());
  limits.num_cores = limits.vector_unit_bytes = limits.cache_line_bytes = 0;
  for (const int64_t limit : HardwareRowOf(limits)) sha.Update(fmt::format("{}:", limit));
  return sha.FinishHex();
}

BuildCache::Stats BuildCache::stats() const {
  std::lock_guard lock(mutex_);
  Stats stats = stats_;
  stats.entries = entries_.size();
  return stats;
}

std::shared_ptr<const v1::BuildReply> BuildCache::Find(const std::string& key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->reply;
}

void BuildCache::Keep(const std::string& key, const v1::BuildReply& reply) {
  const int64_t bytes = static_cast<int64_t>(reply.ByteSizeLong() + 2 * key.size()) + kEntryBytes;
  // A build of the same request with another limit may have come first.
  if (bytes > max_bytes_ || by_key_.contains(key)) return;
  while (stats_.bytes + bytes > max_bytes_) {
    stats_.bytes -= entries_.back().bytes;
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
  entries_.push_front({key, std::make_shared<const v1::BuildReply>(reply), bytes});
  by_key_[key] = entries_.begin();
  stats_.bytes += bytes;
}

Status BuildCache::WaitFor(const Flight& flight, const std::function<bool()>& cancelled,
                           std::unique_lock<std::mutex>& lock) {
  while (!flight.done) {
    landed_.wait_for(lock, kCancelPoll);
    if (flight.done) break;
    lock.unlock();
    const bool stop = cancelled();
    lock.lock();
    if (stop)
      return Cancelled("cancelled while waiting for another call that builds the same program");
  }
  return OkStatus();
}

StatusOr<BuildOutcome> BuildCache::Lead(const std::string& key, const std::string& flight_key,
                                        const v1::BuildRequest& request,
                                        const std::function<bool()>& cancelled,
                                        std::unique_lock<std::mutex>& lock) {
  const auto flight = std::make_shared<Flight>();
  flights_[flight_key] = flight;
  ++stats_.misses;
  lock.unlock();
  auto outcome = behind_.Build(request, cancelled);
  lock.lock();
  flights_.erase(flight_key);
  flight->outcome = outcome;
  flight->done = true;
  landed_.notify_all();
  if (outcome.ok() && outcome->repeatable) Keep(key, outcome->reply);
  return outcome;
}

StatusOr<BuildOutcome> BuildCache::Build(const v1::BuildRequest& request,
                                         const std::function<bool()>& cancelled) {
  const std::string key = RequestKey(request, version_);
  const std::string flight_key =
      fmt::format("{} {} {}", key, request.timeout_ms(), request.memory_limit_bytes());
  std::unique_lock lock(mutex_);
  while (true) {
    if (const auto kept = Find(key); kept != nullptr) {
      ++stats_.hits;
      lock.unlock();
      return FromCache(*kept);
    }
    const auto found = flights_.find(flight_key);
    if (found == flights_.end()) return Lead(key, flight_key, request, cancelled, lock);
    const std::shared_ptr<Flight> flight = found->second;
    KILN_RETURN_IF_ERROR(WaitFor(*flight, cancelled, lock));
    if (flight->outcome.status().code() == StatusCode::kCancelled) continue;
    ++stats_.joined;
    if (!flight->outcome.ok()) return flight->outcome.status();
    BuildOutcome joined = FromCache(flight->outcome->reply);
    joined.repeatable = flight->outcome->repeatable;
    return joined;
  }
}

}  // namespace kiln::builder
