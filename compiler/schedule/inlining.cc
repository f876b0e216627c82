#include "compiler/schedule/inlining.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "compiler/dag/body_size.h"
#include "compiler/dag/limits.h"

namespace kiln::schedule {
namespace {

// The body of a stage with all producers that are inlined into it.
struct Inside {
  dag::TreeSize tree;
  int height = 0;
};

// The reads of a stage through inlined stages: the number of places, the nodes of the values of its
// axes in all of them together, and the depth inside other bodies.
struct Outside {
  double copies = 0, axis_nodes = 0;
  int height = 0;
};

class Inlining {
 public:
  explicit Inlining(const State& state) : state_(state) {}

  Inside InsideOf(int stage) {
    const Stages stages = Reachable(stage, &dag::Dag::producers);
    absl::InlinedVector<Inside, 8> known(stages.size());
    // Producers come first.
    for (size_t i = 0; i < stages.size(); ++i) {
      const dag::BodySize& size = SizeOf(stages[i]);
      Inside& inside = known[i];
      inside = {size.tree, size.height};
      for (const dag::ReadSize& read : size.reads) {
        const size_t producer = PlaceOf(ProducerOf(stages[i], read), stages);
        if (producer == stages.size()) continue;
        const Inside& in = known[producer];
        inside.tree.nodes += read.count * in.tree.With(read.index.nodes);
        inside.tree.vars += read.count * in.tree.vars * read.index.vars;
        inside.height = std::max(inside.height, size.height + in.height);
      }
    }
    return known.back();
  }

  // `readers` is set to the number of stages with loops of their own into which the stage is
  // inlined.
  Outside OutsideOf(int stage, int& readers) {
    const Stages stages = Reachable(stage, &dag::Dag::consumers);
    absl::InlinedVector<Outside, 8> known(stages.size());
    readers = 0;
    // Readers come first.
    for (size_t i = stages.size(); --i > 0;) {
      Outside& outside = known[i];
      if (state_.attach(stages[i]).kind != Attach::kInlined) {
        outside = {1, 1, 0};
        ++readers;
      }
      const dag::BodySize& size = SizeOf(stages[i]);
      for (const dag::ReadSize& read : size.reads) {
        const size_t producer = PlaceOf(ProducerOf(stages[i], read), stages);
        if (producer == stages.size()) continue;
        Outside& in = known[producer];
        in.copies += read.count * outside.copies;
        in.axis_nodes +=
            read.count * (read.index.nodes * outside.copies + read.index.vars * outside.axis_nodes);
        in.height = std::max(in.height, outside.height + size.height);
      }
    }
    return known.front();
  }

 private:
  using Stages = absl::InlinedVector<int, 8>;
  using Neighbours = const std::vector<int>& (dag::Dag::*)(int) const;

  // Returns the stage and those that are reached from it through inlined stages, ascending. Readers
  // that are not inlined are among them, but only those producers that are inlined.
  Stages Reachable(int stage, Neighbours neighbours) const {
    const bool readers = neighbours == &dag::Dag::consumers;
    Stages found = {stage};
    Stages open = {stage};
    while (!open.empty()) {
      const int s = open.back();
      open.pop_back();
      for (int other : ((*state_.dag()).*neighbours)(s)) {
        const bool inlined = state_.attach(other).kind == Attach::kInlined;
        if (!inlined && !readers) continue;
        const auto place = std::lower_bound(found.begin(), found.end(), other);
        if (place != found.end() && *place == other) continue;
        found.insert(place, other);
        if (inlined) open.push_back(other);
      }
    }
    return found;
  }

  // Returns stages.size() if the stage is not among them.
  static size_t PlaceOf(int s, const Stages& stages) {
    const auto at = std::lower_bound(stages.begin(), stages.end(), s);
    return static_cast<size_t>((at != stages.end() && *at == s ? at : stages.end()) -
                               stages.begin());
  }

  const dag::BodySize& SizeOf(int s) const { return state_.stage(s).op->properties().size; }
  int ProducerOf(int s, const dag::ReadSize& read) const {
    return state_.dag()->node(s).inputs[static_cast<size_t>(read.slot)].op;
  }

  const State& state_;
};

}  // namespace

Status CheckInlinedSize(const State& state, int stage) {
  Inlining inlining(state);
  const Inside inside = inlining.InsideOf(stage);
  int readers = 0;
  const Outside outside = inlining.OutsideOf(stage, readers);
  const double nodes = inside.tree.nodes * outside.copies + inside.tree.vars * outside.axis_nodes;
  const double most = std::min(dag::kMaxInlinedNodes * readers, dag::kMaxInlinedNodesOfAll);
  if (nodes > most) {
    return InvalidArgument(
        "inlined it would add {:.3g} operations to the stages that read it, expected at most "
        "{:.0f}",
        nodes, most);
  }
  if (inside.height + outside.height > dag::kMaxInlinedHeight) {
    return InvalidArgument(
        "inlined it would make expressions of {} nested operations, expected at most {}",
        inside.height + outside.height, dag::kMaxInlinedHeight);
  }
  return OkStatus();
}

}  // namespace kiln::schedule
