// The passes over a network before it is cut into kernels. passes.cc is the table of contents.
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

// The use of Winograd's method that the target wants.
enum class WinogradRule : uint8_t {
  // Only direct convolutions.
  kNone,
  // Each convolution that allows it, like TVM on GPUs: tiles of 4x4 if 8 divides the height.
  kTvm,
  // Each convolution that allows it, with tiles and transforms that suit the target.
  kFast,
};

struct PassOptions {
  bool is_gpu = false;
  // True: convolutions and pools have the channels last, which suits GPUs.
  bool channels_last = true;
  WinogradRule winograd = WinogradRule::kNone;
  // Names of values: only convolutions that make these values use Winograd's method. None: all may.
  std::optional<std::set<std::string, std::less<>>> winograd_only = {};
  // Types of factors that the target reads best if they are neighbours along the sum.
  std::vector<ir::Type> along_sum = {};
};

struct Pass {
  std::string_view name;
  std::string_view doc;
  std::function<StatusOr<Graph>(const Graph&, const PassOptions&)> run;
  // Returns whether the pass runs. Null: it always runs.
  std::function<bool(const PassOptions&)> wanted = {};
};

// Returns the passes in the order in which they run. A name may occur more than once.
const std::vector<Pass>& AllPasses();

struct PassInstruments {
  // Names of passes that do not run.
  std::set<std::string, std::less<>> leave_out = {};
  // True: each pass is followed by Verify (verify.h).
  bool verify = false;
  // Called after each pass with its name, the graph before it and the graph after it.
  std::function<void(std::string_view name, const Graph& before, const Graph& after)> observer = {};
};

// Runs all passes, one after the other. The result computes the same outputs from the same inputs,
// except for rounding. Errors name the pass. Cost: seconds for networks of hundreds of megabytes,
// whose weights take part in computations.
StatusOr<Graph> RunPasses(Graph graph, const PassOptions& options,
                          const PassInstruments& instruments = {});

}  // namespace kiln::graph
