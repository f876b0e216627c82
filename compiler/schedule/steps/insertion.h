// Functions shared by the steps that add an operator (CHR, CHW, RF).
#pragma once

#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/schedule/state.h"

namespace kiln::schedule {

// Returns the operators of `dag` with an empty place for a new one at `position`. Later operators
// have moved up, and so have the numbers by which they are read.
std::vector<dag::OpNode> NodesWithGap(const dag::Dag& dag, int position);

// Returns "data.shared". If the DAG has that name already, "data.d.shared", "data.d.d.shared" and
// so on.
std::string CacheName(const dag::Dag& dag, std::string_view name, std::string_view scope);

// Makes name[axes] = producer[axes], with all outputs of the producer. Dimension d of the copy is
// dimension order[d] of the producer, or d if there is no order.
StatusOr<dag::OperatorPtr> MakeCopy(const dag::Operator& producer, std::string name,
                                    std::vector<dag::Axis> axes, std::span<const int> order = {});

// Checks that the scope is a word like "shared" or "local".
Status CheckScope(std::string_view scope);

// Returns the DAG that `make` makes out of `dag`. It is made once for each key.
StatusOr<dag::DagPtr> MakeOnce(const dag::Dag& dag, dag::EditKey key,
                               absl::FunctionRef<StatusOr<dag::DagPtr>()> make);

// The beginning of a key: the kind of step and the stage.
enum class EditKind : int64_t {
  kCacheRead,
  kCacheWrite,
  kRfactor,
  kMergeAxes,
  kJoinedSums,
  kMovedStage
};
dag::EditKey BeginKey(EditKind kind, int stage);
// Adds a part of the key, together with its length.
template <typename Values>
void AddToKey(const Values& values, dag::EditKey& key) {
  key.push_back(static_cast<int64_t>(std::size(values)));
  key.insert(key.end(), std::begin(values), std::end(values));
}

// Returns the memory that a step means by the word.
MemoryScope ScopeOf(std::string_view word);

}  // namespace kiln::schedule
