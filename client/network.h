// Networks as a user names them, and what there is to tune in them.
//
// Pure but for reading files; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/target/target.h"
#include "graph/graph.h"
#include "graph/passes/passes.h"
#include "graph/tasks.h"

namespace kiln::client {

struct NetworkArguments {
  // "network:resnet-18" (docs/zoo.md), "model.onnx", or a file of graph/text.h: "net.graph".
  std::string what = {};
  // Of a network by name.
  int64_t batch = 1;
  std::string layout = {};  // "nhwc" or "nchw"; "": nhwc
  std::string dtype = "float32";
  int64_t sequence = 128;  // tokens, of language models
  uint64_t seed = 1;       // of the weights
  // Of a file: "x=1,3,224,224", the extents of an input.
  std::vector<std::string> inputs = {};
};

// "network:NAME", or a file that ends in .onnx or .graph.
bool IsNetwork(std::string_view what);

// As it was given: no pass has run. Errors are for the user and name the file.
StatusOr<graph::Graph> LoadNetwork(const NetworkArguments& arguments);

// How the convolutions of a network may be computed.
enum class Variants : uint8_t {
  kDirect,    // as they stand
  kWinograd,  // by Winograd's method where it can be, as TVM does on GPUs
  kAll,       // both, as alternatives
};
// Refuses other words than "direct", "winograd" and "all".
StatusOr<Variants> ParseVariants(std::string_view word);

// Do kernels for the target take constants packed, in the order in which their loops read them
// (dag/packed_inputs.h)? `word`: as TVM calls its layout rewrite options; "": on CPUs that run
// programs they do. Refuses other words.
inline constexpr std::string_view kRewriteNone = "none";
inline constexpr std::string_view kRewritePreTransformed = "pretransformed";
StatusOr<bool> ParseLayoutRewrite(std::string_view word, const target::Target& target);

// One way to do a task.
struct TaskVariant {
  std::string name;         // "direct", "winograd"; "" when it is the only one
  std::string preparation;  // how constants are made before it: "p1 = ..."; "": they are not
  dag::DagPtr dag;
};

struct NetworkTuneTask {
  double weight = 1;        // how many kernels of the network it is
  std::string description;  // "conv 1,56,56,64 x 3,3,64,64 + add + relu"
  bool is_simple = false;   // graph::NetworkTask
  std::vector<TaskVariant> variants;
};

// What the passes are told of a target: weights of convolutions that matrix units may multiply as TF32, or
// bytes, lie along the sum.
graph::PassOptions PassOptionsFor(const target::Target& target,
                                  graph::WinogradRule winograd = graph::WinogradRule::kNone);

// The text of the network (graph/text.h): as it was given, after the pass of this name, or after
// "all". Refuses a name that no pass has.
StatusOr<std::string> NetworkText(const graph::Graph& network, const target::Target& target,
                                  Variants variants, std::string_view after);

// Which of the tasks, and in what form.
struct TaskSelection {
  Variants variants = Variants::kDirect;
  bool pack_constants = false;  // ParseLayoutRewrite
  bool include_simple = false;  // those without sums
};

// The tasks of the network after the passes for this target, in the order of their first kernels.
StatusOr<std::vector<NetworkTuneTask>> TuneTasks(const graph::Graph& network,
                                                 const target::Target& target,
                                                 const TaskSelection& selection);

}  // namespace kiln::client
