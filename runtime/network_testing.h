// A small compiled network, and files with manifests of any kind, for tests.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/network.h"
#include "runtime/network_file.h"

namespace kiln::runtime {

// Returns a network with input x [4], a constant of 16 bytes, and two kernels of one binary. Kernel
// 0 writes arena buffer 3 from x and the constant; kernel 1 writes output buffer 4 from a view (5)
// of buffer 3. Only the first bytes of the binary are an ELF file's. The buffers are not placed.
Network SmallNetwork();
// Returns the file of the network as it is written, with constants 0, 1, 2, ...
StatusOr<std::string> FileOf(const Network& network);

// Returns a file whose header is right: `body` comes behind the header, then the manifest.
std::string SealedFile(std::string_view manifest, std::string_view body);

// The manifest of a placed network, for a file whose body is 8 KiB of zeros.
inline constexpr size_t kZeroBodyBytes = 8192;
std::string ManifestOverZeros(const Network& network);

std::span<const std::byte> AsBytes(std::string_view text);

}  // namespace kiln::runtime
