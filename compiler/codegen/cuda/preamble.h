// What stands above the kernels of a program: types, device functions. Internal to
// this folder.
#pragma once

#include <map>
#include <set>
#include <string>

#include "compiler/instructions/matrix_unit.h"
#include "compiler/instructions/warpgroup_unit.h"

namespace kiln::codegen {

// What the kernels use of it; noted while they are emitted.
struct CudaPreamble {
  bool f16 = false, bf16 = false, e4m3 = false, e5m2 = false;  // types
  bool sigmoid = false, floor_div = false, floor_mod = false;  // functions of values
  // Of floats and of doubles: minimum and maximum; conversions to ints.
  bool float_extremes = false, double_extremes = false;
  bool float_to_int = false, double_to_int = false;
  bool async_copies = false;  // sm_80: copies to shared memory
  bool swizzle = false;       // places in shared memory
  bool cluster = false;       // sm_90: blocks of a cluster
  bool block_order = false;
  bool bulk_copies = false, bulk_visits = false;    // sm_90
  instructions::WarpgroupUnits warpgroup_units;     // sm_90a
  std::map<std::string, std::string> vector_types;  // name -> definition
  // Whose products of tiles they use, in the order of their table.
  std::set<const instructions::MatrixUnit*> matrix_units;
  bool flushed_powers = false;
  bool unzips_bytes = false;  // of their tiles
  bool quads = false;         // of their results
  // Floats rounded to two neighbours of a type in one register, by its name in PTX: of 16 bits (sm_80),
  // or of 8.
  std::set<std::string_view> packed_types;
  // Types of which two neighbours in one register are computed with at once.
  std::set<std::string_view> pairs;

  // Of elements and values of a type, its definition and conversions.
  void Use(ir::Type type);
  void UseExtremes(ir::Type type) { (type.bits == 64 ? double_extremes : float_extremes) = true; }
  void UseToInt(ir::Type from) { (from.bits == 64 ? double_to_int : float_to_int) = true; }
};

std::string PreambleText(const CudaPreamble& preamble);

}  // namespace kiln::codegen
