// Reads ONNX models. A model that is read is a graph whose text form parses to the same; a model
// that is not read is refused with a reason.
#include <string>

#include "frontend/onnx/import.h"
#include "graph/text.h"
#include "tests/fuzz/targets/fuzz_target.h"
#include "tests/fuzz/targets/promises.h"
#include "tests/fuzz/targets/round_trip.h"

namespace kiln::fuzz {
namespace {

constexpr size_t kMaxBytes = 1 << 13;

void CheckText(const graph::Graph& graph) {
  const auto parse = [&](const std::string& text) {
    return graph::ParseGraph(text, graph::NamedConstants(graph));
  };
  const auto equal = [](const graph::Graph& a, const graph::Graph& b) {
    return graph::Equal(a, b);
  };
  CheckRoundTrip(graph, graph::PrintGraph, parse, equal);
}

}  // namespace
}  // namespace kiln::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kiln;
  if (size > fuzz::kMaxBytes) return -1;
  // The folder has no files of weights.
  const auto graph = frontend::ImportOnnxModel(fuzz::InputText(data, size), "/nonexistent");
  if (!graph.ok()) {
    fuzz::CheckRefusal(graph.status());
    return 0;
  }
  fuzz::CheckText(*graph);
  return 0;
}
