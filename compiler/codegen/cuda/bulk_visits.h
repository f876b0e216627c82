// Tiles of keys and values that the bulk copy engine of sm_90 (TMA) brings: Hint::kBulkCopies of an
// online softmax whose products are those of units of four warps. Internal to this folder.
//
// As a program the loop over tiles has two rings of buffers, which all threads fill ahead
// (compiler/lower/online_softmax.cc):
//
//   keys of 0; commit; { keys of tile, values of tile - 1; commit } ahead; barrier; scores of 0
//   for t { barrier; scores of t + 1, sums of t; keys of t + depth, values of t + depth - 1;
//           commit; exponentials of t + 1 }
//   barrier; sums of the last tile
//
// On the GPU a thread tells the engine of each tile, as for the ring of a product (bulk_copies.h);
// but each of the two tiles has a barrier of its own. Threads that compute wait for a tile in front
// of its product, and release its buffer behind the wait for that product:
//
//   thread that copies:  for t { keys of t; values of t - 1 }, each once its buffer is empty
//   all others:          for t { wait for keys; begin scores; wait for values; begin sums;
//                                wait for scores; release keys; exponentials;
//                                wait for sums; release values }
//
// A lone group of four warps with long tiles copies for itself: its first thread tells the engine of
// the next tiles behind the products of each visit. A fifth warp would lie beside another one on one
// of four schedulers, which share out their registers alike: three such blocks leave each thread 128
// registers, and three blocks of four warps 168. Behind short tiles one thread's work delays all.
//
// Several groups of four warps do not wait for each other's exponentials. They begin products in turn
// (FlashAttention-3; Shah et al. 2024): while one computes exponentials, the units multiply for the
// others. Of several groups four warps copy, three of which do nothing: they leave most of their
// registers to the others, which hold scores and weights of long tiles beside sums so.
//
// Queries come by copies of the threads. What does not fit is refused, as for products.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/arrays/tensor_map.h"
#include "base/status.h"
#include "compiler/arith/linear.h"
#include "compiler/codegen/cuda/blocks.h"
#include "compiler/codegen/cuda/exprs.h"
#include "compiler/codegen/cuda/names.h"
#include "compiler/codegen/cuda/preamble.h"
#include "compiler/codegen/cuda/scope.h"
#include "compiler/codegen/cuda/swizzle.h"
#include "compiler/codegen/cuda/visits.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// The rings of a kernel. References are kept. One thread.
class CudaBulkVisits {
 public:
  CudaBulkVisits(const ir::Program& program, const ir::Kernel& kernel, const Swizzles& swizzles,
                 CudaScope& scope, CudaExprs& exprs, CudaBlocks& blocks, CudaNames& names,
                 CudaPreamble& preamble);

  // If false, nothing below holds.
  bool is_used() const { return loop_ != nullptr; }
  // Says why the kernel can't have what it wants.
  const Status& status() const { return status_; }

  // Registers of threads are shared out anew. Then the kernel's bounds must leave it 65536 of them.
  bool shares_registers() const { return groups() > 1; }
  bool IsLoop(ir::Stmt stmt) const { return is_used() && stmt == loop_; }
  // Copies of the threads, which the other warps do.
  bool IsBrought(ir::Stmt stmt) const;

  // Finds out what the tiles are. Then emits barriers at `barriers`, the address of
  // instructions::kBulkBarrierBytes, and the warps that copy. coordinate(kind) is the text of the
  // number of a block.
  void EmitStart(std::string_view barriers,
                 const std::function<std::string(ir::LoopKind)>& coordinate);
  // Emits the loop by body().
  template <typename Body>
  void EmitVisits(Body&& body);
  // In place of barriers and commits of all threads.
  void EmitBarrier();
  void EmitCommit();
  // In front of a product, and behind the wait for it. Nothing if the buffer is none of the rings.
  void EmitArrival(int32_t slot);
  void EmitRelease(int32_t slot);

  // Parameters of the kernel, in order: names, and what of the program's buffers they map.
  std::vector<std::string> map_names() const;
  std::vector<TensorMap> maps() const;

 private:
  struct Copy {
    ir::Stmt store = nullptr;
    std::vector<int32_t> vars;  // of the loops around it, inside of the loop over tiles
  };
  struct Tile {
    int32_t slot = -1;
    TensorMap map;
    std::vector<arith::Linear> start;  // in the array's dimensions, as the map has them
    int64_t behind = 0;  // iterations of the thread that copies by which the tile is behind
    int64_t panels = 1, width = 1;  // copies, and elements from one to the next in a row
    int64_t panel = 0, buffer = 0;  // elements from one to the next in shared memory
    // Names: the map, and how many tiles a thread that computes has taken.
    std::string map_name, taken;
  };

  int64_t groups() const { return GroupsOf(kernel_); }
  // The thread that tells the engine of tiles. It computes, too, if a group copies for itself.
  int64_t first_copying() const { return copies_for_itself_ ? 0 : kernel_.block[0]; }
  Status FindTiles();
  StatusOr<Tile> FindTile(const Copy& copy);
  Status FindStart(const Copy& copy, ir::Expr load, std::vector<arith::Linear>& places, Tile& of);
  void CollectCopies(ir::Stmt stmt, std::vector<int32_t>& vars);
  bool IsOfThreads(ir::Stmt stmt) const;
  size_t NumberOf(int32_t slot) const;
  const Tile* TileOf(int32_t slot) const;
  std::vector<ir::Stmt> BlockLoops() const;
  void EmitBarriers(std::string_view barriers);
  void EmitCopyingThread(const std::function<std::string(ir::LoopKind)>& coordinate);
  void EmitInBlock(const std::function<std::string(ir::LoopKind)>& coordinate,
                   const std::function<void()>& body);
  void EmitCopiesOf(int64_t iterations);
  void EmitNextCopies();
  void EmitCopies(ir::Stmt stmt);
  void EmitTile(const Tile& tile);
  std::string BarrierOf(const std::string& barriers, const Tile& tile,
                        const std::string& number) const;

  const ir::Program& program_;
  const ir::Kernel& kernel_;
  const Swizzles& swizzles_;
  CudaScope& scope_;
  CudaExprs& exprs_;
  CudaBlocks& blocks_;
  CudaNames& names_;
  CudaPreamble& preamble_;

  ir::Stmt loop_ = nullptr;
  std::vector<ir::Stmt> around_;  // loops around it, outermost first
  std::vector<ir::Stmt> visit_;   // statements of its body up to the first commit
  Status status_;
  std::vector<Copy> copies_;
  std::vector<Tile> tiles_;
  bool copies_for_itself_ = false;
  int64_t depth_ = 0;
  int32_t iteration_ = -1;  // of the thread that copies: a variable of the scope
  std::string filled_, emptied_;
  bool is_inside_ = false, has_begun_ = false;
};

// ---- implementation of templates

template <typename Body>
void CudaBulkVisits::EmitVisits(Body&& body) {
  is_inside_ = true;
  body();
  is_inside_ = false;
}

}  // namespace kiln::codegen
