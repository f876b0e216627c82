// A network cut into kernels: groups of nodes that are computed together, as TVM's operator fusion
// forms them (relay/transforms/fuse_ops.cc).
//
// A group has one node that the others lead to, and what that makes is all that others read. With
// PartitionOptions::second_outputs that node may have followers: functions of its value that other
// groups read beside it.
//   products   convolutions, matrix products, pools take the elementwise functions behind them in
//   reductions sums over axes take injective nodes before them and elementwise ones behind them in
//   injective  elementwise functions, broadcasts and rearrangements join among themselves
//   opaque     alone, or with PartitionOptions::attention with the products around it
// All nodes between two that join join with them: x in x sigmoid(x) is read twice, by one group.
#pragma once

#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "graph/node_dag.h"

namespace kiln::graph {

struct KernelGroup {
  std::vector<int> nodes;        // ascending
  int anchor = 0;                // of the nodes: the first product, if there is one; else the first
  std::vector<ValueId> outputs;  // what others read, ascending: a value before functions of it
  bool is_attention = false;     // attention.h; in what it computes numbers are no inputs
};

struct PartitionOptions {
  // Cheap elementwise functions that a product alone reads are computed where it reads them, as a
  // prologue, and rearrangements that leave rows of elements as they lie are taken in likewise. TVM
  // leaves both kernels of their own.
  bool prologues = false;
  // Where a product's result is read as it is and also, through cheap functions with numbers for each
  // channel, by products, the kernel that makes it makes both. TVM reads it again, in kernels of
  // their own.
  bool second_outputs = false;
  // A product, the softmax of it and the product of that are one group
  // (attention.h), for targets that have a kernel for them: the scores are
  // never in memory. TVM makes three.
  bool attention = false;
};

// Every node is in one group. Groups stand in an order in which they can run. Nodes whose output is
// a view of their input (OpDef::is_view) and that are in a group alone need no kernel; they are
// groups all the same. Cost: linear in nodes and reads.
std::vector<KernelGroup> PartitionIntoKernels(const Graph& graph,
                                              const PartitionOptions& options = {});

// Does nothing but say the shape anew?
bool IsView(const Graph& graph, const KernelGroup& group);

// Is what this node of the group makes an output that others of the group go on with?
bool IsStoredBetween(const Graph& graph, const KernelGroup& group, int node);

}  // namespace kiln::graph
