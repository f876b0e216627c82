// The best records of a log: what is worth handing to somebody else.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/measure_log.h"
#include "store/record.h"

namespace kiln::store {

// The keys under which a target is looked up: those of its -keys=, its -device=, and the default
// ones of its kind (cuda: cuda, gpu; llvm: cpu; any other: its name), without repetition.
std::vector<std::string> TargetKeys(std::string_view target);

// For every (key of TargetKeys(target), workload hash, workload arguments, computation) the best
// record without error: complete before stopped early, then the smallest mean cost, then the one that comes first.
// A record that is best under several keys is there once. Order: by target key, hash and arguments
// in the order they first appear.
std::vector<Record> Distill(std::span<const Record> records);

// The same over the lines of a log, whatever their version.
std::vector<MeasureLogLine> Distill(std::span<const MeasureLogLine> lines);

}  // namespace kiln::store
