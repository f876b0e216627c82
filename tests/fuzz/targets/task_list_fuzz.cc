// Reads task lists. A list that is read names computations, which print as texts that parse to the
// same. A refusal names its line.
#include <string>

#include "client/jobs/task_list.h"
#include "compiler/dag/text.h"
#include "tests/fuzz/targets/fuzz_target.h"
#include "tests/fuzz/targets/promises.h"
#include "tests/fuzz/targets/round_trip.h"

namespace kiln::fuzz {
namespace {

constexpr char kNoFolder[] = "/nonexistent";
// Room for a few tasks, because an operator takes a while to make.
constexpr size_t kMaxBytes = 200;

void CheckWorkload(const client::Workload& workload) {
  const auto print = [](const dag::DagText& text) { return dag::PrintDag(*text.dag, text.ranges); };
  const auto parse = [](const std::string& text) { return dag::ParseDagText(text); };
  const auto equal = [](const dag::DagText& a, const dag::DagText& b) {
    return dag::Equal(*a.dag, *b.dag);
  };
  CheckRoundTrip(dag::DagText{.dag = workload.dag, .ranges = workload.ranges}, print, parse, equal);
  KILN_CHECK(!workload.description.empty());
}

void CheckTask(const client::TaskListEntry& task) {
  KILN_CHECK(task.weight > 0);
  const auto workload = client::LoadWorkload(task.arguments);
  KILN_CHECK(workload.ok(), "{}", Message(workload.status()));
  CheckWorkload(*workload);
  if (task.variants.empty()) return;
  const auto variants = client::LoadVariants(task.arguments, task.variants, /*gpu=*/true);
  if (!variants.ok()) return CheckRefusal(variants.status());
  KILN_CHECK(!variants->empty());
  for (const client::WorkloadVariant& variant : *variants) CheckWorkload(variant.workload);
}

}  // namespace
}  // namespace kiln::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kiln;
  if (size > fuzz::kMaxBytes) return -1;
  const auto tasks = client::ParseTaskList(fuzz::InputText(data, size), "list", fuzz::kNoFolder);
  if (!tasks.ok()) {
    fuzz::CheckRefusal(tasks.status());
    KILN_CHECK(Message(tasks.status()).starts_with("list"), "{}", Message(tasks.status()));
    return 0;
  }
  for (const client::TaskListEntry& task : *tasks) fuzz::CheckTask(task);
  return 0;
}
