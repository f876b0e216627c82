// The first bytes of a compiled network's file. Internal to the code that reads and writes such
// files.
#pragma once

#include <cstdint>
#include <type_traits>

namespace kiln::runtime {

inline constexpr char kNetworkMagic[8] = {'K', 'I', 'L', 'N', '-', 'N', 'E', 'T'};
inline constexpr int64_t kSectionAlignment = 64;
inline constexpr int64_t kConstantsAlignment = 4096;

struct NetworkHeader {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint64_t file_bytes;
  uint64_t manifest_offset;
  uint64_t manifest_bytes;
  uint64_t manifest_checksum_high;
  uint64_t manifest_checksum_low;
  // Always 0.
  uint64_t reserved;
};
static_assert(sizeof(NetworkHeader) == 64 && std::is_trivially_copyable_v<NetworkHeader>);

}  // namespace kiln::runtime
