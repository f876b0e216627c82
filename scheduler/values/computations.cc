#include "scheduler/values/computations.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "compiler/dag/old_keys.h"
#include "compiler/dag/ops/known_workloads.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"
#include "compiler/dag/workload_key.h"
#include "compiler/target/meaning.h"

namespace kiln::scheduler {

std::vector<store::Computation> UnderAllKeys(const dag::Dag& dag) {
  store::Computation computation = {.id = dag::WorkloadId(dag),
                                    .key = {},
                                    .dag = dag::PrintDag(dag),
                                    .flop_count = dag.flop_count()};
  std::vector<store::Computation> all;
  std::vector<std::string> keys = dag::WorkloadKeys(dag);
  std::ranges::move(dag::OldWorkloadKeys(dag), std::back_inserter(keys));
  for (std::string& key : keys) {
    computation.key = std::move(key);
    all.push_back(computation);
  }
  return all;
}

std::vector<store::Computation> LibraryComputations() {
  std::vector<store::Computation> all;
  std::set<std::string> seen;
  for (const dag::KnownComputation& known : dag::KnownComputations()) {
    all.push_back(
        {.id = known.id, .key = known.key, .dag = known.text, .flop_count = known.flop_count});
    if (!seen.insert(known.id).second) continue;
    const auto dag = dag::ParseDag(known.text);
    KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
    for (std::string& key : dag::OldWorkloadKeys(**dag)) {
      all.push_back({.id = known.id,
                     .key = std::move(key),
                     .dag = known.text,
                     .flop_count = known.flop_count});
    }
  }
  return all;
}

bool IsFor(const std::string& target, const store::Record& record) {
  return target.empty() ||
         target::MeanSame(record.target, HardwareParamsOf(record.hardware), target, {});
}

}  // namespace kiln::scheduler
