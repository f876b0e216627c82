// A small compiled network, and files with manifests of any kind, for tests.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/network.h"
#include "runtime/network_file.h"

namespace kiln::runtime {

// input x [4], a constant of 16 bytes, two kernels of one binary: 0 writes arena buffer 3 from x and
// the constant, 1 writes output buffer 4 from a view (5) of 3. Its binary is an ELF file by its
// first bytes only. Not placed.
Network SmallNetwork();
// As written, with constants 0, 1, 2, ...
StatusOr<std::string> FileOf(const Network& network);

// A file whose header is right: `body` comes behind it, then the manifest.
std::string SealedFile(std::string_view manifest, std::string_view body);

// The manifest of a placed network in a file whose body is zeros, 8 KiB of them.
inline constexpr size_t kZeroBodyBytes = 8192;
std::string ManifestOverZeros(const Network& network);

std::span<const std::byte> AsBytes(std::string_view text);

}  // namespace kiln::runtime
