// Workloads by name, for commands that work on many: the layers of a ResNet-18, whose keys make old
// logs readable, and the workloads with which a device is tested.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"

namespace kiln::dag {

struct KnownWorkload {
  const char* op;
  const char* args;
  const char* epilogue = "";
  const char* dtype = "float32";

  StatusOr<DagPtr> Build() const;
  // Returns "conv2d_nhwc 1,7,7,512,512,3,3,1,1 + bias + relu".
  std::string Description() const;
};

// The 24 tasks of a ResNet-18, NHWC, batch 1, in the order of the well-known log of them.
std::span<const KnownWorkload> Resnet18Tasks();
// Workloads of `kiln conformance`: 12 layers, products, reductions, and odd shapes.
std::span<const KnownWorkload> ConformanceWorkloads();
// Workloads of `kiln conformance` for matrix units: products and convolutions of this type.
std::vector<KnownWorkload> MatrixWorkloads(const char* dtype);

// A computation of the lists above with its identity in records: with plain inputs, or with packed
// weights (packed_inputs.h).
struct KnownComputation {
  const KnownWorkload* workload;
  // The identity (workload_id.h) and the key (workload_key.h).
  std::string id, key;
  // The text form (text.h).
  std::string text;
  double flop_count;
};
// Returns each computation once for each of its keys (WorkloadKeys), in the order of the lists.
const std::vector<KnownComputation>& KnownComputations();
// Returns the computations that have the key.
std::vector<const KnownComputation*> KnownByKey(std::string_view workload_key);

}  // namespace kiln::dag
