#include "tracker/figures.h"

#include <nlohmann/json.hpp>

#include "base/status_testing.h"

namespace kiln::tracker {
namespace {

using testing::HasSubstr;
using testing::Not;

v1::WorkerState& AddWorker(v1::ListReply& list, const std::string& id, v1::WorkerKind kind,
                           uint32_t slots, uint32_t busy) {
  v1::WorkerState& worker = *list.add_workers();
  worker.set_id(id);
  worker.set_kind(kind);
  worker.set_slots(slots);
  list.add_busy_slots(busy);
  return worker;
}

std::string TextOf(const v1::ListReply& list, const Registry::Totals& totals) {
  Metrics metrics;
  const auto collector =
      metrics.AddCollector([&](MetricSheet& sheet) { CollectRegistry(list, totals, sheet); });
  return metrics.Text();
}

TEST(FiguresTest, WorkersAreCountedByKindAndMode) {
  v1::ListReply list;
  AddWorker(list, "b", v1::BUILDER, 8, 3);
  AddWorker(list, "r1", v1::RUNNER, 1, 1);
  AddWorker(list, "r2", v1::RUNNER, 1, 0).set_mode(v1::WORKER_QUARANTINED);
  const std::string text = TextOf(list, {.workers_lost = 4, .leases_lost = 5, .leases_granted = 6});
  for (const char* line :
       {"kiln_tracker_workers{kind=\"builder\",mode=\"serves\"} 1\n",
        "kiln_tracker_workers{kind=\"runner\",mode=\"serves\"} 1\n",
        "kiln_tracker_workers{kind=\"runner\",mode=\"quarantined\"} 1\n",
        "kiln_tracker_workers{kind=\"runner\",mode=\"paused\"} 0\n",
        "kiln_tracker_slots{kind=\"builder\"} 8\n",
        "kiln_tracker_slots_leased{kind=\"builder\"} 3\n",
        "kiln_tracker_slots_leased{kind=\"runner\"} 1\n", "kiln_tracker_workers_lost_total 4\n",
        "kiln_tracker_leases_lost_total 5\n", "kiln_tracker_leases_granted_total 6\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(FiguresTest, KeysThatNobodyWaitsForAreNotShown) {
  v1::ListReply list;
  for (const auto& [key, pending] : {std::pair("llvm", 2), std::pair("null", 0)}) {
    v1::KeyState& state = *list.add_keys();
    state.set_key(key);
    state.set_kind(v1::RUNNER);
    state.set_pending(static_cast<uint32_t>(pending));
  }
  const std::string text = TextOf(list, {});
  EXPECT_THAT(text, HasSubstr("kiln_tracker_requests_waiting{key=\"llvm\",kind=\"runner\"} 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("key=\"null\"")));
}

TEST(FiguresTest, DiscoveryNamesEachAddressOnce) {
  v1::ListReply list;
  AddWorker(list, "b", v1::BUILDER, 8, 0).set_http_address("box:9391");
  // Two devices of one process.
  AddWorker(list, "r1", v1::RUNNER, 1, 0).set_http_address("gpu:9590");
  AddWorker(list, "r2", v1::RUNNER, 1, 0).set_http_address("gpu:9590");
  AddWorker(list, "r3", v1::RUNNER, 1, 0);
  AddWorker(list, "r4\"\xff", v1::RUNNER, 1, 0).set_http_address("evil\"]}\n\xff:1");
  const auto targets = nlohmann::json::parse(DiscoveryText(list, "here:9191"));
  ASSERT_EQ(targets.size(), 4);
  EXPECT_EQ(targets[0], nlohmann::json::parse(
                            R"({"targets": ["here:9191"], "labels": {"service": "tracker"}})"));
  EXPECT_EQ(targets[1]["targets"][0], "box:9391");
  EXPECT_EQ(targets[1]["labels"]["service"], "builder");
  EXPECT_EQ(targets[2]["targets"][0], "gpu:9590");
  EXPECT_EQ(targets[2]["labels"]["worker"], "r1");
  EXPECT_EQ(DiscoveryText({}, ""), "[]\n");
}

}  // namespace
}  // namespace kiln::tracker
