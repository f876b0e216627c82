// Names of iterators, made on demand from the relations.
#include <algorithm>

#include "compiler/schedule/state.h"

namespace kiln::schedule {
namespace {

// Appends an axis name without the characters that have a meaning in iterator names (state.h:
// IterName).
void AppendCleanAxisName(std::string_view name, std::string& result) {
  while (!name.empty()) {
    if (name.starts_with("outer") || name.starts_with("inner")) {
      result += name[0];
      name.remove_prefix(5);
      continue;
    }
    result += name[0] == '.' || name[0] == '@' ? '_' : name[0];
    name.remove_prefix(1);
  }
}

const std::string& AxisName(const Stage& stage, int32_t iter) {
  const std::vector<dag::Axis>& spatial = stage.op->axes();
  const size_t i = iter;
  return i < spatial.size() ? spatial[i].name : stage.op->reduce_axes()[i - spatial.size()].name;
}

int IndexAmongChildren(const Relation& relation, int32_t iter) {
  return static_cast<int>(std::find(relation.children.begin(), relation.children.end(), iter) -
                          relation.children.begin());
}

// Appends to `name` without a temporary string, because lowering names all loops of a program.
void AppendIterName(const Stage& stage, int32_t iter, std::string& name) {
  const int32_t number = stage.iters[iter].relation;
  if (number < 0) return AppendCleanAxisName(AxisName(stage, iter), name);
  const Relation& relation = stage.relations[number];
  if (relation.kind == Relation::kSplit) {
    AppendIterName(stage, relation.parents[0], name);
    name += '.';
    name += std::to_string(IndexAmongChildren(relation, iter));
    return;
  }
  // The only loop of a rank-0 stage.
  if (relation.parents.empty()) name += "unit";
  for (int32_t parent : relation.parents) {
    AppendIterName(stage, parent, name);
    name += '@';
  }
}

void CollectAxes(const Stage& stage, int32_t iter, std::vector<int>& out) {
  const int32_t relation = stage.iters[iter].relation;
  if (relation < 0) {
    out.push_back(iter);
    return;
  }
  for (int32_t parent : stage.relations[relation].parents) CollectAxes(stage, parent, out);
}

}  // namespace

std::string_view AnnotationName(Annotation annotation) {
  static constexpr std::string_view kNames[] = {
      "for",         "unroll",      "vectorize",  "parallel",    "vthread",
      "blockIdx.x",  "threadIdx.x", "blockIdx.y", "threadIdx.y", "blockIdx.z",
      "threadIdx.z", "tensorize",   "cluster"};
  return kNames[static_cast<int>(annotation)];
}

std::string IterName(const Stage& stage, int32_t iter) {
  std::string name;
  AppendIterName(stage, iter, name);
  return name;
}

std::string LoopName(const Stage& stage, int loop) {
  return IterName(stage, stage.loops[loop].iter);
}

int LoopLevel(const Stage& stage, int loop) {
  const int32_t iter = stage.loops[loop].iter;
  const int32_t relation = stage.iters[iter].relation;
  if (relation < 0 || stage.relations[relation].kind != Relation::kSplit) return -1;
  return IndexAmongChildren(stage.relations[relation], iter);
}

std::vector<int> AxesOf(const Stage& stage, int32_t iter) {
  std::vector<int> axes;
  CollectAxes(stage, iter, axes);
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

}  // namespace kiln::schedule
