// usage: make_network FILE EXPECTED
// Writes a small compiled network, and as text, one line each, an input of it and its outputs.
#include <cstdio>

#include "tests/runtime/made_network.h"

namespace kiln {
namespace {

void Print(std::FILE* file, const ir::NDArray& array) {
  for (int64_t i = 0; i < array.num_elements(); ++i) {
    std::fprintf(file, "%s%.9g", i == 0 ? "" : " ", array.GetDouble(i));
  }
  std::fputc('\n', file);
}

int Main(const char* network, const char* expected) {
  MadeNetwork made = MakeSmallPerceptron();
  const Status written = made.Write(network);
  KILN_CHECK(written.ok(), "{}", Message(written));
  std::FILE* file = std::fopen(expected, "w");
  KILN_CHECK(file != nullptr, "{}", expected);
  const std::vector<ir::NDArray> inputs = made.RandomInputs(3);
  Print(file, inputs[0]);
  for (const ir::NDArray& output : made.Reference(inputs)) Print(file, output);
  return std::fclose(file);
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("usage: make_network FILE EXPECTED\n", stderr), 2;
  return kiln::Main(argv[1], argv[2]);
}
