// What is done to a network before it is cut into kernels. passes.cc is the table of contents.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"

namespace kiln::graph {

// What the target wants of a network.
enum class WinogradRule : uint8_t {
  kNone,  // direct convolutions alone
  kTvm,   // wherever it can be, as TVM does on GPUs: tiles of 4x4 where 8 divides the height
  kFast,  // wherever it can be, with tiles and transforms that suit the target
};

struct PassOptions {
  bool is_gpu = false;
  // Convolutions and pools with the channels last, as GPUs like them.
  bool channels_last = true;
  WinogradRule winograd = WinogradRule::kNone;
  // Of the convolutions that make these values alone; none: of all.
  std::optional<std::set<std::string, std::less<>>> winograd_only = {};
  // Types of factors of which the target reads those best that are neighbours along the sum.
  std::vector<ir::Type> along_sum = {};
};

struct Pass {
  std::string_view name;
  std::string_view doc;
  std::function<StatusOr<Graph>(const Graph&, const PassOptions&)> run;
  // Not run unless this says so. Null: always.
  std::function<bool(const PassOptions&)> wanted = {};
};

// In the order in which they run. A name may stand in it more than once.
const std::vector<Pass>& AllPasses();

struct PassInstruments {
  std::set<std::string, std::less<>> leave_out = {};  // by name
  bool verify = false;                                // after each pass (verify.h)
  // After each pass: its name, the graph before it and after it.
  std::function<void(std::string_view name, const Graph& before, const Graph& after)> observer = {};
};

// All passes, one after the other. The result computes the same outputs from the same inputs, but
// for rounding. Errors name the pass. Cost: seconds for networks of hundreds of megabytes, whose
// weights are computed with.
StatusOr<Graph> RunPasses(Graph graph, const PassOptions& options,
                          const PassInstruments& instruments = {});

}  // namespace kiln::graph
