// Workloads by name, for commands that work on many: the layers of a ResNet-18, by whose keys old
// logs are understood, and what a device is tested with.
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
  std::string Description() const;  // "conv2d_nhwc 1,7,7,512,512,3,3,1,1 + bias + relu"
};

// The 24 tasks of a ResNet-18, NHWC, batch 1, in the order of the well-known log of them.
std::span<const KnownWorkload> Resnet18Tasks();
// What `kiln conformance` runs: 12 layers, products, reductions, and odd shapes.
std::span<const KnownWorkload> ConformanceWorkloads();
// The same for matrix units: products and convolutions of this type.
std::vector<KnownWorkload> MatrixWorkloads(const char* dtype);

// A computation of the lists above with what records say of it: with inputs as they are, and with
// weights packed (packed_inputs.h).
struct KnownComputation {
  const KnownWorkload* workload;
  std::string id, key;  // workload_id.h, workload_key.h
  std::string text;     // text.h
  double flop_count;
};
// Each computation once for each of its keys (WorkloadKeys), in the order of the lists.
const std::vector<KnownComputation>& KnownComputations();
// Those that bear the key.
std::vector<const KnownComputation*> KnownByKey(std::string_view workload_key);

}  // namespace kiln::dag
