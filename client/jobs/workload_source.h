// Loads the workload that arguments of the command line name: an operator of the library with its
// arguments, or a text file.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/dag/text.h"

namespace kiln::client {

struct WorkloadArguments {
  // "conv2d_nchw", or the path of a text file.
  std::string op = {};
  // "1,7,7,512,512,3,3,1,1".
  std::string args = {};
  std::string dtype = "float32";
  // "": the operator's own.
  std::string out_dtype = {};
  // "nhwc" makes conv2d conv2d_nhwc; "": the name stays unchanged.
  std::string layout = {};
  // "bias,relu".
  std::string epilogue = {};
  // Values of the params of a text file: "N=512".
  std::vector<std::string> lets = {};
};

struct Workload {
  dag::DagPtr dag;
  // Ranges of the values that inputs get in checks.
  std::vector<dag::InputRange> ranges = {};
  // "conv2d_nchw 1,7,7,512,512,3,3,1,1 + bias + relu", "my_op.te".
  std::string description;
};

// One algorithm for a workload.
struct WorkloadVariant {
  // "direct", "winograd F(4,3)"; "" if there is only one algorithm.
  std::string name;
  // How constant inputs are made before the kernel runs; "": none are made.
  std::string preparation;
  Workload workload;
};

// Variants that the user may ask for. The direct variant takes all inputs unprepared.
inline constexpr std::string_view kDirectVariants = "direct";
// InvalidArgument if the workload has no such variant.
inline constexpr std::string_view kWinogradVariants = "winograd";
inline constexpr std::string_view kAllVariants = "all";
StatusOr<std::vector<WorkloadVariant>> LoadVariants(const WorkloadArguments& arguments,
                                                    std::string_view which, bool gpu);

// Returns whether the file may be a whole network of a kind that Kiln does not read: "x.tflite".
bool IsForeignNetwork(std::string_view op);

// Returns whether the text is a path: it has a slash or ends in .te.
bool IsTextFile(std::string_view op);

// Errors are for the user: "my_op.te:3:14: expected ...", "no operator conv2d; closest: ...".
StatusOr<Workload> LoadWorkload(const WorkloadArguments& arguments);
StatusOr<dag::DagText> LoadTextFile(const std::string& path,
                                    std::span<const dag::ParamValue> params = {});

// Gives the input x of each workload that has one the range of "x=0.5:2", instead of its own range.
// NotFound if no workload has the input, InvalidArgument if the range does not fit.
Status GiveRanges(std::span<const std::string> ranges, std::span<Workload* const> workloads);

}  // namespace kiln::client
