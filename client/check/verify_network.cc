#include "client/check/verify_network.h"

#include <algorithm>

#include "client/check/graph_of_file.h"
#include "client/check/kernel_values.h"
#include "client/check/reference_programs.h"
#include "client/check/run_kernel.h"
#include "client/compile/network_arrays.h"
#include "graph/evaluate.h"
#include "runner/compare.h"

namespace kiln::client {
namespace {

using ir::NDArray;
using runtime::Network;

// As the runners of trials compare outputs.
StatusOr<Verdict> Compared(const std::string& name, const NDArray& got, const NDArray& want,
                           const v1::Tolerance& tolerance) {
  runner::Argument argument{.name = name, .shape = want.shape()};
  KILN_ASSIGN_OR_RETURN(argument.dtype, runtime::ParseDType(ir::TypeName(want.type())));
  argument.elements = want.num_elements();
  argument.bytes = static_cast<int64_t>(want.bytes().size());
  const runner::Comparison comparison =
      runner::Compare(argument, got.bytes(), want.bytes(), tolerance);
  return Verdict{name, comparison.max_error, comparison.message};
}

class Verification {
 public:
  Verification(std::shared_ptr<const runtime::NetworkFile> file, const VerifyOptions& options,
               ReferencePrograms reference)
      : file_(std::move(file)), options_(options), reference_(std::move(reference)) {}

  StatusOr<VerifyReport> Run() {
    KILN_RETURN_IF_ERROR(CheckOutputs());
    if (options_.kernels) KILN_RETURN_IF_ERROR(CheckKernels());
    return std::move(report_);
  }

 private:
  const Network& network() const { return file_->network(); }

  Status CheckOutputs();
  Status CheckKernels();
  StatusOr<std::vector<NDArray>> WantedOutputs();
  StatusOr<Verdict> CheckKernel(size_t kernel, const std::vector<NDArray>& inputs,
                                const std::vector<NDArray>& want, const dag::Dag& dag);

  const std::shared_ptr<const runtime::NetworkFile> file_;
  const VerifyOptions& options_;
  ReferencePrograms reference_;
  VerifyReport report_;
};

StatusOr<std::vector<NDArray>> Verification::WantedOutputs() {
  if (network().graph_text.empty()) {
    KernelValues values(*file_, options_.inputs);
    for (size_t k = 0; k < network().kernels.size(); ++k) {
      KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, ComputationOf(network(), k));
      KILN_ASSIGN_OR_RETURN(const std::vector<NDArray> made,
                            reference_.Evaluate(dag, values.InputsOf(k, *dag)));
      values.SetOutputsOf(k, *dag, made);
    }
    return values.Outputs();
  }
  KILN_ASSIGN_OR_RETURN(const graph::Graph graph, GraphOfFile(file_));
  return graph::Evaluate(graph, options_.inputs,
                         [&](const dag::DagPtr& dag, std::span<const NDArray> inputs) {
                           return reference_.Evaluate(dag, inputs);
                         });
}

Status Verification::CheckOutputs() {
  KILN_ASSIGN_OR_RETURN(const auto executor, runtime::Executor::Load(file_, options_.executor));
  KILN_ASSIGN_OR_RETURN(const std::vector<NDArray> got, RunArrays(*executor, options_.inputs));
  std::map<size_t, NDArray> wanted = options_.expected;
  if (wanted.empty()) {
    KILN_ASSIGN_OR_RETURN(std::vector<NDArray> outputs, WantedOutputs());
    if (outputs.size() != got.size()) {
      return DataLoss("its graph has {} outputs, the network {}", outputs.size(), got.size());
    }
    for (size_t i = 0; i < outputs.size(); ++i) wanted[i] = std::move(outputs[i]);
  }
  for (const auto& [i, want] : wanted) {
    if (want.type() != got[i].type() || want.shape() != got[i].shape()) {
      return DataLoss("output {} is {}, what is expected of it {}", network().outputs[i].name,
                      graph::TypeText({got[i].type(), got[i].shape()}),
                      graph::TypeText({want.type(), want.shape()}));
    }
    KILN_ASSIGN_OR_RETURN(Verdict verdict,
                          Compared(network().outputs[i].name, got[i], want, options_.tolerance));
    report_.outputs.push_back(std::move(verdict));
  }
  return OkStatus();
}

// A kernel that does not run is wrong.
StatusOr<Verdict> Verification::CheckKernel(size_t kernel, const std::vector<NDArray>& inputs,
                                            const std::vector<NDArray>& want, const dag::Dag& dag) {
  const std::string& name = network().kernels[kernel].name;
  const auto got = RunKernel(*file_, kernel, dag, inputs, options_.executor);
  if (!got.ok()) return Verdict{name, 0, std::string(Message(got.status()))};
  Verdict verdict{.name = name, .max_error = 0, .problem = {}};
  for (size_t i = 0; i < want.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(const Verdict one,
                          Compared(name, (*got)[i], want[i], options_.tolerance));
    verdict.max_error = std::max(verdict.max_error, one.max_error);
    if (verdict.problem.empty()) verdict.problem = one.problem;
  }
  return verdict;
}

// Each reads what the references of those before it have made, so that one that is wrong does not
// make others so.
Status Verification::CheckKernels() {
  KernelValues values(*file_, options_.inputs);
  for (size_t k = 0; k < network().kernels.size(); ++k) {
    KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, ComputationOf(network(), k));
    const std::vector<NDArray> inputs = values.InputsOf(k, *dag);
    KILN_ASSIGN_OR_RETURN(const std::vector<NDArray> want, reference_.Evaluate(dag, inputs));
    KILN_ASSIGN_OR_RETURN(Verdict verdict, CheckKernel(k, inputs, want, *dag));
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
