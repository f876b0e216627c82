#include "scheduler/values/queue_figures.h"

#include "base/status_testing.h"

namespace kiln::scheduler {
namespace {

TEST(QueueFiguresTest, SumsTheJobsThatRun) {
  Metrics metrics;
  QueueFigures queues;
  const auto shown = metrics.AddCollector([&](MetricSheet& sheet) { queues.Collect(sheet); });
  EXPECT_EQ(metrics.Text(), "");
  const auto first = queues.Add(
      [] { return QueueFigures::Sizes{.target = "cuda -arch=sm_90", .build = 1, .run = 2}; });
  auto second = queues.Add([] { return QueueFigures::Sizes{.target = "cuda", .build = 10}; });
  const auto third = queues.Add([] { return QueueFigures::Sizes{.target = "null"}; });
  EXPECT_EQ(metrics.Text(),
            "# HELP kiln_queue_items Trials that wait for a worker, by stage.\n"
            "# TYPE kiln_queue_items gauge\n"
            "kiln_queue_items{stage=\"build\",target=\"cuda\"} 11\n"
            "kiln_queue_items{stage=\"build\",target=\"null\"} 0\n"
            "kiln_queue_items{stage=\"run\",target=\"cuda\"} 2\n"
            "kiln_queue_items{stage=\"run\",target=\"null\"} 0\n");
  second.reset();
  EXPECT_THAT(metrics.Text(),
              testing::HasSubstr("kiln_queue_items{stage=\"build\",target=\"cuda\"} 1\n"));
}

}  // namespace
}  // namespace kiln::scheduler
