// Parses programs in text form. A program that parses prints as a text that parses to an equal
// program. The interpreter runs it or refuses it with a reason. It has finite features, and CUDA
// text can be made from it.
#include <vector>

#include "compiler/codegen/cuda/checks.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/program_text.h"
#include "tests/fuzz/targets/fuzz_target.h"
#include "tests/fuzz/targets/promises.h"

namespace kiln::fuzz {
namespace {

constexpr int64_t kMaxBytes = 1 << 14, kMaxSteps = 2000;

double ArgumentBytes(const ir::Program& program) {
  double bytes = 0;
  for (const ir::Buffer& buffer : program.buffers) {
    double elements = 1;
    for (const int64_t extent : buffer.shape) elements *= static_cast<double>(extent);
    bytes += elements * buffer.type.bytes();
  }
  return bytes;
}

void Run(const ir::Program& program) {
  if (ArgumentBytes(program) > kMaxBytes) return;
  std::vector<ir::NDArray> arrays;
  for (const ir::Buffer& buffer : program.buffers) {
    if (buffer.scope != ir::Scope::kInput && buffer.scope != ir::Scope::kOutput) continue;
    arrays.emplace_back(buffer.type, buffer.shape)
        .FillRandom(1, ir::RandomKind::kSmallIntegers, buffer.index_limit);
  }
  std::vector<ir::NDArray*> arguments;
  for (ir::NDArray& array : arrays) arguments.push_back(&array);
  const Status status =
      ir::Interpret(program, arguments, {.max_steps = kMaxSteps, .max_bytes = kMaxBytes});
  if (!status.ok()) CheckRefusal(status);
}

void MakeCuda(const ir::Program& program) {
  const Status status = codegen::CheckCudaProgram(program, {});
  if (!status.ok()) return CheckRefusal(status);
  const auto source = codegen::GenerateCuda(program);
  if (!source.ok()) CheckRefusal(source.status());
}

}  // namespace
}  // namespace kiln::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kiln;
  const auto program = ir::ParseProgram(fuzz::InputText(data, size));
  if (!program.ok()) {
    fuzz::CheckRefusal(program.status());
    return 0;
  }
  fuzz::CheckPrintsAndParses(*program);
  for (const bool gpu : {false, true}) fuzz::CheckFeatures(*program, gpu);
  fuzz::MakeCuda(*program);
  fuzz::Run(*program);
  return 0;
}
