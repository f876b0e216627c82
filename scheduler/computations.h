// Computations as the store knows them: by each key that logs may have for them.
#pragma once

#include <string>
#include <vector>

#include "compiler/dag/dag.h"
#include "store/record.h"

namespace kiln::scheduler {

// That of today (dag/workload_key.h) first, those of older logs (dag/old_keys.h) at the end.
std::vector<store::Computation> UnderAllKeys(const dag::Dag& dag);

// What the keys of a log may stand for beside what was tuned here: the operators that are known by
// name.
std::vector<store::Computation> LibraryComputations();

// Is the record for this target, by what both mean (compiler/target/meaning.h)? "": for any.
bool IsFor(const std::string& target, const store::Record& record);

}  // namespace kiln::scheduler
