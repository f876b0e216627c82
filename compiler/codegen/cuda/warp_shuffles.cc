#include "compiler/codegen/cuda/warp_shuffles.h"

#include <algorithm>
#include <map>
#include <vector>

#include "compiler/codegen/cuda/narrow_floats.h"
#include "compiler/codegen/cuda/types.h"

namespace kiln::codegen {
using ir::Expr;
using ir::Op;
using ir::Stmt;
using ir::Type;

void WarpShuffles::Emit(const WarpReduction& reduction) {
  for (Stmt store : reduction.first) {
    const std::string& tree = exprs_.buffer_name(store->slot);
    const std::string name = names_.Unique(tree + "_value");
    const std::string value = exprs_.PrintRaw(store->value()).text;
    blocks_.Line(fmt::format("{} {} = {};", CudaTypeName(store->value()->type), name, value));
    exprs_.HoldBuffer(store->slot, name);
  }
  const int64_t width = std::min(reduction.threads, kWarpThreads);
  Shuffle(reduction, width);
  const int64_t warps = reduction.threads / width;
  if (warps == 1) return;
  ExchangeBetweenWarps(reduction, warps);
  Shuffle(reduction, warps);
}

// The first thread of each warp stores the warp's value; each thread reads one of them.
void WarpShuffles::ExchangeBetweenWarps(const WarpReduction& reduction, int64_t warps) {
  const std::string& thread = scope_.name(reduction.thread);
  blocks_.Braced(fmt::format("if ({} % {} == 0) {{", thread, kWarpThreads), [&] {
    for (Stmt store : reduction.first) {
      blocks_.Line(fmt::format("{}[{} / {}] = {};", exprs_.buffer_name(store->slot), thread,
                               kWarpThreads, own(store->slot)));
    }
  });
  blocks_.Line("__syncthreads();");
  for (Stmt store : reduction.first) {
    blocks_.Line(fmt::format("{} = {}[{} % {}];", own(store->slot), exprs_.buffer_name(store->slot),
                             thread, warps));
  }
}

// value = value op value of the thread `step` further, for halving steps. What threads beyond the
// last partner get is never used.
void WarpShuffles::Shuffle(const WarpReduction& reduction, int64_t width) {
  for (int64_t step = width / 2; step > 0; step /= 2) {
    if (reduction.first.size() == 1) {
      Step(reduction, step, width);
    } else {
      blocks_.Braced("{", [&] { Step(reduction, step, width); });
    }
  }
}

// All values are exchanged before any changes.
void WarpShuffles::Step(const WarpReduction& reduction, int64_t step, int64_t width) {
  const bool is_one = reduction.first.size() == 1;
  std::map<int32_t, std::string> other;
  for (Stmt store : reduction.first) {
    std::string text = FromThread(store, step, width);
    if (!is_one) {
      const std::string name = own(store->slot) + "_other";
      blocks_.Line(
          fmt::format("const {} {} = {};", CudaTypeName(store->value()->type), name, text));
      text = name;
    }
    other[store->slot] = text;
  }
  for (Stmt store : reduction.level) {
    VisitLoads(store, [&](Expr load) {
      const Expr last = load->args().back();
      const bool is_own = last->op == Op::kVar && last->id == reduction.thread;
      exprs_.HoldLoad(load, is_own ? own(load->id) : other[load->id]);
    });
  }
  std::vector<std::string> values;
  for (Stmt store : reduction.level) values.push_back(exprs_.PrintRaw(store->value()).text);
  exprs_.ForgetLoads();
  for (size_t k = 0; k < values.size(); ++k) {
    const Stmt store = reduction.level[k];
    const std::string& name = own(store->slot);
    blocks_.Line(is_one ? fmt::format("{} = {};", name, values[k])
                        : fmt::format("const {} {}_next = {};", CudaTypeName(store->value()->type),
                                      name, values[k]));
  }
  for (Stmt store : reduction.level) {
    if (!is_one) blocks_.Line(fmt::format("{0} = {0}_next;", own(store->slot)));
  }
}

// The value of the thread `step` further.
std::string WarpShuffles::FromThread(Stmt store, int64_t step, int64_t width) const {
  const int64_t all = kernel_.block[0] * kernel_.block[1] * kernel_.block[2];
  const uint32_t mask = all < kWarpThreads ? (1U << all) - 1 : 0xffffffffU;
  const Type type = store->value()->type;
  const std::string& mine = own(store->slot);
  if (!NarrowFloatName(type).empty()) {
    return fmt::format(
        "{}{{static_cast<unsigned {}>(__shfl_down_sync({:#x}u, static_cast<int>({}.bits), {}, "
        "{}))}}",
        CudaTypeName(type), type.bits == 8 ? "char" : "short", mask, mine, step, width);
  }
  const bool is_small = type.is_bool() || (type.is_int() && type.bits < 32);
  const std::string sent = is_small ? fmt::format("static_cast<int>({})", mine) : mine;
  const std::string text =
      fmt::format("__shfl_down_sync({:#x}u, {}, {}, {})", mask, sent, step, width);
  return is_small ? fmt::format("static_cast<{}>({})", CudaTypeName(type), text) : text;
}

}  // namespace kiln::codegen
