#include "client/check/verify_network.h"

#include <algorithm>
#include <cmath>

#include "client/check/graph_of_file.h"
#include "client/check/kernel_values.h"
#include "client/check/reference_programs.h"
#include "client/check/run_kernel.h"
#include "client/compile/network_arrays.h"
#include "compiler/dag/online_variant.h"
#include "compiler/dag/text.h"
#include "graph/evaluate.h"
#include "runner/compare.h"
#include "runtime/dtype.h"
#include "scheduler/values/answer_tolerance.h"

namespace kiln::client {
namespace {

using ir::NDArray;
using runtime::Network;

// Returns the computation as a program with an online softmax evaluates it; the computation itself
// if it is no softmax chain.
dag::DagPtr VariantOf(const dag::DagPtr& dag) {
  const auto variant = dag::OnlineVariant(*dag);
  return variant.ok() ? *variant : dag;
}

using Online = absl::FunctionRef<StatusOr<NDArray>()>;

class Verification {
 public:
  Verification(std::shared_ptr<const runtime::NetworkFile> file, const VerifyOptions& options,
               ReferencePrograms reference)
      : file_(std::move(file)),
        options_(options),
        reference_(std::move(reference)),
        may_be_online_(file_->network().target.kind == "cuda") {}

  StatusOr<VerifyReport> Run() {
    KILN_RETURN_IF_ERROR(CheckOutputs());
    if (options_.kernels) KILN_RETURN_IF_ERROR(CheckKernels());
    return std::move(report_);
  }

 private:
  const Network& network() const { return file_->network(); }

  StatusOr<v1::Tolerance> ToleranceOfKernel(const dag::Dag& dag) const;
  // The tolerance of an output of that type.
  StatusOr<v1::Tolerance> ToleranceOfOutput(ir::Type type) const;
  Status CheckOutputs();
  Status CheckKernels();
  // `is_online`: returns the outputs of kernels that compute softmax online.
  StatusOr<std::vector<NDArray>> WantedOutputs(bool is_online);
  StatusOr<Verdict> CheckKernel(size_t kernel, const std::vector<NDArray>& inputs,
                                const std::vector<NDArray>& want, const dag::DagPtr& dag);

  const std::shared_ptr<const runtime::NetworkFile> file_;
  const VerifyOptions& options_;
  ReferencePrograms reference_;
  // Only GPUs compute softmax online.
  const bool may_be_online_;
  VerifyReport report_;
};

StatusOr<v1::Tolerance> Verification::ToleranceOfKernel(const dag::Dag& dag) const {
  return scheduler::AnswerTolerance(options_.tolerance, dag::PrintDag(dag), network().target.text);
}

void TakeLarger(const v1::Tolerance& other, v1::Tolerance& most) {
  most.set_relative(std::max(most.relative(), other.relative()));
  most.set_absolute(std::max(most.absolute(), other.absolute()));
}

// Adds the tolerances of results in float types of fewer bytes than `type`, which is a float type.
Status AddNarrowResults(const dag::Dag& dag, ir::Type type, const v1::Tolerance& asked,
                        v1::Tolerance& most) {
  for (int op = 0; op < dag.size(); ++op) {
    const ir::Type made = dag.op(op).type();
    if (!dag.is_output(op) || !made.is_float() || made.bytes() >= type.bytes()) continue;
    KILN_ASSIGN_OR_RETURN(const runtime::DType dtype, runtime::ParseDType(ir::TypeName(made)));
    TakeLarger(runner::EffectiveTolerance(dtype, asked), most);
  }
  return OkStatus();
}

// Rounding errors of kernels have either sign: together they grow with the root of the number of
// kernels that round. An output of float32 that kernels of 16 bits have made is as exact as their
// results are.
StatusOr<v1::Tolerance> Verification::ToleranceOfOutput(ir::Type type) const {
  v1::Tolerance most = options_.tolerance, narrow;
  int rounding = 0;
  for (size_t k = 0; k < network().kernels.size(); ++k) {
    KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, ComputationOf(network(), k));
    KILN_ASSIGN_OR_RETURN(const v1::Tolerance tolerance, ToleranceOfKernel(*dag));
    rounding += tolerance.absolute() > options_.tolerance.absolute();
    TakeLarger(tolerance, most);
    if (type.is_float())
      KILN_RETURN_IF_ERROR(AddNarrowResults(*dag, type, options_.tolerance, narrow));
  }
  const double grown = std::sqrt(std::max(rounding, 1));
  if (options_.tolerance.relative() == 0) most.set_relative(most.relative() * grown);
  if (options_.tolerance.absolute() == 0) most.set_absolute(most.absolute() * grown);
  TakeLarger(narrow, most);
  return most;
}

StatusOr<std::vector<NDArray>> Verification::WantedOutputs(bool is_online) {
  const auto evaluate = [&](const dag::DagPtr& dag, std::span<const NDArray> inputs) {
    return reference_.Evaluate(is_online ? VariantOf(dag) : dag, inputs);
  };
  if (network().graph_text.empty()) {
    KernelValues values(*file_, options_.inputs);
    for (size_t k = 0; k < network().kernels.size(); ++k) {
      KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, ComputationOf(network(), k));
      KILN_ASSIGN_OR_RETURN(const std::vector<NDArray> made,
                            evaluate(dag, values.InputsOf(k, *dag)));
      values.SetOutputsOf(k, *dag, made);
    }
    return values.Outputs();
  }
  KILN_ASSIGN_OR_RETURN(const graph::Graph graph, GraphOfFile(file_));
  return graph::Evaluate(graph, options_.inputs, evaluate);
}

Status Verification::CheckOutputs() {
  KILN_ASSIGN_OR_RETURN(const auto executor, runtime::Executor::Load(file_, options_.executor));
  KILN_ASSIGN_OR_RETURN(const std::vector<NDArray> got, RunArrays(*executor, options_.inputs));
  std::map<size_t, NDArray> wanted = options_.expected;
  const bool are_given = !wanted.empty();
  if (!are_given) {
    KILN_ASSIGN_OR_RETURN(std::vector<NDArray> outputs, WantedOutputs(/*is_online=*/false));
    if (outputs.size() != got.size()) {
      return DataLoss("its graph has {} outputs, the network {}", outputs.size(), got.size());
    }
    for (size_t i = 0; i < outputs.size(); ++i) wanted[i] = std::move(outputs[i]);
  }
  // Evaluated once, when it is needed.
  std::vector<NDArray> online;
  for (const auto& entry : wanted) {
    const size_t i = entry.first;
    const NDArray& want = entry.second;
    if (want.type() != got[i].type() || want.shape() != got[i].shape()) {
      return DataLoss("output {} is {}, expected {}", network().outputs[i].name,
                      graph::TypeText({got[i].type(), got[i].shape()}),
                      graph::TypeText({want.type(), want.shape()}));
    }
    const auto variant = [&]() -> StatusOr<NDArray> {
      if (online.empty()) {
        KILN_ASSIGN_OR_RETURN(online, WantedOutputs(/*is_online=*/true));
      }
      return online[i];
    };
    const Online of_variant = variant;
    KILN_ASSIGN_OR_RETURN(const v1::Tolerance tolerance, ToleranceOfOutput(want.type()));
    KILN_ASSIGN_OR_RETURN(Verdict verdict,
                          JudgeOutput(network().outputs[i].name, got[i], want, tolerance,
                                      may_be_online_ && !are_given ? &of_variant : nullptr));
    report_.outputs.push_back(std::move(verdict));
  }
  return OkStatus();
}

// A kernel that does not run is wrong.
StatusOr<Verdict> Verification::CheckKernel(size_t kernel, const std::vector<NDArray>& inputs,
                                            const std::vector<NDArray>& want,
                                            const dag::DagPtr& dag) {
  const std::string& name = network().kernels[kernel].name;
  const auto got = RunKernel(*file_, kernel, *dag, inputs, options_.executor);
  if (!got.ok()) return Verdict{name, 0, std::string(Message(got.status()))};
  KILN_ASSIGN_OR_RETURN(const v1::Tolerance tolerance, ToleranceOfKernel(*dag));
  Verdict verdict{.name = name, .max_error = 0, .problem = {}};
  for (size_t i = 0; i < want.size(); ++i) {
    const auto variant = [&]() -> StatusOr<NDArray> {
      KILN_ASSIGN_OR_RETURN(const std::vector<NDArray> outputs,
                            reference_.Evaluate(VariantOf(dag), inputs));
      return outputs[i];
    };
    const Online of_variant = variant;
    KILN_ASSIGN_OR_RETURN(const Verdict one, JudgeOutput(name, (*got)[i], want[i], tolerance,
                                                         may_be_online_ ? &of_variant : nullptr));
    verdict.online += one.online;
    verdict.max_error = std::max(verdict.max_error, one.max_error);
    if (verdict.problem.empty()) verdict.problem = one.problem;
  }
  return verdict;
}

// Each kernel reads the reference outputs of the kernels before it, so that one wrong kernel does
// not make others wrong.
Status Verification::CheckKernels() {
  KernelValues values(*file_, options_.inputs);
  for (size_t k = 0; k < network().kernels.size(); ++k) {
    KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, ComputationOf(network(), k));
    const std::vector<NDArray> inputs = values.InputsOf(k, *dag);
    KILN_ASSIGN_OR_RETURN(const std::vector<NDArray> want, reference_.Evaluate(dag, inputs));
    KILN_ASSIGN_OR_RETURN(Verdict verdict, CheckKernel(k, inputs, want, dag));
    report_.kernels.push_back(std::move(verdict));
    values.SetOutputsOf(k, *dag, want);
  }
  return OkStatus();
}

}  // namespace

bool VerifyReport::AllRight() const {
  const auto right = [](const Verdict& verdict) { return verdict.problem.empty(); };
  return std::ranges::all_of(outputs, right) && std::ranges::all_of(kernels, right);
}

StatusOr<VerifyReport> VerifyNetwork(const std::shared_ptr<const runtime::NetworkFile>& file,
                                     const VerifyOptions& options) {
  KILN_ASSIGN_OR_RETURN(ReferencePrograms reference, ReferencePrograms::Make());
  return Verification(file, options, std::move(reference)).Run();
}

}  // namespace kiln::client
