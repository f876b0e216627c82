// Reads ONNX models. A model that is read is a graph whose text form parses to the same; a model
// that is not read is refused with a reason.
#include "frontend/onnx/import.h"
#include "graph/text.h"
#include "tests/fuzz/targets/fuzz_target.h"
#include "tests/fuzz/targets/promises.h"

namespace kiln::fuzz {
namespace {

constexpr size_t kMostBytes = 1 << 13;

void CheckText(const graph::Graph& graph) {
  const std::string printed = graph::PrintGraph(graph);
  const auto parsed = graph::ParseGraph(printed, graph::NamedConstants(graph));
  KILN_CHECK(parsed.ok(), "{}\n{}", Message(parsed.status()), printed);
  KILN_CHECK(graph::Equal(graph, *parsed), "{}\nas\n{}", printed, graph::PrintGraph(*parsed));
}

}  // namespace
}  // namespace kiln::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kiln;
  if (size > fuzz::kMostBytes) return -1;
  // The folder has no files of weights.
  const auto graph = frontend::ImportOnnxModel(fuzz::InputText(data, size), "/nonexistent");
  if (!graph.ok()) {
    fuzz::CheckRefusal(graph.status());
    return 0;
  }
  fuzz::CheckText(*graph);
  return 0;
}
