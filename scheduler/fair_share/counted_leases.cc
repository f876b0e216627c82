#include "scheduler/fair_share/counted_leases.h"

#include <array>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

namespace kiln::scheduler {
namespace {

// Counts of one kind of worker. Leases keep them alive.
struct Counts {
  std::atomic<int64_t> held = 0;
  std::atomic<int64_t> asked = 0;
  Counter lost;
  Histogram wait_s;
};

class CountedLeases : public LeaseSource {
 public:
  CountedLeases(std::unique_ptr<LeaseSource> source, std::shared_ptr<Counts> counts, Clock& clock)
      : source_(std::move(source)), counts_(std::move(counts)), clock_(clock) {}

  StatusOr<LeasedWorker> Acquire(absl::Duration timeout, std::stop_token stop,
                                 const std::vector<std::string>& avoid) override {
    const double start_s = clock_.MonotonicSeconds();
    ++counts_->asked;
    StatusOr<LeasedWorker> lease = source_->Acquire(timeout, std::move(stop), avoid);
    --counts_->asked;
    if (!lease.ok()) return lease;
    counts_->wait_s.Add(clock_.MonotonicSeconds() - start_s);
    ++counts_->held;
    lease->AlsoOnRelease([counts = counts_, lost = lease->lost_token()] {
      --counts->held;
      if (lost.stop_requested()) counts->lost.Add();
    });
    return lease;
  }

 private:
  const std::unique_ptr<LeaseSource> source_;
  const std::shared_ptr<Counts> counts_;
  Clock& clock_;
};

std::string KindName(v1::WorkerKind kind) { return kind == v1::BUILDER ? "builder" : "runner"; }

}  // namespace

LeaseFactory CountLeases(LeaseFactory leases, Metrics& metrics, Clock& clock) {
  std::array<std::shared_ptr<Counts>, 2> kinds;
  std::vector<std::shared_ptr<void>> shown;
  for (const v1::WorkerKind kind : {v1::BUILDER, v1::RUNNER}) {
    const MetricLabels labels = {{"kind", KindName(kind)}};
    auto counts = std::make_shared<Counts>();
    counts->lost = metrics.AddCounter(
        "kiln_leases_lost_total", "Leases of jobs that ended before they were given back.", labels);
    counts->wait_s = metrics.AddHistogram(
        "kiln_lease_wait_seconds", "Time that a job waited for a lease.", SecondsBounds(), labels);
    shown.push_back(metrics.AddCollector([counts, labels](MetricSheet& sheet) {
      sheet.Gauge("kiln_leases_held", "Leases that jobs hold.",
                  static_cast<double>(counts->held.load()), labels);
      sheet.Gauge("kiln_leases_asked", "Leases that jobs wait for.",
                  static_cast<double>(counts->asked.load()), labels);
    }));
    kinds[kind == v1::RUNNER ? 1 : 0] = std::move(counts);
  }
  return [leases = std::move(leases), kinds, shown, &clock](const LeaseSpec& spec) {
    Leases counted = leases(spec);
    counted.source = std::make_unique<CountedLeases>(std::move(counted.source),
                                                     kinds[spec.kind == v1::RUNNER ? 1 : 0], clock);
    return counted;
  };
}

}  // namespace kiln::scheduler
