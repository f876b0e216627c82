// Finds two agents (iterations of a parallel loop, GPU threads) that touch one element without an
// order between them, at least one of them writing.
//
// Time is cut into epochs. A region (one parallel loop, one kernel launch) begins with a new epoch.
// Agents of one region are grouped in blocks, which run one after the other here, but side by side
// on a device. A barrier starts a new epoch and orders the agents of its block. A barrier of warps
// also starts a new epoch and orders only the agents of each warp. Blocks that form a cluster run
// in step, and a barrier of the cluster orders the agents of all of them. Accesses outside of
// regions are always in order.
//
// The detection is exact for this order of execution. An element keeps its last writer, its first
// reader of the region (which is of another cluster if any reader is), its first reader since the
// last barrier of the cluster with one of another block, its first reader since the last barrier of
// the block with one of another warp, and its last two different readers.
#pragma once

#include <cstdint>
#include <vector>

namespace kiln::ir {

class RaceClock {
 public:
  void EnterRegion(int64_t agents_per_block, int64_t blocks_per_cluster = 1) {
    region_start_ = cluster_start_ = block_start_ = ++epoch_;
    agents_per_block_ = agents_per_block;
    agents_per_cluster_ = agents_per_block * blocks_per_cluster;
    is_in_region_ = true;
  }
  void LeaveRegion() {
    region_start_ = ++epoch_;
    is_in_region_ = false;
  }
  void WarpBarrier() { ++epoch_; }
  void Barrier() { block_start_ = ++epoch_; }
  void ClusterBarrier() { cluster_start_ = block_start_ = ++epoch_; }
  bool is_in_region() const { return is_in_region_; }

 private:
  friend class RaceShadow;
  // Number of agents of a warp.
  static constexpr int64_t kWarp = 32;
  int64_t WarpOf(int64_t agent) const {
    return agent / agents_per_block_ * agents_per_block_ + agent % agents_per_block_ / kWarp;
  }

  int64_t epoch_ = 1;
  int64_t region_start_ = 1;
  // Epoch that the last barrier of the cluster started.
  int64_t cluster_start_ = 1;
  // Epoch that the last barrier of the block started.
  int64_t block_start_ = 1;
  int64_t agents_per_block_ = 1, agents_per_cluster_ = 1;
  bool is_in_region_ = false;
};

// The history of accesses to one buffer's elements.
class RaceShadow {
 public:
  void Resize(size_t num_elements) { elements_.resize(num_elements); }
  void Clear() { elements_.assign(elements_.size(), Element()); }

  // Record an access. Return the agent whose earlier access is in conflict with it, or -1.
  int64_t Read(const RaceClock& clock, size_t element, int64_t agent) {
    Element& e = elements_[element];
    if (Conflicts(clock, e.writer, agent)) return e.writer.agent;
    const Access now{agent, clock.epoch_};
    if (e.first_reader.epoch < clock.region_start_) e.first_reader = now;
    if (e.cluster_reader.epoch < clock.cluster_start_) {
      e.cluster_reader = now;
    } else if (e.cluster_reader.agent / clock.agents_per_block_ !=
               agent / clock.agents_per_block_) {
      e.other_block_reader = now;
    }
    if (e.block_reader.epoch < clock.block_start_) {
      e.block_reader = now;
    } else if (clock.WarpOf(e.block_reader.agent) != clock.WarpOf(agent)) {
      e.other_warp_reader = now;
    }
    if (e.last_reader.agent != agent) e.other_reader = e.last_reader;
    e.last_reader = now;
    return -1;
  }
  int64_t Write(const RaceClock& clock, size_t element, int64_t agent) {
    Element& e = elements_[element];
    for (const Access& access :
         {e.writer, e.first_reader, e.cluster_reader, e.other_block_reader, e.block_reader,
          e.other_warp_reader, e.last_reader, e.other_reader}) {
      if (Conflicts(clock, access, agent)) return access.agent;
    }
    e.writer = {agent, clock.epoch_};
    return -1;
  }
  // Returns true if at most the last writer would be in conflict with a write.
  bool IsWriteAfterWriteOnly(const RaceClock& clock, size_t element, int64_t agent) const {
    const Element& e = elements_[element];
    return !Conflicts(clock, e.first_reader, agent) && !Conflicts(clock, e.cluster_reader, agent) &&
           !Conflicts(clock, e.other_block_reader, agent) &&
           !Conflicts(clock, e.block_reader, agent) &&
           !Conflicts(clock, e.other_warp_reader, agent) &&
           !Conflicts(clock, e.last_reader, agent) && !Conflicts(clock, e.other_reader, agent);
  }

 private:
  struct Access {
    int64_t agent = -1;
    int64_t epoch = 0;
  };
  struct Element {
    Access writer, first_reader, cluster_reader, other_block_reader, block_reader,
        other_warp_reader, last_reader, other_reader;
  };

  static bool Conflicts(const RaceClock& clock, const Access& earlier, int64_t agent) {
    if (earlier.epoch < clock.region_start_ || earlier.agent == agent) return false;
    if (earlier.agent / clock.agents_per_block_ == agent / clock.agents_per_block_) {
      const bool is_warp = clock.WarpOf(earlier.agent) == clock.WarpOf(agent);
      return earlier.epoch >= (is_warp ? clock.epoch_ : clock.block_start_);
    }
    if (earlier.agent / clock.agents_per_cluster_ == agent / clock.agents_per_cluster_)
      return earlier.epoch >= clock.cluster_start_;
    return true;
  }

  std::vector<Element> elements_;
};

}  // namespace kiln::ir
