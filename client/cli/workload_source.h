// What the user wants tuned, from arguments of the command line: an operator of the library with
// its arguments, or a text file.
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
  std::string op = {};    // "conv2d_nchw", or the path of a text file
  std::string args = {};  // "1,7,7,512,512,3,3,1,1"
  std::string dtype = "float32";
  std::string out_dtype = {};          // "" = as the operator says
  std::string layout = {};             // "nhwc" makes conv2d conv2d_nhwc; "": as it is called
  std::string epilogue = {};           // "bias,relu"
  std::vector<std::string> lets = {};  // values of the params of a text file: "N=512"
};

struct Workload {
  dag::DagPtr dag;
  std::vector<dag::InputRange> ranges = {};  // of the values that its inputs get in checks
  std::string description;  // "conv2d_nchw 1,7,7,512,512,3,3,1,1 + bias + relu", "my_op.te"
};

// One way to compute a workload.
struct WorkloadVariant {
  std::string name;         // "direct", "winograd F(4,3)"; "" when it is the only one
  std::string preparation;  // how constant inputs are made before; "": they are not
  Workload workload;
};

// Which variants of a workload are wanted.
inline constexpr std::string_view kDirectVariants = "direct";  // that takes all inputs as they are
inline constexpr std::string_view kWinogradVariants =
    "winograd";  // InvalidArgument where there is none
inline constexpr std::string_view kAllVariants = "all";
StatusOr<std::vector<WorkloadVariant>> LoadVariants(const WorkloadArguments& arguments,
                                                    std::string_view which, bool gpu);

// A file that may be one of a whole network, of a kind that nothing here reads: "x.tflite".
bool IsForeignNetwork(std::string_view op);

// A path: it has a slash or ends in .te.
bool IsTextFile(std::string_view op);

// Errors are for the user: "my_op.te:3:14: expected ...", "no operator conv2d; closest: ...".
StatusOr<Workload> LoadWorkload(const WorkloadArguments& arguments);
StatusOr<dag::DagText> LoadTextFile(const std::string& path,
                                    std::span<const dag::ParamValue> params = {});

// "x=0.5:2" gives the input x of each workload that has one this range, instead of its own.
// NotFound where none has it, InvalidArgument where it does not fit.
Status GiveRanges(std::span<const std::string> ranges, std::span<Workload* const> workloads);

}  // namespace kiln::client
