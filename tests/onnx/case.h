// The test cases of ONNX's own suite: a folder each, with model.onnx and, in test_data_set_N, the
// inputs and the outputs that are expected, input_I.pb and output_I.pb.
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

// Where Debian's libonnx-testdata puts them: node, pytorch-converted, pytorch-operator, simple.
inline constexpr char kOnnxTestData[] = "/usr/share/libonnx-testdata/data";

// What computes a network: inputs as Graph::inputs(), results as Graph::outputs().
using Evaluator = std::function<StatusOr<std::vector<ir::NDArray>>(
    const graph::Graph&, std::span<const ir::NDArray> inputs)>;

struct CaseOptions {
  Evaluator evaluate = {};  // graph::Evaluate, unless something else is set
  // Cases whose networks take more steps are not run: the oracle takes some 30 ns for each.
  double max_steps = 5e8;
};

struct CaseResult {
  enum class Kind {
    kPass,
    kPassFixed,    // with inputs fixed to their values, that say axes, shapes or lengths
    kUnsupported,  // Kiln refuses the model, and says why
    kTooLarge,     // more than max_steps
    kWrongData,    // the outputs that are expected contradict the operator's description
    kFail,
  };
  Kind kind = Kind::kPass;
  std::string detail = {};  // why not
};

// One of `count` parts of all cases, which a case is in by a hash of its name.
struct Shard {
  int index = 0, count = 1;
  bool Has(std::string_view name) const;
};

// The folders below `folder` that have a model and are of the shard, sorted.
std::vector<std::string> FindCases(const std::string& folder, Shard shard = {});

CaseResult RunCase(const std::string& folder, const CaseOptions& options = {});

// How many there were of each kind, and what the unsupported ones lack.
struct Tally {
  int pass = 0, fixed = 0, unsupported = 0, too_large = 0, wrong_data = 0, fail = 0;
  std::vector<std::string> failures = {};  // "test_x: output 0: ..."
  std::vector<std::string> lacks = {};  // a line for each unsupported case: "Op (domain 17): ..."
  int total() const { return pass + unsupported + too_large + wrong_data + fail; }
};
void Count(const std::string& name, const CaseResult& result, Tally& tally);

}  // namespace kiln
