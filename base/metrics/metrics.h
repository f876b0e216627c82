// Figures of a process for a monitoring system: counters, gauges, histograms, and their text in the
// format of Prometheus.
//
//   Metrics metrics;
//   const Counter builds = metrics.AddCounter("kiln_builds_total", "Builds that were answered.");
//   builds.Add();
//   metrics.AddCollector([&](MetricSheet& sheet) { sheet.Gauge("kiln_slots", "Slots.", 4); });
//   metrics.Text();
//
// Names follow Prometheus' conventions: they begin with kiln_ (or process_), have base units, and
// counters end with _total. docs/metrics.md lists them all, and a test compares it with what the
// daemons show. The values of a label must be few: kinds, states, names of members; never ids of
// jobs or trials.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
struct MetricFamily;
}  // namespace prometheus

namespace kiln {

// Values of labels by their names. Texts of strangers are made fit for the format.
using MetricLabels = std::map<std::string, std::string>;

// A number that only grows. A value: copies count together. One that was made by default counts
// nothing. Thread-safe; costs an atomic addition.
class Counter {
 public:
  Counter() = default;
  void Add(double amount = 1) const;

 private:
  friend class Metrics;
  explicit Counter(prometheus::Counter& counter) : counter_(&counter) {}
  prometheus::Counter* counter_ = nullptr;
};

// Counts values by size. Otherwise like Counter; costs two atomic additions under a lock that is
// free unless another thread adds to the same histogram at that moment.
class Histogram {
 public:
  Histogram() = default;
  // Ignores a value that is no finite number.
  void Add(double value) const;

 private:
  friend class Metrics;
  explicit Histogram(prometheus::Histogram& histogram) : histogram_(&histogram) {}
  prometheus::Histogram* histogram_ = nullptr;
};

// Takes the figures that are read when somebody asks. For one thread.
class MetricSheet {
 public:
  MetricSheet();
  ~MetricSheet();

  // Adds a value that goes up and down.
  void Gauge(const std::string& name, const std::string& help, double value,
             const MetricLabels& labels = {});
  // Adds a count that somebody else keeps.
  void Counter(const std::string& name, const std::string& help, double value,
               const MetricLabels& labels = {});

 private:
  friend class Metrics;
  prometheus::MetricFamily& FamilyOf(const std::string& name, const std::string& help, int type);

  std::map<std::string, std::unique_ptr<prometheus::MetricFamily>> families_;
};

// Outlives its counters and histograms. Thread-safe, but for the destructor.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Returns the counter of this name and these labels, which is made if it is not there. KILN_CHECK
  // fails for a name or a label that Prometheus does not take. Takes a lock: hot paths keep what
  // they got.
  kiln::Counter AddCounter(const std::string& name, const std::string& help,
                           const MetricLabels& labels = {});
  // `bounds` are the upper ends of the buckets, in ascending order.
  kiln::Histogram AddHistogram(const std::string& name, const std::string& help,
                               const std::vector<double>& bounds, const MetricLabels& labels = {});

  // Calls `collect` for each Text, in the thread that asks. Removed by the returned object's end,
  // which waits for a call that runs.
  using Collector = std::function<void(MetricSheet& sheet)>;
  [[nodiscard]] std::shared_ptr<void> AddCollector(Collector collect);

  // Returns all figures in Prometheus' text format (version 0.0.4), ordered by name.
  std::string Text() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

// Bounds for times from a millisecond to ten minutes, about three for each factor of ten.
const std::vector<double>& SecondsBounds();

}  // namespace kiln
