// The place of a compiled network in a shared library that contains it.
//
// The library is made from a template that is compiled with Kiln. `kiln compile --form tvm-ffi`
// adds a segment with the network's file (network_file.h) to the template, and writes the segment's
// place into the template's EmbeddedNetwork, which it finds by its mark.
#pragma once

#include <cstdint>

namespace kiln::runtime {

inline constexpr char kEmbeddedMark[17] = "KILN-NET-IS-HERE";

struct EmbeddedNetwork {
  char mark[16];
  // Distance of the network's first byte from this object, in loaded memory.
  int64_t distance;
  // 0 in the template, which has no network.
  uint64_t bytes;
};
static_assert(sizeof(EmbeddedNetwork) == 32);

}  // namespace kiln::runtime
