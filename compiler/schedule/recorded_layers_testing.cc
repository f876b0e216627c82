#include "compiler/schedule/recorded_layers_testing.h"

#include <fstream>

#include "compiler/dag/ops/registry.h"

namespace kiln::schedule {
namespace {

struct Layer {
  const char *op, *arguments, *epilogue;
};

constexpr Layer kLayers[] = {
    {"conv2d_winograd_nhwc", "1,14,14,256,256", "bias,relu"},
    {"conv2d_nhwc", "1,56,56,64,64,1,1,1,0", ""},
    {"conv2d_nhwc", "1,56,56,128,64,3,3,2,1", "bias,relu"},
    {"dense", "1,1000,512", "bias"},
    {"global_avg_pool2d_nhwc", "1,7,7,512", ""},
    {"conv2d_winograd_nhwc", "1,7,7,512,512", "residual"},
    {"conv2d_nhwc", "1,14,14,512,256,1,1,2,0", ""},
    {"conv2d_winograd_nhwc", "1,28,28,128,128", "residual"},
    {"conv2d_winograd_nhwc", "1,7,7,512,512", "bias,relu"},
    {"conv2d_winograd_nhwc", "1,28,28,128,128", "residual,bias,relu"},
    {"conv2d_nhwc", "1,224,224,64,3,7,7,2,3", "bias,relu"},
    {"conv2d_nhwc", "1,56,56,128,64,1,1,2,0", ""},
    {"max_pool2d_nhwc", "1,112,112,64,3,3,2,1", "bias,relu"},
    {"conv2d_winograd_nhwc", "1,28,28,128,128", "bias,relu"},
    {"conv2d_nhwc", "1,14,14,512,256,3,3,2,1", "bias,relu"},
    {"softmax", "1,1000", ""},
    {"conv2d_winograd_nhwc", "1,14,14,256,256", "residual,bias,relu"},
    {"conv2d_winograd_nhwc", "1,56,56,64,64", "residual"},
    {"conv2d_nhwc", "1,28,28,256,128,1,1,2,0", ""},
    {"conv2d_winograd_nhwc", "1,14,14,256,256", "residual"},
    {"conv2d_nhwc", "1,28,28,256,128,3,3,2,1", "bias,relu"},
    {"conv2d_winograd_nhwc", "1,56,56,64,64", "residual,bias,relu"},
    {"conv2d_winograd_nhwc", "1,56,56,64,64", "bias,relu"},
    {"conv2d_winograd_nhwc", "1,7,7,512,512", "residual,scale,bias,relu"},
};

std::vector<RecordedLayer> ReadLayers() {
  std::ifstream file("compiler/schedule/testdata/resnet18_cuda_steps.txt");
  std::vector<RecordedLayer> layers;
  for (const Layer& layer : kLayers) {
    const int line = static_cast<int>(layers.size()) + 1;
    std::string text;
    KILN_CHECK(std::getline(file, text), "line {} of the recorded steps", line);
    auto dag =
        dag::BuildOp(layer.op, layer.arguments, {.epilogue = dag::SplitEpilogue(layer.epilogue)});
    KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
    auto steps = ParseSteps(text);
    KILN_CHECK(steps.ok(), "line {}: {}", line, Message(steps.status()));
    layers.push_back(
        {line, layer.op, layer.arguments, layer.epilogue, *std::move(dag), *std::move(steps)});
  }
  return layers;
}

}  // namespace

State RecordedLayer::Replayed() const {
  StatusOr<State> state = Replay(dag, steps);
  KILN_CHECK(state.ok(), "line {}: {}", line, Message(state.status()));
  return *std::move(state);
}

const std::vector<RecordedLayer>& RecordedLayers() {
  static const std::vector<RecordedLayer> layers = ReadLayers();
  return layers;
}

}  // namespace kiln::schedule
