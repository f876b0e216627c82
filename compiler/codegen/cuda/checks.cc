#include "compiler/codegen/cuda/checks.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "compiler/codegen/cuda/shared.h"
#include "compiler/codegen/cuda/visits.h"
#include "compiler/instructions/computed_factor.h"
#include "compiler/instructions/matrix_unit.h"
#include "compiler/ir/traverse.h"
#include "compiler/target/math.h"

namespace kiln::codegen {
namespace {
using ir::Expr;
using ir::LoopKind;
using ir::Stmt;
using ir::StmtKind;

constexpr std::array<int64_t, 3> kMaxBlock = {1024, 1024, 64};
constexpr std::array<int64_t, 3> kMaxGrid = {INT32_MAX, 65535, 65535};
constexpr std::string_view kAxes = "xyz";
constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kMaxLocalBytes = 512 << 10;
constexpr int64_t kMaxParameters = 4096 / 8;
constexpr int64_t kMaxCluster = 8;  // 16 exist on some GPUs, for those who ask
constexpr int64_t kMany = int64_t{1} << 40;

void FindMatrixUnits(const ir::Program& program, Stmt stmt,
                     std::set<const instructions::MatrixUnit*>& units) {
  if (stmt->kind == StmtKind::kStore && instructions::UsesMatrixUnits(program, stmt)) {
    const Expr product = instructions::AddedBy(stmt);
    const instructions::MatrixUnit* const unit =
        product == nullptr ? nullptr : instructions::UnitOf(product);
    if (unit != nullptr) units.insert(unit);
  }
  for (Stmt child : stmt->children()) FindMatrixUnits(program, child, units);
}

Status CheckMatrixUnits(const ir::Program& program, const ir::Kernel& kernel,
                        const target::Target& target) {
  std::set<const instructions::MatrixUnit*> units;
  FindMatrixUnits(program, kernel.body, units);
  for (const instructions::MatrixUnit* unit : units) {
    const int arch = target.GpuArch();
    if (arch > 0 && arch < unit->first_arch) {
      return InvalidArgument("it uses matrix units as they are from sm_{} on, the target is sm_{}",
                             unit->first_arch, arch);
    }
    if (unit->rounds && !target::AllowsTf32(target)) {
      return InvalidArgument(
          "matrix units round factors of its products to TF32, which a target allows by "
          "-math=tf32");
    }
  }
  return OkStatus();
}

class Checker {
 public:
  Checker(const ir::Program& program, const ir::Kernel& kernel,
          const target::HardwareParams& hardware)
      : program_(program),
        kernel_(kernel),
        hardware_(hardware),
        // The rows and columns of a tile of matrix units: registers limit them.
        max_vthread_(
            instructions::UsesMatrixUnits(program, kernel.body) ? 0 : hardware.max_vthread_extent),
        varies_(program.vars.size()) {}

  Status Run() {
    KILN_RETURN_IF_ERROR(CheckLaunch());
    KILN_RETURN_IF_ERROR(CheckShared());
    KILN_RETURN_IF_ERROR(Check(kernel_.body, 1, nullptr));
    return CheckLocal();
  }

 private:
  Status CheckLaunch() const {
    int64_t threads = 1;
    if (kernel_.cluster > kMaxCluster || (kernel_.cluster & (kernel_.cluster - 1)) != 0) {
      return InvalidArgument("a cluster has {} blocks, expected 2, 4 or 8", kernel_.cluster);
    }
    for (size_t i = 0; i < 3; ++i) {
      if (kernel_.block[i] > kMaxBlock[i]) {
        return InvalidArgument("a block has {} threads along {}, at most {} can be",
                               kernel_.block[i], kAxes[i], kMaxBlock[i]);
      }
      const int64_t blocks = kernel_.grid[i] * (i == 0 ? kernel_.cluster : 1);
      if (blocks > kMaxGrid[i]) {
        return InvalidArgument("the grid has {} blocks along {}, at most {} can be", blocks,
                               kAxes[i], kMaxGrid[i]);
      }
      threads *= kernel_.block[i];
    }
    threads += CopyingThreads(program_, kernel_);
    const int64_t limit = hardware_.max_threads_per_block > 0
                              ? std::min<int64_t>(hardware_.max_threads_per_block, kMaxThreads)
                              : kMaxThreads;
    if (threads > limit) {
      return InvalidArgument("a block has {} threads, at most {} can be: bind smaller loops",
                             threads, limit);
    }
    if (program_.num_args() > kMaxParameters) {
      return InvalidArgument("the program has {} arguments, a kernel takes at most {}",
                             program_.num_args(), kMaxParameters);
    }
    return OkStatus();
  }

  Status CheckShared() const {
    const SharedLayout layout = LayOutShared(program_, kernel_);
    const int64_t limit = hardware_.max_shared_memory_per_block_bytes;
    if (limit <= 0 || layout.bytes <= limit) return OkStatus();
    return InvalidArgument(
        "a block needs {} bytes of shared memory, there are {}: make the tiles smaller",
        layout.bytes, limit);
  }

  Status CheckLocal() const {
    const int64_t limit = hardware_.max_local_memory_per_block_bytes > 0
                              ? std::min(hardware_.max_local_memory_per_block_bytes, kMaxLocalBytes)
                              : kMaxLocalBytes;
    if (local_bytes_ <= limit) return OkStatus();
    return InvalidArgument(
        "a thread needs {} bytes of local buffers, at most {} can be: make the tiles smaller",
        local_bytes_, limit);
  }

  // condition: the innermost one around that threads may disagree about.
  Status Check(Stmt s, int64_t vthreads, Expr condition) {
    switch (s->kind) {
      case StmtKind::kFor: {
        if (s->loop_kind >= LoopKind::kCluster && s->extent > 1)
          varies_[static_cast<size_t>(s->var)] = true;
        if (s->loop_kind == LoopKind::kVThread) {
          vthreads = std::min(vthreads * std::min(s->extent, kMany), kMany);
          if (max_vthread_ > 0 && vthreads > max_vthread_) {
            return InvalidArgument("virtual thread loops have {} iterations, at most {} may be",
                                   vthreads, max_vthread_);
          }
        }
        break;
      }
      case StmtKind::kIf:
        if (Varies(s->condition())) condition = s->condition();
        break;
      case StmtKind::kBarrier:
      case StmtKind::kCommit:
        if (condition == nullptr) return OkStatus();
        return InvalidArgument(
            "a barrier stands under a condition that differs between the threads of a block or the "
            "blocks of a cluster: some would wait for ever");
      case StmtKind::kAlloc: {
        const ir::Buffer& buffer = program_.buffers[static_cast<size_t>(s->slot)];
        if (buffer.scope == ir::Scope::kLocal)
          local_bytes_ = std::min(local_bytes_ + std::min(buffer.bytes(), kMany), kMany);
        break;
      }
      case StmtKind::kStore:
      case StmtKind::kSeq:
      case StmtKind::kInstruction:
        break;
    }
    for (Stmt child : s->children()) KILN_RETURN_IF_ERROR(Check(child, vthreads, condition));
    return OkStatus();
  }

  // Loads count as differing, except of inputs at places all threads agree on.
  bool Varies(Expr e) const {
    bool result = false;
    ir::Visit(e, [&](Expr node) {
      if (node->op == ir::Op::kVar) result |= varies_[static_cast<size_t>(node->id)];
      if (node->op == ir::Op::kLoad) {
        result |= program_.buffers[static_cast<size_t>(node->id)].scope != ir::Scope::kInput;
      }
    });
    return result;
  }

  const ir::Program& program_;
  const ir::Kernel& kernel_;
  const target::HardwareParams& hardware_;
  const int64_t max_vthread_;  // 0: any
  std::vector<bool> varies_;   // variables that differ between the threads of a block or cluster
  int64_t local_bytes_ = 0;
};
}  // namespace

Status CheckCudaTarget(const ir::Program& program, const target::Target& target) {
  const int arch = target.GpuArch();
  for (const ir::Kernel& kernel : program.kernels) {
    const Status units = CheckMatrixUnits(program, kernel, target);
    if (!units.ok()) return InvalidArgument("kernel '{}': {}", kernel.name, Message(units));
    if (arch > 0 && arch != ir::kWarpgroupArch &&
        instructions::UsesMatrixUnits(program, kernel.body, ir::MatrixUnitScope::kWarpgroup)) {
      return InvalidArgument(
          "kernel '{}': four warps together use matrix units as only sm_{} has them, the target is "
          "sm_{}",
          kernel.name, ir::kWarpgroupArch, arch);
    }
    if (kernel.cluster <= 1 || arch == 0 || target.HasClusters()) continue;
    return InvalidArgument(
        "kernel '{}': its blocks form clusters of {}, which exist from sm_{} on, the target is "
        "sm_{}",
        kernel.name, kernel.cluster, target::kFirstArchWithClusters, arch);
  }
  return OkStatus();
}

Status CheckCudaProgram(const ir::Program& program, const target::HardwareParams& hardware,
                        const target::Target& target) {
  if (target.is_gpu()) KILN_RETURN_IF_ERROR(CheckCudaTarget(program, target));
  for (const ir::Kernel& kernel : program.kernels) {
    const Status status = Checker(program, kernel, hardware).Run();
    if (!status.ok()) return InvalidArgument("kernel '{}': {}", kernel.name, Message(status));
  }
  return OkStatus();
}

}  // namespace kiln::codegen
