#include "compiler/codegen/llvm/reference_testing.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <unordered_map>

#include "compiler/codegen/llvm/loaded_program_testing.h"
#include "compiler/ir/evaluate.h"

namespace kiln::codegen {
namespace {
using ir::Stmt;
using ir::StmtKind;

class Runner : public ir::LoadSource {
 public:
  Runner(const ir::Program& program, std::vector<ir::NDArray>& arguments)
      : vars_(program.vars.size(), ir::Value::Int(INT64_MIN)) {
    for (size_t slot = 0; slot < program.buffers.size(); ++slot) {
      if (slot < arguments.size()) {
        buffers_.push_back(&arguments[slot]);
      } else {
        locals_.push_back(
            std::make_unique<ir::NDArray>(program.buffers[slot].type, program.buffers[slot].shape));
        buffers_.push_back(locals_.back().get());
      }
    }
  }

  Status Load(int32_t slot, std::span<const int64_t> indices, ir::Value* value) override {
    const ir::NDArray& array = *buffers_[static_cast<size_t>(slot)];
    const int64_t flat = array.Flatten(indices);
    if (flat < 0) return OutOfRange("load from buffer {} at [{}]", slot, fmt::join(indices, ", "));
    *value = array.Get(flat);
    return OkStatus();
  }

  Status Run(Stmt stmt) {
    switch (stmt->kind) {
      case StmtKind::kFor:
        for (int64_t i = 0; i < stmt->extent; ++i) {
          vars_[static_cast<size_t>(stmt->var)] = ir::Value::Int(i);
          KILN_RETURN_IF_ERROR(Run(stmt->body()));
        }
        return OkStatus();
      case StmtKind::kIf: {
        KILN_ASSIGN_OR_RETURN(const ir::Value condition, Eval(stmt->condition()));
        return condition.i != 0 ? Run(stmt->body()) : OkStatus();
      }
      case StmtKind::kStore:
        return Store(stmt);
      default:
        for (Stmt child : stmt->children()) KILN_RETURN_IF_ERROR(Run(child));
        return OkStatus();
    }
  }

 private:
  StatusOr<ir::Value> Eval(ir::Expr e) {
    auto& compiled = compiled_[e];
    if (compiled == nullptr) compiled = std::make_unique<ir::CompiledExpr>(e);
    ir::Value value;
    KILN_RETURN_IF_ERROR(compiled->Run(vars_, this, &value));
    return value;
  }

  Status Store(Stmt stmt) {
    std::vector<int64_t> indices;
    for (ir::Expr e : stmt->indices()) {
      KILN_ASSIGN_OR_RETURN(const ir::Value index, Eval(e));
      indices.push_back(index.i);
    }
    KILN_ASSIGN_OR_RETURN(const ir::Value value, Eval(stmt->value()));
    ir::NDArray& array = *buffers_[static_cast<size_t>(stmt->slot)];
    const int64_t flat = array.Flatten(indices);
    if (flat < 0)
      return OutOfRange("store to buffer {} at [{}]", stmt->slot, fmt::join(indices, ", "));
    array.Set(flat, value);
    return OkStatus();
  }

  std::vector<ir::Value> vars_;
  std::vector<ir::NDArray*> buffers_;
  std::vector<std::unique_ptr<ir::NDArray>> locals_;
  std::unordered_map<ir::Expr, std::unique_ptr<ir::CompiledExpr>> compiled_;
};

bool Close(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
}
}  // namespace

Status RunReference(const ir::Program& program, std::vector<ir::NDArray>& buffers) {
  Runner runner(program, buffers);
  for (const ir::Kernel& kernel : program.kernels) KILN_RETURN_IF_ERROR(runner.Run(kernel.body));
  return OkStatus();
}

namespace {
StatusOr<std::vector<ir::NDArray>> RunInPlace(const LoadedProgram& loaded,
                                              const std::vector<ir::NDArray>& buffers,
                                              GuardedBytes::Place place) {
  std::vector<GuardedBytes> memory;
  std::vector<void*> args;
  for (const ir::NDArray& buffer : buffers) {
    memory.emplace_back(buffer.bytes().size(), place);
    std::memcpy(memory.back().data(), buffer.bytes().data(), buffer.bytes().size());
    args.push_back(memory.back().data());
  }
  loaded.Run(args);
  std::vector<ir::NDArray> results = buffers;
  for (size_t i = 0; i < memory.size(); ++i) {
    if (!memory[i].PatternIntact()) return Internal("argument {} was written out of bounds", i);
    std::memcpy(results[i].mutable_bytes().data(), memory[i].data(), memory[i].size());
  }
  return results;
}
}  // namespace

StatusOr<std::vector<ir::NDArray>> RunCompiled(const ir::Program& program,
                                               const std::vector<ir::NDArray>& buffers,
                                               const target::Target& target,
                                               const LlvmOptions& options) {
  KILN_ASSIGN_OR_RETURN(const Compiled compiled, CompileLlvm(program, target, options));
  KILN_ASSIGN_OR_RETURN(const LoadedProgram loaded, LoadedProgram::Load(compiled.binary));
  KILN_ASSIGN_OR_RETURN(const std::vector<ir::NDArray> front,
                        RunInPlace(loaded, buffers, GuardedBytes::Place::kFront));
  KILN_ASSIGN_OR_RETURN(std::vector<ir::NDArray> back,
                        RunInPlace(loaded, buffers, GuardedBytes::Place::kBack));
  for (size_t i = 0; i < back.size(); ++i) {
    if (!std::ranges::equal(front[i].bytes(), back[i].bytes())) {
      return Internal("argument {} differs between two runs", i);
    }
  }
  return back;
}

std::vector<ir::NDArray> MakeArguments(const ir::Program& program, uint64_t seed) {
  std::vector<ir::NDArray> arguments;
  std::mt19937_64 rng(seed);
  for (int slot = 0; slot < program.num_args(); ++slot) {
    const ir::Buffer& buffer = program.buffers[static_cast<size_t>(slot)];
    ir::NDArray array(buffer.type, buffer.shape);
    for (int64_t i = 0; i < array.num_elements(); ++i) {
      double value = static_cast<double>(rng() % 7) - 3;
      if (buffer.index_limit > 0)
        value = static_cast<double>(rng() % static_cast<uint64_t>(buffer.index_limit));
      array.SetDouble(i, buffer.scope == ir::Scope::kInput ? value : -7);
    }
    arguments.push_back(std::move(array));
  }
  return arguments;
}

Status CompareWithReference(const ir::Program& program, uint64_t seed, double tolerance,
                            const target::Target& target) {
  std::vector<ir::NDArray> expected = MakeArguments(program, seed);
  KILN_ASSIGN_OR_RETURN(const std::vector<ir::NDArray> actual,
                        RunCompiled(program, expected, target));
  KILN_RETURN_IF_ERROR(RunReference(program, expected));
  for (size_t slot = 0; slot < expected.size(); ++slot) {
    for (int64_t i = 0; i < expected[slot].num_elements(); ++i) {
      const double a = actual[slot].GetDouble(i), e = expected[slot].GetDouble(i);
      if (!Close(a, e, tolerance)) {
        return Internal("{}[{}] is {}, the reference says {} (seed {})", program.buffers[slot].name,
                        i, a, e, seed);
      }
    }
  }
  return OkStatus();
}

}  // namespace kiln::codegen
