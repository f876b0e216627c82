#include "compiler/ir/interpreter.h"

#include <algorithm>
#include <deque>
#include <numeric>

#include "base/numbers/integers.h"
#include "compiler/ir/evaluate.h"
#include "compiler/ir/race_detector.h"

namespace kiln::ir {
namespace {

constexpr int64_t kMaxThreads = 1024, kMaxCluster = 16;

bool IsBound(LoopKind kind) { return kind >= LoopKind::kBlockX; }

// A statement with its expressions compiled.
struct Step {
  Stmt stmt;
  std::vector<CompiledExpr> exprs;
  std::vector<Step> children;
};

Step Compile(Stmt stmt) {
  Step step{stmt, {}, {}};
  step.exprs.reserve(stmt->num_exprs);
  for (Expr e : stmt->exprs()) step.exprs.emplace_back(e);
  step.children.reserve(stmt->num_children);
  for (Stmt child : stmt->children()) step.children.push_back(Compile(child));
  return step;
}

bool HasBoundLoop(Stmt s) {
  if (s->kind == StmtKind::kFor && IsBound(s->loop_kind)) return true;
  return std::ranges::any_of(s->children(), HasBoundLoop);
}

// The elements of a buffer. A local buffer has a copy for each thread of a block, one behind the
// other. A shared buffer has a copy for each block of a cluster.
struct Storage {
  const Buffer* buffer = nullptr;
  Type type;
  NDArray* array = nullptr;
  NDArray own;
  // Number of elements of one copy.
  int64_t num_elements = 0;
  // Number of threads that share a copy. 0: all threads share one.
  int64_t threads_per_copy = 0;
  // The buffer is allocated inside the current parallel iteration.
  bool is_private = false;
  // Flags of the elements of every copy. Empty for an input.
  std::vector<uint8_t> is_written;
  RaceShadow shadow;
  // Shared buffers: the block or cluster whose accesses the shadow holds.
  int64_t unit = 0;
};

class Machine : public LoadSource {
 public:
  Machine(const Program& program, const InterpreterOptions& options)
      : program_(program), options_(options), storage_(program.buffers.size()) {}

  Status Run(std::span<NDArray* const> arguments) {
    KILN_RETURN_IF_ERROR(BindArguments(arguments));
    for (const Kernel& kernel : program_.kernels) {
      KILN_RETURN_IF_ERROR(Annotate(RunKernel(kernel), fmt::format("kernel '{}'", kernel.name)));
    }
    return options_.check_outputs_written ? CheckOutputsWritten() : OkStatus();
  }

  Status Load(int32_t slot, std::span<const int64_t> indices, Value* value) override {
    Storage& storage = storage_[static_cast<size_t>(slot)];
    const int64_t flat = Flatten(*storage.buffer, indices);
    if (flat < 0) return OutOfBounds("load", *storage.buffer, indices);
    const int64_t at = PlaceOf(storage, flat);
    if (storage.buffer->scope == Scope::kCluster && indices[0] != thread_ / threads_of_block_)
      read_elsewhere_ = slot;
    if (!storage.is_written.empty()) {
      if (!storage.is_written[static_cast<size_t>(at)]) {
        return Fail(fmt::format("load of {}{}, which has not been written", storage.buffer->name,
                                ShapeText(indices)));
      }
      if (MustWatch(storage)) {
        const int64_t other = storage.shadow.Read(clock_, static_cast<size_t>(at), agent());
        if (other >= 0) return Race("load", storage, indices, other);
      }
    }
    *value = storage.array->Get(at);
    return OkStatus();
  }

 private:
  // ---- memory

  Status BindArguments(std::span<NDArray* const> arguments) {
    size_t next = 0;
    for (size_t i = 0; i < storage_.size(); ++i) {
      Storage& storage = storage_[i];
      const Buffer& buffer = program_.buffers[i];
      storage.buffer = &buffer;
      storage.type = buffer.type;
      storage.num_elements = buffer.num_elements();
      if (buffer.scope == Scope::kInput || buffer.scope == Scope::kOutput) {
        if (next == arguments.size())
          return InvalidArgument("argument {} ('{}') is missing", next, buffer.name);
        storage.array = arguments[next++];
        if (storage.array->type() != buffer.type || storage.array->shape() != buffer.shape) {
          return InvalidArgument("argument {} ('{}') is {}{}, expected {}{}", next - 1, buffer.name,
                                 TypeName(storage.array->type()), ShapeText(storage.array->shape()),
                                 TypeName(buffer.type), ShapeText(buffer.shape));
        }
        if (buffer.scope == Scope::kInput) continue;
      } else if (buffer.scope == Scope::kWorkspace) {
        KILN_RETURN_IF_ERROR(MakeElements(storage, 1));
      } else {
        continue;
      }
      storage.is_written.assign(static_cast<size_t>(storage.num_elements), 0);
      if (options_.check_races) storage.shadow.Resize(static_cast<size_t>(storage.num_elements));
    }
    if (next == arguments.size()) return OkStatus();
    return InvalidArgument("{} arguments, the program takes {}", arguments.size(), next);
  }

  Status MakeElements(Storage& storage, int64_t copies) {
    const int64_t elements = storage.num_elements * copies;
    bytes_ += elements * storage.type.bytes();
    if (bytes_ > options_.max_bytes) {
      return ResourceExhausted("the buffers of the program need more than {} bytes",
                               options_.max_bytes);
    }
    storage.own = NDArray(storage.type, {elements});
    storage.array = &storage.own;
    return OkStatus();
  }

  int64_t PlaceOf(const Storage& storage, int64_t flat) const {
    if (storage.threads_per_copy == 0) return flat;
    return thread_ / storage.threads_per_copy * storage.num_elements + flat;
  }

  static int64_t Flatten(const Buffer& buffer, std::span<const int64_t> indices) {
    int64_t flat = 0;
    for (size_t i = 0; i < indices.size(); ++i) {
      if (static_cast<uint64_t>(indices[i]) >= static_cast<uint64_t>(buffer.shape[i])) return -1;
      flat = flat * buffer.shape[i] + indices[i];
    }
    return flat;
  }

  Status CheckOutputsWritten() {
    for (const Storage& storage : storage_) {
      if (storage.buffer->scope != Scope::kOutput) continue;
      const auto at = std::ranges::find(storage.is_written, 0);
      if (at == storage.is_written.end()) continue;
      return FailedPrecondition(
          "{}{} of shape {} is never written", storage.buffer->name,
          ShapeText(storage.array->Unflatten(at - storage.is_written.begin())),
          ShapeText(storage.buffer->shape));
    }
    return OkStatus();
  }

  // ---- kernels

  Status RunKernel(const Kernel& kernel) {
    is_gpu_ = HasBoundLoop(kernel.body) ||
              ProductOfCounts(kernel.grid) * ProductOfCounts(kernel.block) * kernel.cluster > 1;
    block_sizes_ = is_gpu_ ? kernel.block : std::array<int64_t, 3>{1, 1, 1};
    threads_of_block_ = ProductOfCounts(block_sizes_);
    if (threads_of_block_ > kMaxThreads) {
      return FailedPrecondition("a block has {} threads, at most {} can be", threads_of_block_,
                                kMaxThreads);
    }
    if (kernel.cluster > kMaxCluster) {
      return FailedPrecondition("a cluster has {} blocks, at most {} can be", kernel.cluster,
                                kMaxCluster);
    }
    num_threads_ = threads_of_block_ * kernel.cluster;
    num_vars_ = program_.vars.size();
    vars_.assign(num_vars_ * static_cast<size_t>(num_threads_), Value::Int(0));
    all_threads_.resize(static_cast<size_t>(num_threads_));
    std::iota(all_threads_.begin(), all_threads_.end(), 0);
    loops_.clear();
    Step body = Compile(kernel.body);
    if (!is_gpu_) {
      unit_ = 0;
      return Execute(body, all_threads_);
    }
    clock_.EnterRegion(threads_of_block_, kernel.cluster);
    const int64_t num_units = ProductOfCounts(kernel.grid);
    for (unit_ = 0; unit_ < num_units; ++unit_) {
      block_ = {unit_ % kernel.grid[0], unit_ / kernel.grid[0] % kernel.grid[1],
                unit_ / kernel.grid[0] / kernel.grid[1]};
      clock_.ClusterBarrier();
      copies_.clear();
      read_elsewhere_ = -1;
      KILN_RETURN_IF_ERROR(Execute(body, all_threads_));
      if (read_elsewhere_ >= 0) {
        return FailedPrecondition(
            "blocks read {} in other blocks of their cluster, which may have ended: no barrier of "
            "the cluster follows",
            program_.buffers[static_cast<size_t>(read_elsewhere_)].name);
      }
    }
    clock_.LeaveRegion();
    return OkStatus();
  }

  Status Spend(int64_t steps) {
    num_steps_ += steps;
    if (num_steps_ <= options_.max_steps) return OkStatus();
    return ResourceExhausted("the program takes more than {} steps", options_.max_steps);
  }

  Status Execute(Step& step, const std::vector<int32_t>& threads) {
    KILN_RETURN_IF_ERROR(Spend(std::ssize(threads)));
    switch (step.stmt->kind) {
      case StmtKind::kFor:
        return ExecuteFor(step, threads);
      case StmtKind::kStore:
        for (int32_t thread : threads) KILN_RETURN_IF_ERROR(ExecuteStore(step, thread));
        return OkStatus();
      case StmtKind::kIf:
        return ExecuteIf(step, threads);
      case StmtKind::kSeq:
        for (Step& child : step.children) KILN_RETURN_IF_ERROR(Execute(child, threads));
        return OkStatus();
      case StmtKind::kAlloc:
        return ExecuteAlloc(step, threads);
      case StmtKind::kInstruction:
        return Execute(step.children[0], threads);
      case StmtKind::kBarrier:
        if (std::ssize(threads) != num_threads_) {
          thread_ = threads[0];
          return Fail(fmt::format("{} of {} threads of the {} reach a barrier", threads.size(),
                                  num_threads_, GroupName()));
        }
        KILN_RETURN_IF_ERROR(FinishCopies(step.stmt->pending));
        if (step.stmt->is_of_warp) {
          clock_.WarpBarrier();
          return OkStatus();
        }
        if (!step.stmt->is_of_cluster) {
          clock_.Barrier();
          return OkStatus();
        }
        clock_.ClusterBarrier();
        read_elsewhere_ = -1;
        return OkStatus();
      case StmtKind::kCommit:
        if (std::ssize(threads) != num_threads_) {
          thread_ = threads[0];
          return Fail(fmt::format("{} of {} threads of the {} reach a commit", threads.size(),
                                  num_threads_, GroupName()));
        }
        ++num_groups_;
        return OkStatus();
    }
    return OkStatus();
  }

  // Asynchronous stores are carried out as late as the program allows.
  Status FinishCopies(int pending) {
    if (pending < 0) return OkStatus();
    const int64_t complete = num_groups_ - pending;
    while (!copies_.empty() && copies_.front().group < complete) {
      Copy& copy = copies_.front();
      thread_ = copy.thread;
      stage_ = copy.stage;
      KILN_RETURN_IF_ERROR(
          Write(storage_[static_cast<size_t>(copy.slot)], copy.indices, copy.value));
      stage_ = -1;
      copies_.pop_front();
    }
    return OkStatus();
  }

  void SetVar(int32_t var, int32_t thread, int64_t value) {
    vars_[static_cast<size_t>(thread) * num_vars_ + static_cast<size_t>(var)].i = value;
  }

  Status ExecuteFor(Step& step, const std::vector<int32_t>& threads) {
    const StmtNode& loop = *step.stmt;
    loops_.push_back(loop.var);
    if (IsBound(loop.loop_kind)) {
      for (int32_t thread : threads) SetVar(loop.var, thread, Coordinate(loop.loop_kind, thread));
      KILN_RETURN_IF_ERROR(Execute(step.children[0], threads));
    } else {
      const bool is_region = loop.loop_kind == LoopKind::kParallel && !is_gpu_;
      if (is_region) clock_.EnterRegion(1);
      for (int64_t i = 0; i < loop.extent; ++i) {
        if (is_region) unit_ = i;
        for (int32_t thread : threads) SetVar(loop.var, thread, i);
        KILN_RETURN_IF_ERROR(Execute(step.children[0], threads));
      }
      if (is_region) clock_.LeaveRegion();
    }
    loops_.pop_back();
    return OkStatus();
  }

  int64_t Coordinate(LoopKind kind, int32_t thread_of_cluster) const {
    const int64_t thread = thread_of_cluster % threads_of_block_;
    switch (kind) {
      case LoopKind::kCluster:
        return thread_of_cluster / threads_of_block_;
      case LoopKind::kBlockX:
        return block_[0];
      case LoopKind::kBlockY:
        return block_[1];
      case LoopKind::kBlockZ:
        return block_[2];
      case LoopKind::kThreadX:
        return thread % block_sizes_[0];
      case LoopKind::kThreadY:
        return thread / block_sizes_[0] % block_sizes_[1];
      default:
        return thread / block_sizes_[0] / block_sizes_[1];
    }
  }

  Status ExecuteIf(Step& step, const std::vector<int32_t>& threads) {
    std::vector<int32_t> chosen;
    for (int32_t thread : threads) {
      Value condition;
      KILN_RETURN_IF_ERROR(Evaluate(step.exprs[0], thread, &condition));
      if (condition.i) chosen.push_back(thread);
    }
    return chosen.empty() ? OkStatus() : Execute(step.children[0], chosen);
  }

  Status ExecuteAlloc(Step& step, const std::vector<int32_t>& threads) {
    Storage& storage = storage_[static_cast<size_t>(step.stmt->slot)];
    const bool is_local = storage.buffer->scope == Scope::kLocal;
    const bool is_shared = storage.buffer->scope == Scope::kShared;
    const int64_t threads_per_copy = is_local ? 1 : is_shared ? threads_of_block_ : num_threads_;
    const int64_t copies = num_threads_ / threads_per_copy;
    const auto elements = static_cast<size_t>(storage.num_elements * copies);
    if (storage.is_written.empty()) {
      KILN_RETURN_IF_ERROR(MakeElements(storage, copies));
      storage.is_written.resize(elements);
      if (options_.check_races) storage.shadow.Resize(elements);
      storage.threads_per_copy = copies > 1 ? threads_per_copy : 0;
    }
    KILN_RETURN_IF_ERROR(Spend(std::ssize(storage.is_written)));
    if (is_local) {
      for (int32_t thread : threads) {
        const auto begin = storage.is_written.begin() + thread * storage.num_elements;
        std::fill(begin, begin + storage.num_elements, 0);
      }
    } else {
      std::ranges::fill(storage.is_written, 0);
    }
    storage.is_private = is_gpu_ ? is_local : clock_.is_in_region();
    // Every block has shared buffers of its own, so the history starts anew.
    if (storage.unit != unit_) storage.shadow.Clear();
    storage.unit = unit_;
    return Execute(step.children[0], threads);
  }

  Status ExecuteStore(Step& step, int32_t thread) {
    const StmtNode& store = *step.stmt;
    stage_ = store.stage;
    Value value;
    std::array<int64_t, 16> few;
    const size_t rank = step.exprs.size() - 1;
    std::vector<int64_t> many(rank > few.size() ? rank : 0);
    const std::span<int64_t> indices{many.empty() ? few.data() : many.data(), rank};
    for (size_t i = 0; i < rank; ++i) {
      KILN_RETURN_IF_ERROR(Evaluate(step.exprs[i], thread, &value));
      indices[i] = value.i;
    }
    KILN_RETURN_IF_ERROR(Evaluate(step.exprs[rank], thread, &value));
    Storage& storage = storage_[static_cast<size_t>(store.slot)];
    KILN_RETURN_IF_ERROR(Write(storage, indices, value));
    if (store.is_async) {
      // The store may happen at any time from now on. The element is undefined until it is waited
      // for.
      storage.is_written[static_cast<size_t>(Flatten(*storage.buffer, indices))] = 0;
      copies_.push_back(
          {num_groups_, thread, store.slot, store.stage, {indices.begin(), indices.end()}, value});
    }
    stage_ = -1;
    return OkStatus();
  }

  Status Write(Storage& storage, std::span<const int64_t> indices, Value value) {
    const int64_t flat = Flatten(*storage.buffer, indices);
    if (flat < 0) return OutOfBounds("store", *storage.buffer, indices);
    const int64_t at = PlaceOf(storage, flat);
    if (MustWatch(storage)) {
      const auto element = static_cast<size_t>(at);
      const int64_t other = storage.shadow.Write(clock_, element, agent());
      if (other >= 0 && !IsEqualWrite(storage, at, value))
        return Race("store", storage, indices, other);
    }
    storage.array->Set(at, value);
    storage.is_written[static_cast<size_t>(at)] = 1;
    return OkStatus();
  }

  bool IsEqualWrite(const Storage& storage, int64_t at, Value value) const {
    if (!options_.allow_equal_writes ||
        !storage.shadow.IsWriteAfterWriteOnly(clock_, static_cast<size_t>(at), agent())) {
      return false;
    }
    NDArray rounded(storage.type, {1});
    rounded.Set(0, value);
    const auto size = static_cast<size_t>(storage.type.bytes());
    return std::ranges::equal(rounded.bytes(),
                              storage.array->bytes().subspan(static_cast<size_t>(at) * size, size));
  }

  Status Evaluate(CompiledExpr& e, int32_t thread, Value* value) {
    thread_ = thread;
    const Status status =
        e.Run({vars_.data() + static_cast<size_t>(thread) * num_vars_, num_vars_}, this, value);
    if (__builtin_expect(status.ok() || status.code() == StatusCode::kFailedPrecondition, 1))
      return status;
    return Fail(std::string(Message(status)));
  }

  // ---- races and messages

  bool MustWatch(const Storage& storage) const {
    return options_.check_races && clock_.is_in_region() && !storage.is_private;
  }

  std::string_view GroupName() const {
    return num_threads_ > threads_of_block_ ? "cluster" : "block";
  }

  int64_t agent() const { return unit_ * num_threads_ + thread_; }

  std::string AgentText(int64_t agent) const {
    if (!is_gpu_) return fmt::format("parallel iteration {}", agent);
    return fmt::format("thread {} of block {}", agent % threads_of_block_,
                       agent / threads_of_block_);
  }

  Status Race(std::string_view what, const Storage& storage, std::span<const int64_t> indices,
              int64_t other) {
    return Fail(fmt::format("{} of {}{} by {} races with {}{}", what, storage.buffer->name,
                            ShapeText(indices), AgentText(agent()), AgentText(other),
                            is_gpu_ ? ", no barrier between them" : ""));
  }

  Status OutOfBounds(std::string_view what, const Buffer& buffer,
                     std::span<const int64_t> indices) {
    return Fail(fmt::format("{} of {}{} is outside its shape {}", what, buffer.name,
                            ShapeText(indices), ShapeText(buffer.shape)));
  }

  // Makes an error like "message; stage conv, at i=2, j=3".
  Status Fail(const std::string& message) const {
    std::string place;
    if (stage_ >= 0)
      place += fmt::format("; stage {}", program_.stages[static_cast<size_t>(stage_)].name);
    for (size_t i = 0; i < loops_.size(); ++i) {
      const auto var = static_cast<size_t>(loops_[i]);
      place += fmt::format("{}{}={}", i == 0 ? "; at " : ", ", program_.vars[var].name,
                           vars_[static_cast<size_t>(thread_) * num_vars_ + var].i);
    }
    return FailedPrecondition("{}{}", message, place);
  }

  const Program& program_;
  const InterpreterOptions options_;
  std::vector<Storage> storage_;
  int64_t bytes_ = 0;
  int64_t num_steps_ = 0;
  RaceClock clock_;

  // State of the running kernel.
  bool is_gpu_ = false;
  // Number of threads of a block, and number of threads that run in step: those of a block or of a
  // cluster.
  int64_t threads_of_block_ = 1, num_threads_ = 1;
  // A buffer that a block has read in another block since the last barrier of the cluster, or -1.
  int32_t read_elsewhere_ = -1;
  std::array<int64_t, 3> block_sizes_ = {1, 1, 1};
  std::array<int64_t, 3> block_ = {0, 0, 0};
  // Number of the block or cluster, or of the iteration of the parallel loop.
  int64_t unit_ = 0;
  // Asynchronous stores that are not waited for yet, oldest first.
  struct Copy {
    int64_t group;
    int32_t thread, slot, stage;
    std::vector<int64_t> indices;
    Value value;
  };
  std::deque<Copy> copies_;
  // Number of groups that are committed.
  int64_t num_groups_ = 0;
  size_t num_vars_ = 0;
  // Indexed by [thread, variable].
  std::vector<Value> vars_;
  std::vector<int32_t> all_threads_;
  // Variables of the loops, from the outside in.
  std::vector<int32_t> loops_;

  // State of the running statement.
  int32_t thread_ = 0;
  int32_t stage_ = -1;
};

}  // namespace

Status Interpret(const Program& program, std::span<NDArray* const> arguments,
                 const InterpreterOptions& options) {
  KILN_RETURN_IF_ERROR(Verify(program));
  return Machine(program, options).Run(arguments);
}

}  // namespace kiln::ir
