// What a search does on each execution model: its sketch rules, and those parameters that differ.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "search/space/parameters.h"
#include "search/space/sketch.h"
#include "search/space/task.h"

namespace kiln::search {

struct SearchSpace {
  std::vector<std::unique_ptr<SketchRule>> (*sketch_rules)();
  std::string Parameters::* tiling;
  int Parameters::* sketch_judged_trials;
  double Parameters::* neighbours_from_results;
};

const SearchSpace& SpaceOf(const target::Target& target);

}  // namespace kiln::search
