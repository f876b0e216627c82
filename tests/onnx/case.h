// The test cases of ONNX's own suite. Each is a folder with model.onnx and, in test_data_set_N, the
// inputs and the expected outputs, input_I.pb and output_I.pb.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/ir/ndarray.h"
#include "graph/graph.h"

namespace kiln {

// Folder in which Debian's libonnx-testdata has its data: node, pytorch-converted,
// pytorch-operator, simple.
inline constexpr char kOnnxTestData[] = "/usr/share/libonnx-testdata/data";

// Computes a network: inputs as Graph::inputs(), results as Graph::outputs().
using Evaluator = std::function<StatusOr<std::vector<ir::NDArray>>(
    const graph::Graph&, std::span<const ir::NDArray> inputs)>;

struct CaseOptions {
  // If unset, graph::Evaluate is used.
  Evaluator evaluate = {};
  // Cases whose networks take more steps are not run. The oracle takes some 30 ns for each step.
  double max_steps = 5e8;
};

struct CaseResult {
  enum class Kind {
    kPass,
    // Passes with inputs that say axes, shapes or lengths fixed to their values.
    kPassFixed,
    // Kiln refuses the model, and says why.
    kUnsupported,
    // The network takes more than max_steps.
    kTooLarge,
    // The expected outputs contradict the operator's description.
    kWrongData,
    kFail,
  };
  Kind kind = Kind::kPass;
  // Reason why the case did not pass.
  std::string detail = {};
};

// One of `count` parts of all cases. A hash of the case's name chooses its part.
struct Shard {
  int index = 0, count = 1;
  bool Has(std::string_view name) const;
};

// Returns the folders below `folder` that have a model and belong to the shard, sorted.
std::vector<std::string> FindCases(const std::string& folder, Shard shard = {});

CaseResult RunCase(const std::string& folder, const CaseOptions& options = {});

// Counts of each kind, and what the unsupported cases lack.
struct Tally {
  int pass = 0, fixed = 0, unsupported = 0, too_large = 0, wrong_data = 0, fail = 0;
  // "test_x: output 0: ..."
  std::vector<std::string> failures = {};
  // A line for each unsupported case: "Op (domain 17): ...".
  std::vector<std::string> lacks = {};
  int total() const { return pass + unsupported + too_large + wrong_data + fail; }
};
void Count(const std::string& name, const CaseResult& result, Tally& tally);

}  // namespace kiln
