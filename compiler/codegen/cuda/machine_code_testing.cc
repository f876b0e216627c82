#include "compiler/codegen/cuda/machine_code_testing.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <set>
#include <string_view>

namespace kiln::codegen {
namespace {

// Opcodes. Three of their bits say where operands are: HGMMA has its first factor in registers or not, F2FP has
// both operands there.
constexpr uint64_t kPlaces = 0xe00, kHgmma = 0x1f0, kWarpgroup = 0x9c5, kF2fp = 0x23e;
constexpr std::string_view kTextPrefix = ".text.";

struct Instruction {
  uint64_t low = 0, high = 0;

  uint64_t opcode() const { return low & 0xfff; }
  int result() const { return static_cast<int>(low >> 16 & 0xff); }
  int first_operand() const { return static_cast<int>(low >> 24 & 0xff); }
  int second_operand() const { return static_cast<int>(low >> 32 & 0xff); }
  int columns() const { return (static_cast<int>(low >> 53 & 0x3f) + 1) * 8; }
  // Of WARPGROUP: DEPBAR, not ARRIVE.
  bool is_wait() const { return (low >> 47 & 1) != 0; }
  int under_way() const { return static_cast<int>(high >> 8 & 0xf); }
};

template <typename T>
StatusOr<T> ReadAt(const std::string& binary, uint64_t offset) {
  T value;
  if (offset > binary.size() || binary.size() - offset < sizeof value)
    return InvalidArgument("a cubin of {} bytes ends before byte {}", binary.size(), offset);
  std::memcpy(&value, binary.data() + offset, sizeof value);
  return value;
}

Status ReadKernel(const std::string& cubin, const std::string& kernel, const Elf64_Shdr& section,
                  MachineCode& code) {
  std::set<int> sums, under_way;
  for (uint64_t at = 0; at < section.sh_size; at += sizeof(Instruction)) {
    KILN_ASSIGN_OR_RETURN(const Instruction i, ReadAt<Instruction>(cubin, section.sh_offset + at));
    if ((i.opcode() & ~kPlaces) == kHgmma) {
      ++code.products;
      for (int k = 0; k < i.columns() / 2; ++k) under_way.insert(i.result() + k);
      sums.insert(under_way.begin(), under_way.end());
    }
    if (i.opcode() == kWarpgroup && i.is_wait() && i.under_way() == 0) under_way.clear();
    if (i.opcode() != kF2fp) continue;
    const int a = i.first_operand(), b = i.second_operand();
    if (sums.contains(a) || sums.contains(b)) ++code.rounded;
    if (under_way.contains(a) || under_way.contains(b))
      code.rounded_early.push_back(fmt::format("{}+0x{:x}: R{}, R{}", kernel, at, a, b));
  }
  return OkStatus();
}

}  // namespace

StatusOr<MachineCode> ReadMachineCode(const std::string& cubin) {
  KILN_ASSIGN_OR_RETURN(const Elf64_Ehdr header, ReadAt<Elf64_Ehdr>(cubin, 0));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return InvalidArgument("it is no ELF file");
  const auto section = [&](uint64_t i) {
    return ReadAt<Elf64_Shdr>(cubin, header.e_shoff + i * header.e_shentsize);
  };
  KILN_ASSIGN_OR_RETURN(const Elf64_Shdr names, section(header.e_shstrndx));
  MachineCode code;
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    KILN_ASSIGN_OR_RETURN(const Elf64_Shdr text, section(i));
    const uint64_t at = names.sh_offset + text.sh_name;
    if (at >= cubin.size()) return InvalidArgument("section {} has no name", i);
    const std::string name(cubin.c_str() + at);
    if (!name.starts_with(kTextPrefix)) continue;
    KILN_RETURN_IF_ERROR(ReadKernel(cubin, name.substr(kTextPrefix.size()), text, code));
  }
  return code;
}

}  // namespace kiln::codegen
