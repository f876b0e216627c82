// What the steps that add an operator (CHR, CHW, RF) share.
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

// The operators of `dag` with an empty place for a new one at `position`: what stood there and
// after has moved up, and so have the numbers by which it is read.
std::vector<dag::OpNode> NodesWithGap(const dag::Dag& dag, int position);

// "data.shared"; when the DAG has that already "data.d.shared", "data.d.d.shared" and so on.
std::string CacheName(const dag::Dag& dag, std::string_view name, std::string_view scope);

// name[axes] = producer[axes]; dimension d of the copy is dimension order[d] of the producer, or d
// where there is no order.
StatusOr<dag::OperatorPtr> MakeCopy(const dag::Operator& producer, std::string name,
                                    std::vector<dag::Axis> axes, std::span<const int> order = {});

// The scope is a word like "shared" or "local"; the producer has one output.
Status CheckCacheable(const dag::Operator& producer, std::string_view scope);

// What `make` makes out of `dag`, made once for each key.
StatusOr<dag::DagPtr> MakeOnce(const dag::Dag& dag, dag::EditKey key,
                               absl::FunctionRef<StatusOr<dag::DagPtr>()> make);

// The beginning of a key: which kind of step, and of which stage.
enum class EditKind : int64_t { kCacheRead, kCacheWrite, kRfactor, kMergeAxes };
dag::EditKey BeginKey(EditKind kind, int stage);
// Adds a part, and where it ends.
template <typename Values>
void AddToKey(const Values& values, dag::EditKey& key) {
  key.push_back(static_cast<int64_t>(std::size(values)));
  key.insert(key.end(), std::begin(values), std::end(values));
}

// What a step means by the word.
MemoryScope ScopeOf(std::string_view word);

}  // namespace kiln::schedule
