// Shows whether a change of the compiler changes its output, by digests of the programs and the
// code of many states, to compare between two versions.
//
//   state_digests --save states.txt > before.txt       (before: draws states, keeps them)
//   state_digests --states states.txt > after.txt      (after: the same states, whatever the search
//   diff before.txt after.txt                           draws by now)
//
// A line of the output is one workload on one target: its number of states, and digests over all of
// them of the program, of the code (CUDA text; LLVM IR before optimization) and of the features.
// --each adds a line for every state, --print its program and code. A state that is refused counts
// with its error.
//
// A line of a file of states holds, between tabs: target, operator, arguments, epilogue, type,
// steps (JSON).
#include <fmt/format.h>
#include <fmt/os.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/hash/digest.h"
#include "base/status.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/codegen/llvm/llvm.h"
#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/features/features.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/random_schedule_testing.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "device/device_model.h"
#include "search/policies/random_policy.h"

namespace kiln {
namespace {

// The targets say all that code generation has to know, so results do not depend on the machine.
constexpr const char* kTargets[] = {"llvm -mcpu=skylake-avx512 -num-cores=8", "cuda -arch=sm_90",
                                    "cuda -arch=sm_90 -math=tf32"};
constexpr int kRandomSteps = 12;

struct Options {
  std::string save, states, only;
  // Number of states of a workload on a target.
  int count = 60;
  uint64_t seed = 1;
  bool each = false, print = false;
};

struct Drawn {
  std::string target, op, args, epilogue, dtype, steps;

  std::string Workload() const {
    return fmt::format("{} {} {} {} {}", target, op, args, epilogue, dtype);
  }
};

// Real sizes, beside the small ones of the library: tiles of many lanes, whole and uneven.
constexpr dag::OpCase kLargeCases[] = {
    {"matmul", "512,512,512"},
    {"matmul", "127,1024,333", "relu"},
    {"dense", "128,3072,768", "bias,relu"},
    {"conv2d_nhwc", "1,56,56,64,64,3,3,1,1", "bias,relu"},
    {"conv2d_nhwc", "1,56,56,128,64,1,1,2,0", "bias,relu"},
    {"conv2d_nchw", "1,35,35,288,48,5,5,1,2"},
    {"depthwise_conv2d_nhwc", "1,56,56,128,3,3,1,1", "bias,relu"},
    {"conv2d_transpose_nhwc", "1,16,16,128,256,4,4,2,1"},
    {"conv2d_winograd_nhwc", "1,14,14,256,256"},
    {"softmax", "4096,1000"},
    {"sum", "4096,4096,axis=0"},
    {"transpose", "2053,4099"},
    {"layer_norm", "1024,1024,one_pass=1"},
    {"max_pool2d_nchw", "8,112,112,64,3,3,2,1"},
    // Matrix units multiply these types.
    {"matmul", "512,512,512", "", ir::kFloat16},
    {"matmul", "784,2048,512", "relu", ir::kBFloat16},
    {"dense", "128,3072,768", "bias,relu", ir::kInt8},
    {"dense", "2048,2048,2048", "bias", ir::kFloat8E4M3},
    {"batch_matmul", "12,128,128,64", "", ir::kFloat16},
    {"conv2d_nhwc", "8,28,28,128,128,3,3,1,1", "bias,relu", ir::kFloat16},
    {"conv2d_nchw", "8,28,28,128,128,3,3,1,1", "", ir::kFloat16},
    {"attention", "8,256,64", "", ir::kFloat16}};

std::vector<dag::OpCase> Cases() {
  std::vector<dag::OpCase> cases(dag::SmallOpCases().begin(), dag::SmallOpCases().end());
  cases.insert(cases.end(), std::begin(kLargeCases), std::end(kLargeCases));
  return cases;
}

target::HardwareParams Hardware(const target::Target& target) {
  target::HardwareParams hardware;
  if (!target.is_gpu()) hardware.num_cores = 8;
  return hardware;
}

std::vector<std::vector<schedule::StepPtr>> Draw(const dag::DagPtr& dag,
                                                 const target::Target& target,
                                                 const Options& options) {
  const search::Task task(dag, target, Hardware(target), "[]");
  search::RandomPolicy policy(task, search::Parameters(), options.seed);
  std::vector<std::vector<schedule::StepPtr>> all;
  if (auto candidates = policy.Propose(options.count); candidates.ok()) {
    for (search::Candidate& candidate : *candidates) all.push_back(std::move(candidate.steps));
  }
  if (target.is_gpu()) return all;
  // Adds steps that no search takes.
  for (int i = 0; i < options.count; ++i) {
    const auto state =
        schedule::RandomSchedule(dag, options.seed + static_cast<uint64_t>(i), kRandomSteps);
    all.emplace_back(state.steps().begin(), state.steps().end());
  }
  return all;
}

StatusOr<dag::DagPtr> DagOf(const Drawn& drawn) {
  KILN_ASSIGN_OR_RETURN(const ir::Type dtype, ir::ParseType(drawn.dtype));
  return dag::BuildOp(drawn.op, drawn.args,
                      {.dtype = dtype, .epilogue = dag::SplitEpilogue(drawn.epilogue)});
}

StatusOr<std::vector<Drawn>> DrawAll(const Options& options) {
  std::vector<Drawn> all;
  for (const dag::OpCase& c : Cases()) {
    if (c.Name().find(options.only) == std::string::npos) continue;
    for (const char* target_text : kTargets) {
      Drawn drawn{target_text, c.op, c.args, c.epilogue, std::string(ir::TypeName(c.dtype)), ""};
      KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, DagOf(drawn));
      KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(target_text));
      for (const auto& steps : Draw(dag, target, options)) {
        drawn.steps = schedule::PrintSteps(steps);
        all.push_back(drawn);
      }
    }
  }
  return all;
}

StatusOr<std::vector<Drawn>> ReadStates(const std::string& path) {
  std::ifstream in(path);
  if (!in) return NotFound("cannot read '{}'; --save writes such a file", path);
  std::vector<Drawn> all;
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> fields = absl::StrSplit(line, '\t');
    if (fields.size() != 6) {
      return InvalidArgument("{}:{}: {} fields, expected 6", path, all.size() + 1, fields.size());
    }
    all.push_back({fields[0], fields[1], fields[2], fields[3], fields[4], fields[5]});
  }
  return all;
}

Status WriteStates(const std::string& path, const std::vector<Drawn>& all) {
  std::ofstream out(path);
  for (const Drawn& d : all) {
    out << fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", d.target, d.op, d.args, d.epilogue, d.dtype,
                       d.steps);
  }
  if (!out.flush()) return Internal("cannot write '{}'", path);
  return OkStatus();
}

struct Made {
  std::string program, code, features;
};

StatusOr<Made> Make(const Drawn& drawn) {
  KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, DagOf(drawn));
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(drawn.target));
  KILN_ASSIGN_OR_RETURN(const auto steps, schedule::ParseSteps(drawn.steps));
  KILN_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(dag, steps));
  KILN_ASSIGN_OR_RETURN(const ir::Program program, lower::Lower(state, {.gpu = target.is_gpu()}));
  Made made;
  made.program = ir::ProgramText(program);
  if (target.is_gpu()) {
    KILN_ASSIGN_OR_RETURN(codegen::CudaSource source, codegen::GenerateCuda(program));
    made.code = std::move(source.text);
  } else {
    KILN_ASSIGN_OR_RETURN(made.code, codegen::PrintLlvmIr(program, target, {.optimize = false}));
  }
  const FloatMatrix features = features::ExtractFeatures(program, target, Hardware(target),
                                                         device::FilledGpu({}, target.GpuArch()));
  made.features.assign(reinterpret_cast<const char*>(features.values().data()),
                       features.values().size() * sizeof(float));
  return made;
}

// Digests over the states of one workload.
class Digests {
 public:
  void Add(const Drawn& drawn, const Options& options) {
    StatusOr<Made> made = Make(drawn);
    if (!made.ok()) {
      ++refused_;
      made = Made{std::string(Message(made.status())), "", ""};
    }
    if (options.print) fmt::print("{}\n{}\n", made->program, made->code);
    if (options.each) {
      fmt::print("  {} {} {} {}\n", Xxh3Hex(made->program), Xxh3Hex(made->code),
                 Xxh3Hex(made->features), Xxh3Hex(drawn.steps));
    }
    ++states_;
    program_.Update(made->program);
    code_.Update(made->code);
    features_.Update(made->features);
  }

  void Print(const std::string& workload) {
    fmt::print("{}: {} states, {} refused; program {:.16} code {:.16} features {:.16}\n", workload,
               states_, refused_, program_.FinishHex(), code_.FinishHex(), features_.FinishHex());
    std::fflush(stdout);
  }

 private:
  int states_ = 0, refused_ = 0;
  Sha256 program_, code_, features_;
};

Status Run(const Options& options) {
  KILN_ASSIGN_OR_RETURN(const std::vector<Drawn> all,
                        options.states.empty() ? DrawAll(options) : ReadStates(options.states));
  if (!options.save.empty()) KILN_RETURN_IF_ERROR(WriteStates(options.save, all));
  std::optional<Digests> digests;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!digests) digests.emplace();
    digests->Add(all[i], options);
    if (i + 1 < all.size() && all[i + 1].Workload() == all[i].Workload()) continue;
    digests->Print(all[i].Workload());
    digests.reset();
  }
  fmt::print("{} states\n", all.size());
  return OkStatus();
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  kiln::Options options;
  CLI::App app("Digests of programs and code of many states, to compare two versions.");
  app.add_option("--save", options.save, "write the states to this file");
  app.add_option("--states", options.states, "take the states from this file");
  app.add_option("--only", options.only, "workloads whose name contains this");
  app.add_option("--count", options.count, "states drawn of each workload on each target");
  app.add_option("--seed", options.seed, "of the draws");
  app.add_flag("--each", options.each, "a line for each state too");
  app.add_flag("--print", options.print, "the program and the code of each state too");
  CLI11_PARSE(app, argc, argv);
  const kiln::Status status = kiln::Run(options);
  if (status.ok()) return 0;
  fmt::print(stderr, "state_digests: {}\n", kiln::Message(status));
  return 1;
}
