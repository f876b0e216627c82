// The manifest of a compiled network's file, as JSON: all that is in a Network but bytes, and the
// places of the bytes in the file.
//
// Pure functions. Any bytes are fine as input: a refusal is one sentence that says where the error
// is, and memory is at most some ten times the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash/xxh3.h"
#include "base/status.h"
#include "runtime/network.h"

namespace kiln::runtime {

inline constexpr int64_t kMaxManifestBytes = 16 << 20;

// A part of the file.
struct Section {
  int64_t offset = 0;
  int64_t bytes = 0;
  // XXH3
  Hash128 checksum;
};

struct Manifest {
  // The network has as many binaries as there are sections, and they are empty; so are the texts.
  Network network;
  std::vector<Section> binaries;
  Section constants;
  Section graph_text;
  Section options_text;
};

std::string PrintManifest(const Manifest& manifest);

// Ignores unknown members of objects. Numbers are in the range of their types, and are not checked
// in any other way: CheckNetwork does that.
StatusOr<Manifest> ParseManifest(std::string_view text);

}  // namespace kiln::runtime
