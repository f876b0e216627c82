// What the steps that add an operator (CHR, CHW, RF) share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/schedule/state.h"

namespace kiln::schedule {

// The operators of `dag` with an empty place for a new one at `position`: what stood there and
// after has moved up, and so have the numbers by which it is read.
std::vector<dag::OpNode> NodesWithGap(const dag::Dag& dag, int position);

// "data.shared"; when the DAG has that already "data.d.shared", "data.d.d.shared" and so on.
std::string CacheName(const dag::Dag& dag, std::string_view name, std::string_view scope);

// name[axes] = producer[axes]
StatusOr<dag::OperatorPtr> MakeCopy(const dag::Operator& producer, std::string name,
                                    std::vector<dag::Axis> axes);

// The scope is a word like "shared" or "local"; the producer has one output.
Status CheckCacheable(const dag::Operator& producer, std::string_view scope);

// What a step means by the word.
MemoryScope ScopeOf(std::string_view word);

}  // namespace kiln::schedule
