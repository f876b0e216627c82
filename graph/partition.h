// Cuts a network into kernels: groups of nodes that are computed together, as TVM's operator fusion
// forms them (relay/transforms/fuse_ops.cc).
//
// All nodes of a group lead to one node, and other groups read only that node's value. With
// PartitionOptions::second_outputs that node may have followers: functions of its value that other
// groups read too.
//   products   convolutions, matrix products, pools take in elementwise functions after them
//   reductions sums over axes take in injective nodes before them and elementwise ones after them
//   injective  elementwise functions, broadcasts and rearrangements join each other
//   opaque     alone, or with PartitionOptions::attention with the products around it
// If two nodes join, all nodes between them join too: one group reads x twice in x sigmoid(x).
#pragma once

#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "graph/node_dag.h"

namespace kiln::graph {

struct KernelGroup {
  // Ascending.
  std::vector<int> nodes;
  // The first product of the nodes if there is one, otherwise the first node.
  int anchor = 0;
  // Values that others read, ascending: a value before functions of it.
  std::vector<ValueId> outputs;
  // True for attention (attention.h). Numbers are no inputs of its computation.
  bool is_attention = false;
};

struct PartitionOptions {
  // True: cheap elementwise functions that only a product reads are computed where it reads them,
  // as a prologue. Rearrangements that leave rows of elements as they lie are taken in likewise.
  // TVM leaves both in kernels of their own.
  bool prologues = false;
  // True: if a product's result is read directly, and products also read cheap functions of it with
  // numbers for each channel, one kernel makes both values. TVM reads the result again, in kernels
  // of their own.
  bool second_outputs = false;
  // True: a product, its softmax and the product of that are one group (attention.h), for targets
  // that have a kernel for it: the scores are never in memory. TVM makes three groups.
  bool attention = false;
};

// Returns groups such that every node is in one of them, in an order in which they can run. A group
// whose output is only a view of its input (OpDef::is_view) needs no kernel, and is a group all the
// same. Cost: linear in nodes and reads.
std::vector<KernelGroup> PartitionIntoKernels(const Graph& graph,
                                              const PartitionOptions& options = {});

// Returns whether the group only gives another shape.
bool IsView(const Graph& graph, const KernelGroup& group);

// Returns whether this node of the group makes an output that other nodes of the group use too.
bool IsStoredBetween(const Graph& graph, const KernelGroup& group, int node);

}  // namespace kiln::graph
