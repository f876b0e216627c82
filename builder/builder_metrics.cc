#include "builder/builder_metrics.h"

namespace kiln::builder {

BuilderMetrics::BuilderMetrics(Metrics& metrics)
    : build_s_(metrics.AddHistogram("kiln_builder_build_seconds",
                                    "Time of a build that was not in the cache.", SecondsBounds())),
      wait_s_(metrics.AddHistogram("kiln_builder_wait_seconds",
                                   "Time that a build waited for a free slot.", SecondsBounds())) {
  for (int error = 0; error < v1::ErrorKind_ARRAYSIZE; ++error) {
    builds_[static_cast<size_t>(error)] =
        metrics.AddCounter("kiln_builder_builds_total", "Builds that were answered, by result.",
                           {{"error", v1::ErrorKind_Name(static_cast<v1::ErrorKind>(error))}});
  }
}

void BuilderMetrics::Note(const v1::BuildReply& reply) const {
  const auto error = static_cast<size_t>(reply.error());
  if (error < builds_.size()) builds_[error].Add();
  if (reply.cached()) return;
  build_s_.Add(reply.build_s());
  wait_s_.Add(reply.times().build_wait_s());
}

std::shared_ptr<void> ShowBuilder(const BuildCache& cache, int slots, Metrics& metrics) {
  return metrics.AddCollector([&cache, slots](MetricSheet& sheet) {
    const BuildCache::Stats stats = cache.stats();
    sheet.Gauge("kiln_builder_slots", "Builds that the builder does at once.", slots);
    sheet.Gauge("kiln_builder_cache_bytes", "Memory of the kept artifacts.",
                static_cast<double>(stats.bytes));
    const auto answered = [&](const char* by, uint64_t count) {
      sheet.Counter("kiln_builder_cache_answers_total",
                    "Builds by who answered: the cache, a build in hand, or a build of their own.",
                    static_cast<double>(count), {{"by", by}});
    };
    answered("cache", stats.hits);
    answered("build in hand", stats.joined);
    answered("own build", stats.misses);
  });
}

}  // namespace kiln::builder
