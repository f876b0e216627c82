// Loads networks as a user names them, and lists their tasks.
//
// Pure functions except for reading files; any thread may call them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/target/target.h"
#include "graph/graph.h"
#include "graph/passes/narrow_floats.h"
#include "graph/passes/passes.h"
#include "graph/tasks.h"

namespace kiln::client {

struct NetworkArguments {
  // "network:resnet-18" (docs/zoo.md), "model.onnx", or a file of graph/text.h: "net.graph".
  std::string what = {};
  // Options of a network by name: batch, layout, dtype, sequence and seed.
  int64_t batch = 1;
  // "nhwc" or "nchw"; "": nhwc.
  std::string layout = {};
  // A file stays as it is with "float32"; float16 and bfloat16 make its float32 narrow
  // (graph/passes/narrow_floats.h).
  std::string dtype = "float32";
  // Number of tokens, for language models.
  int64_t sequence = 128;
  // Seed of the weights.
  uint64_t seed = 1;
  // Options of a file: "x=1,3,224,224", the extents of an input.
  std::vector<std::string> inputs = {};
};

// Returns whether the text is "network:NAME", or a file that ends in .onnx or .graph.
bool IsNetwork(std::string_view what);

// Returns whether the network is a file whose float32 is made narrow.
bool IsNarrowed(const NetworkArguments& arguments);

// Returns the network before any pass. Errors are for the user and name the file.
StatusOr<graph::Graph> LoadNetwork(const NetworkArguments& arguments);
// The two steps of that for a network that IsNarrowed: as its file has it, and made narrow.
StatusOr<graph::Graph> LoadWide(const NetworkArguments& arguments);
StatusOr<graph::NarrowedNetwork> Narrow(const graph::Graph& wide,
                                        const NetworkArguments& arguments);

// The algorithms for the convolutions of a network.
enum class Variants : uint8_t {
  // The plain convolution, as the network has it.
  kDirect,
  // Winograd's method for each convolution that allows it, like TVM on GPUs.
  kWinograd,
  // Both, as alternatives.
  kAll,
};
// Refuses other words than "direct", "winograd" and "all".
StatusOr<Variants> ParseVariants(std::string_view word);

// Returns whether kernels for the target take constants packed, in the order in which their loops
// read them (dag/packed_inputs.h). `word` is TVM's name of a layout rewrite option; "": kernels
// take them packed on CPUs that run programs. Refuses other words.
inline constexpr std::string_view kRewriteNone = "none";
inline constexpr std::string_view kRewritePreTransformed = "pretransformed";
StatusOr<bool> ParseLayoutRewrite(std::string_view word, const target::Target& target);

// One algorithm for a task.
struct TaskVariant {
  // "direct", "winograd"; "" if there is only one algorithm.
  std::string name;
  // How constants are made before the kernel runs: "p1 = ..."; "": nothing is made.
  std::string preparation;
  dag::DagPtr dag;
};

struct NetworkTuneTask {
  // Number of the network's kernels that the task stands for.
  double weight = 1;
  // "conv 1,56,56,64 x 3,3,64,64 + add + relu".
  std::string description;
  // See graph::NetworkTask.
  bool is_simple = false;
  std::vector<TaskVariant> variants;
};

// Returns the options of the passes for a target: the element types for which weights of
// convolutions lie along the sum. These are TF32, if the target allows it, and bytes, if a matrix
// unit multiplies them.
graph::PassOptions PassOptionsFor(const target::Target& target,
                                  graph::WinogradRule winograd = graph::WinogradRule::kNone);

// Returns the text of the network (graph/text.h): as it was loaded, after the pass of the name
// `after`, or after "all". Refuses a name that no pass has.
StatusOr<std::string> NetworkText(const graph::Graph& network, const target::Target& target,
                                  Variants variants, std::string_view after);

// Selects tasks and their algorithms.
struct TaskSelection {
  Variants variants = Variants::kDirect;
  // See ParseLayoutRewrite.
  bool pack_constants = false;
  // True: tasks without sums are included.
  bool include_simple = false;
};

// Returns the tasks of the network after the passes for this target, in the order of their first
// kernels.
StatusOr<std::vector<NetworkTuneTask>> TuneTasks(const graph::Graph& network,
                                                 const target::Target& target,
                                                 const TaskSelection& selection);

}  // namespace kiln::client
