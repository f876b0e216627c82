#include "base/metrics/metrics.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "base/metrics/process_metrics.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(MetricsTest, CountersCountTogether) {
  Metrics metrics;
  const Counter trials =
      metrics.AddCounter("kiln_trials_total", "Trials.", {{"error", "NO_ERROR"}});
  const Counter copy = trials;
  trials.Add();
  copy.Add(2);
  metrics.AddCounter("kiln_trials_total", "Trials.", {{"error", "NO_ERROR"}}).Add();
  metrics.AddCounter("kiln_trials_total", "Trials.", {{"error", "UNKNOWN_ERROR"}});
  EXPECT_EQ(metrics.Text(),
            "# HELP kiln_trials_total Trials.\n"
            "# TYPE kiln_trials_total counter\n"
            "kiln_trials_total{error=\"NO_ERROR\"} 4\n"
            "kiln_trials_total{error=\"UNKNOWN_ERROR\"} 0\n");
}

TEST(MetricsTest, CountersByDefaultCountNothing) {
  Counter().Add();
  Histogram().Add(1);
}

TEST(MetricsTest, HistogramsHaveBuckets) {
  Metrics metrics;
  const Histogram histogram = metrics.AddHistogram("kiln_build_seconds", "Builds.", {0.125, 1});
  for (const double value :
       {0.0625, 0.125, 0.5, 3.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    histogram.Add(value);
  }
  EXPECT_THAT(metrics.Text(), AllOf(HasSubstr("kiln_build_seconds_bucket{le=\"0.125\"} 2\n"),
                                    HasSubstr("kiln_build_seconds_bucket{le=\"1\"} 3\n"),
                                    HasSubstr("kiln_build_seconds_bucket{le=\"+Inf\"} 4\n"),
                                    HasSubstr("kiln_build_seconds_count 4\n"),
                                    HasSubstr("kiln_build_seconds_sum 3.6875\n")));
}

TEST(MetricsTest, CollectorsAreAskedWhileTheyLive) {
  Metrics metrics;
  int asked = 0;
  auto collector = metrics.AddCollector([&](MetricSheet& sheet) {
    ++asked;
    sheet.Gauge("kiln_slots", "Slots.", 4, {{"kind", "builder"}});
    sheet.Gauge("kiln_slots", "Slots.", 2, {{"kind", "runner"}});
    sheet.Counter("kiln_a_total", "First by name.", 7);
  });
  EXPECT_EQ(metrics.Text(),
            "# HELP kiln_a_total First by name.\n"
            "# TYPE kiln_a_total counter\n"
            "kiln_a_total 7\n"
            "# HELP kiln_slots Slots.\n"
            "# TYPE kiln_slots gauge\n"
            "kiln_slots{kind=\"builder\"} 4\n"
            "kiln_slots{kind=\"runner\"} 2\n");
  collector.reset();
  EXPECT_EQ(metrics.Text(), "");
  EXPECT_EQ(asked, 1);
}

TEST(MetricsTest, LabelsOfStrangersBreakNothing) {
  Metrics metrics;
  const auto collector = metrics.AddCollector([](MetricSheet& sheet) {
    sheet.Gauge("kiln_a", "A.", 1, {{"user", "x\"} 2\nkiln_b 3\xff\\"}});
    sheet.Gauge("kiln_a", "A.", 1, {{"user", std::string(1'000, 'u')}});
  });
  const std::string text = metrics.Text();
  EXPECT_THAT(text,
              AllOf(HasSubstr("kiln_a{user=\"x\\\"} 2 kiln_b 3?\\\\\"} 1\n"),
                    Not(HasSubstr("\nkiln_b")), HasSubstr("\"" + std::string(120, 'u') + "\"")));
}

TEST(MetricsTest, ThreadsCountAtOnce) {
  Metrics metrics;
  const Counter counter = metrics.AddCounter("kiln_a_total", "A.");
  const Histogram histogram = metrics.AddHistogram("kiln_b_seconds", "B.", SecondsBounds());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 1'000; ++j) {
        counter.Add();
        histogram.Add(0.5);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(metrics.Text(),
              AllOf(HasSubstr("kiln_a_total 4000\n"), HasSubstr("kiln_b_seconds_count 4000\n")));
}

TEST(MetricsDeathTest, NamesAreThoseOfPrometheus) {
  Metrics metrics;
  EXPECT_DEATH(metrics.AddCounter("kiln trials", "A."), "'kiln trials' is no name of a metric");
  EXPECT_DEATH(metrics.AddCounter("kiln_a_total", "A.", {{"a-b", ""}}), "'a-b' is no name");
}

TEST(ProcessMetricsTest, SaysHowLargeTheProcessIs) {
  Metrics metrics;
  const auto collector = metrics.AddCollector(CollectProcess);
  const std::string text = metrics.Text();
  for (const char* name : {"process_cpu_seconds_total", "process_resident_memory_bytes",
                           "process_virtual_memory_bytes", "process_start_time_seconds",
                           "process_open_fds", "process_threads"}) {
    const size_t found = text.find("\n" + std::string(name) + " ");
    ASSERT_NE(found, std::string::npos) << name << "\n" << text;
    EXPECT_GT(std::atof(text.c_str() + found + 2 + std::strlen(name)), 0) << name;
  }
}

}  // namespace
}  // namespace kiln
