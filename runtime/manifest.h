// The manifest of a compiled network's file: all that is in a Network but bytes, as JSON, and where
// in the file the bytes are.
//
// Pure functions. Any bytes are fine as input: a refusal is one sentence that says where, and memory
// is at most some ten times the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/xxh3.h"
#include "runtime/network.h"

namespace kiln::runtime {

inline constexpr int64_t kMostManifestBytes = 16 << 20;

// A part of the file.
struct Section {
  int64_t offset = 0;
  int64_t bytes = 0;
  Hash128 checksum;  // XXH3
};

struct Manifest {
  // `binaries` are as many as the sections, and empty; so are the texts.
  Network network;
  std::vector<Section> binaries;
  Section constants;
  Section graph_text;
  Section options_text;
};

std::string PrintManifest(const Manifest& manifest);

// Members of objects that it does not know are left out. Numbers are in the range of their types,
// and nothing else is checked of them: CheckNetwork does that.
StatusOr<Manifest> ParseManifest(std::string_view text);

}  // namespace kiln::runtime
