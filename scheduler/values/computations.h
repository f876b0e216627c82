// Computations as the store knows them: under each key that logs may have for them.
#pragma once

#include <string>
#include <vector>

#include "compiler/dag/dag.h"
#include "store/record.h"

namespace kiln::scheduler {

// Lists the current key (dag/workload_key.h) first and the keys of older logs (dag/old_keys.h)
// last.
std::vector<store::Computation> UnderAllKeys(const dag::Dag& dag);

// The operators that are known by name. The keys of a log may stand for them even if Kiln never
// tuned them.
std::vector<store::Computation> LibraryComputations();

// Tells whether the record's target means the same as `target` (compiler/target/meaning.h). An
// empty `target` matches every record.
bool IsFor(const std::string& target, const store::Record& record);

}  // namespace kiln::scheduler
