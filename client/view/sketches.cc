#include "client/view/sketches.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/thread_pool.h"
#include "client/view/json.h"
#include "compiler/dag/workload_key.h"
#include "compiler/schedule/source/print.h"
#include "compiler/schedule/steps/steps.h"
#include "compiler/target/target.h"
#include "search/space/factorization.h"
#include "search/space/online_tiles.h"
#include "search/space/sketch.h"
#include "search/space/uneven_tiles.h"

namespace kiln::client {
namespace {

bool IsBlank(const schedule::SplitStep& split) {
  return std::find(split.lengths.begin(), split.lengths.end(), 0) != split.lengths.end();
}

// Of all blanks together; a double: there are many.
double CountTileSizes(const search::Sketch& sketch, const search::Task& task,
                      const search::Parameters& parameters) {
  const bool gpu = task.target.is_gpu();
  double count = 1;
  if (const schedule::OnlineTile* const tile = sketch.state.online()) {
    count *= static_cast<double>(
        search::CountOnlineTiles(*tile, search::HasOnlineWarpgroupUnits(*task.dag, task.target)));
  }
  for (size_t i = 0; i < sketch.steps.size(); ++i) {
    const auto* split = schedule::As<schedule::SplitStep>(*sketch.steps[i]);
    if (split == nullptr || !IsBlank(*split) || split->extent <= 0) continue;
    std::vector<int64_t> extents = {split->extent};
    if (search::MayBeUneven(sketch.steps, i, gpu, parameters))
      extents = search::TileExtents(split->extent);
    double ways = 0;
    for (int64_t extent : extents) {
      ways += static_cast<double>(search::CountFactorizations(
          extent, static_cast<int>(split->lengths.size()), parameters.max_innermost_split_factor));
    }
    count *= ways;
  }
  return count;
}

// A match may begin within what replaced the one before.
void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; ++at)
    text.replace(at, from.size(), to);
}

// Loops without an extent and factors of 0 are blanks.
std::string LoopsText(const search::Sketch& sketch) {
  std::string text = schedule::PrintLoops(sketch.state);
  ReplaceAll(text, "(None)", "(?)");
  return text;
}

std::string PrimitivesText(const search::Sketch& sketch) {
  std::string text = schedule::PrintPrimitives(sketch.state);
  ReplaceAll(text, "factors=[0", "factors=[?");
  ReplaceAll(text, "?, 0", "?, ?");
  ReplaceAll(text, "factor=0", "factor=?");
  for (const std::string_view number : {"rows", "keys", "warps", "depth"})
    ReplaceAll(text, fmt::format("{}=0", number), fmt::format("{}=?", number));
  return text;
}

StatusOr<search::Task> TaskOf(const dag::DagPtr& dag, const std::string& target_text) {
  KILN_ASSIGN_OR_RETURN(const target::Target target,
                        target::ParseTarget(target_text.empty() ? "llvm" : target_text));
  return search::Task(dag, target, target::DefaultHardware(target, AvailableCpus()),
                      dag::WorkloadKey(*dag));
}

}  // namespace

StatusOr<int> CountSketches(const dag::DagPtr& dag, const std::string& target) {
  KILN_ASSIGN_OR_RETURN(const search::Task task, TaskOf(dag, target));
  return static_cast<int>(search::GenerateSketches({task, search::Parameters()}).size());
}

StatusOr<std::string> PrintSketches(const dag::DagPtr& dag, const std::string& target_text,
                                    bool json) {
  KILN_ASSIGN_OR_RETURN(const search::Task task, TaskOf(dag, target_text));
  const search::Parameters parameters;
  std::string text;
  int number = 0;
  for (const search::Sketch& sketch : search::GenerateSketches({task, parameters})) {
    const double tile_sizes = CountTileSizes(sketch, task, parameters);
    if (json) {
      text += fmt::format("{{\"sketch\":{},\"steps\":{},\"tile_sizes\":{}}}\n", number++,
                          JsonString(schedule::PrintSteps(sketch.steps)), tile_sizes);
      continue;
    }
    text += fmt::format("{}sketch {}: {} steps, {:.3g} tile sizes\n\n{}\n{}",
                        number > 0 ? "\n" : "", number, sketch.steps.size(), tile_sizes,
                        LoopsText(sketch), PrimitivesText(sketch));
    ++number;
  }
  return text;
}

}  // namespace kiln::client
