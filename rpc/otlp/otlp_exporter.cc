#include "rpc/otlp/otlp_exporter.h"

#include <utility>

#include "base/log.h"
#include "rpc/otlp/otlp_span.h"

namespace kiln {
namespace {

// Tells whether a collector that answers so may take the same batch later, by OTLP's rules.
bool IsPassing(const StatusOr<int>& answer) {
  if (!answer.ok()) return true;
  return *answer == 429 || *answer == 502 || *answer == 503 || *answer == 504;
}

bool IsTaken(const StatusOr<int>& answer) { return answer.ok() && *answer >= 200 && *answer < 300; }

}  // namespace

OtlpExporter::OtlpExporter(Options options, Post post)
    : options_(std::move(options)), post_(std::move(post)), thread_([this] { Run(); }) {}

OtlpExporter::~OtlpExporter() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void OtlpExporter::Add(std::string_view encoded) {
  std::lock_guard lock(mutex_);
  if (count_ >= options_.most_waiting) {
    ++counts_.dropped;
    return;
  }
  if (waiting_.empty() || waiting_.back().count >= options_.batch) waiting_.emplace_back();
  waiting_.back().encoded += encoded;
  ++waiting_.back().count;
  ++count_;
  // The thread waits for the first one, and for a whole batch.
  if (count_ == 1 || count_ == options_.batch) changed_.notify_all();
}

OtlpExporter::Counts OtlpExporter::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

bool OtlpExporter::stopping() const {
  std::lock_guard lock(mutex_);
  return stopping_;
}

void OtlpExporter::Run() {
  while (true) {
    const Batch batch = Take();
    if (batch.count == 0) return;
    Send(batch);
  }
}

OtlpExporter::Batch OtlpExporter::Take() {
  std::unique_lock lock(mutex_);
  options_.clock->WaitFor(lock, changed_, absl::InfiniteDuration(),
                          [this] { return stopping_ || count_ > 0; });
  options_.clock->WaitFor(lock, changed_, options_.gather,
                          [this] { return stopping_ || count_ >= options_.batch; });
  if (waiting_.empty()) return {};
  Batch batch = std::move(waiting_.front());
  waiting_.pop_front();
  count_ -= batch.count;
  return batch;
}

void OtlpExporter::Send(const Batch& batch) {
  const std::string body = OtlpRequest(options_.service, batch.encoded);
  const double until_s =
      options_.clock->MonotonicSeconds() + absl::ToDoubleSeconds(options_.patience);
  RetryPause pause(options_.random);
  while (true) {
    const StatusOr<int> answer = post_(body);
    const bool taken = IsTaken(answer);
    const bool again =
        !taken && IsPassing(answer) && !stopping() && options_.clock->MonotonicSeconds() < until_s;
    if (!again) {
      const std::string problem = !answer.ok() ? std::string(Message(answer.status()))
                                               : fmt::format("it answers HTTP {}", *answer);
      return Note(taken, problem, batch.count);
    }
    Rest(pause.Next());
  }
}

void OtlpExporter::Rest(absl::Duration pause) {
  std::unique_lock lock(mutex_);
  options_.clock->WaitFor(lock, changed_, pause, [this] { return stopping_; });
}

void OtlpExporter::Note(bool taken, const std::string& problem, size_t count) {
  uint64_t dropped = 0;
  {
    std::lock_guard lock(mutex_);
    (taken ? counts_.sent : counts_.dropped) += count;
    dropped = counts_.dropped;
  }
  if (taken && is_failing_) {
    LogInfo("the collector at {} takes spans again; {} trials and jobs were dropped so far",
            options_.collector, dropped);
  }
  if (!taken && !is_failing_) {
    LogWarn("the collector at {} takes no spans: {}; trials go on, and their spans are dropped",
            options_.collector, problem);
  }
  is_failing_ = !taken;
}

}  // namespace kiln
