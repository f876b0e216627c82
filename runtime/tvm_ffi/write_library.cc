#include "runtime/tvm_ffi/write_library.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/numbers/integers.h"
#include "runtime/network_header.h"
#include "runtime/tvm_ffi/embedded.h"

extern "C" {
// Defined by template.S.
extern const char kiln_tvm_ffi_template_begin[];
extern const char kiln_tvm_ffi_template_end[];
}

namespace kiln::runtime {
namespace {

template <typename T>
T ReadAt(std::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

struct Template {
  Elf64_Ehdr header;
  std::vector<Elf64_Phdr> segments;
  // Offset of the EmbeddedNetwork in the file.
  size_t embedded = 0;
};

StatusOr<Template> ReadTemplate(std::string_view elf) {
  Template read;
  if (elf.size() < sizeof(Elf64_Ehdr) || !elf.starts_with(ELFMAG))
    return InvalidArgument("the template is no ELF file");
  read.header = ReadAt<Elf64_Ehdr>(elf, 0);
  const Elf64_Ehdr& header = read.header;
  const size_t table_bytes = size_t{header.e_phnum} * sizeof(Elf64_Phdr);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN ||
      header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phoff > elf.size() ||
      table_bytes > elf.size() - header.e_phoff)
    return InvalidArgument("the template is no shared library of 64 bits");
  for (size_t i = 0; i < header.e_phnum; ++i)
    read.segments.push_back(ReadAt<Elf64_Phdr>(elf, header.e_phoff + i * sizeof(Elf64_Phdr)));
  const std::string_view mark(kEmbeddedMark, 16);
  read.embedded = elf.find(mark);
  if (read.embedded == std::string_view::npos ||
      elf.find(mark, read.embedded + 1) != std::string_view::npos ||
      elf.size() - read.embedded < sizeof(EmbeddedNetwork))
    return InvalidArgument("the template has no place for a network, or several");
  return read;
}

// Returns the address at which a byte of the file is loaded.
StatusOr<uint64_t> AddressOf(const Template& from, uint64_t offset) {
  for (const Elf64_Phdr& segment : from.segments) {
    if (segment.p_type != PT_LOAD || offset < segment.p_offset) continue;
    if (offset - segment.p_offset < segment.p_filesz)
      return segment.p_vaddr + (offset - segment.p_offset);
  }
  return InvalidArgument("the template does not load its place for a network");
}

// The new segment begins with the table of segments, which has no room for one more where it is.
struct Added {
  std::vector<Elf64_Phdr> segments;
  // Index of the new segment.
  size_t at = 0;
  uint64_t offset = 0;
  uint64_t network_offset = 0;
  EmbeddedNetwork embedded = {};
};

// Returns what is added for a network whose size is not known yet.
StatusOr<Added> Add(const Template& to, uint64_t elf_bytes) {
  uint64_t alignment = kConstantsAlignment, end = 0;
  auto last = to.segments.end();
  for (auto segment = to.segments.begin(); segment != to.segments.end(); ++segment) {
    if (segment->p_type != PT_LOAD) continue;
    alignment = std::max<uint64_t>(alignment, segment->p_align);
    end = std::max<uint64_t>(end, segment->p_vaddr + segment->p_memsz);
    last = segment;
  }
  if (last == to.segments.end()) return InvalidArgument("the template loads nothing");
  Added added;
  added.offset = RoundUp(elf_bytes, alignment);
  const uint64_t table_bytes = (to.segments.size() + 1) * sizeof(Elf64_Phdr);
  const uint64_t before = RoundUp(table_bytes, uint64_t{kConstantsAlignment});
  added.network_offset = added.offset + before;
  const uint64_t address = RoundUp(end, alignment);
  Elf64_Phdr segment = {};
  segment.p_type = PT_LOAD;
  segment.p_flags = PF_R;
  segment.p_offset = added.offset;
  segment.p_vaddr = segment.p_paddr = address;
  segment.p_align = alignment;
  // The loader wants the segments in the order of their addresses.
  added.segments.assign(to.segments.begin(), last + 1);
  added.at = added.segments.size();
  added.segments.push_back(segment);
  added.segments.insert(added.segments.end(), last + 1, to.segments.end());
  for (Elf64_Phdr& table : added.segments) {
    if (table.p_type != PT_PHDR) continue;
    table.p_offset = added.offset;
    table.p_vaddr = table.p_paddr = address;
    table.p_filesz = table.p_memsz = table_bytes;
  }
  KILN_ASSIGN_OR_RETURN(const uint64_t place, AddressOf(to, to.embedded));
  std::memcpy(added.embedded.mark, kEmbeddedMark, sizeof(added.embedded.mark));
  added.embedded.distance = static_cast<int64_t>(address + before - place);
  return added;
}

void SetNetworkBytes(Added& added, uint64_t bytes) {
  Elf64_Phdr& segment = added.segments[added.at];
  segment.p_filesz = segment.p_memsz = added.network_offset - added.offset + bytes;
  added.embedded.bytes = bytes;
}

template <typename T>
std::string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

Status PadTo(AtomicFile& file, uint64_t offset) {
  return file.Append(std::string(offset - static_cast<uint64_t>(file.bytes()), '\0'));
}

// Replaces what the template has at these places.
Status WriteTables(AtomicFile& file, Template& to, const Added& added) {
  to.header.e_phoff = added.offset;
  to.header.e_phnum = static_cast<Elf64_Half>(added.segments.size());
  KILN_RETURN_IF_ERROR(file.WriteAt(0, BytesOf(to.header)));
  KILN_RETURN_IF_ERROR(file.WriteAt(static_cast<int64_t>(to.embedded), BytesOf(added.embedded)));
  const std::string_view table(reinterpret_cast<const char*>(added.segments.data()),
                               added.segments.size() * sizeof(Elf64_Phdr));
  return file.WriteAt(static_cast<int64_t>(added.offset), table);
}

}  // namespace

std::string_view TvmFfiTemplate() {
  return {kiln_tvm_ffi_template_begin,
          static_cast<size_t>(kiln_tvm_ffi_template_end - kiln_tvm_ffi_template_begin)};
}

StatusOr<int64_t> WriteTvmFfiLibrary(const std::string& path, const NetworkAppender& append,
                                     std::string_view elf) {
  KILN_ASSIGN_OR_RETURN(Template read, ReadTemplate(elf));
  KILN_ASSIGN_OR_RETURN(Added added, Add(read, elf.size()));
  KILN_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path, 0777));
  KILN_RETURN_IF_ERROR(file.Append(elf));
  KILN_RETURN_IF_ERROR(PadTo(file, added.network_offset));
  KILN_RETURN_IF_ERROR(append(file));
  SetNetworkBytes(added, static_cast<uint64_t>(file.bytes()) - added.network_offset);
  KILN_RETURN_IF_ERROR(WriteTables(file, read, added));
  const int64_t bytes = file.bytes();
  KILN_RETURN_IF_ERROR(file.Commit());
  return bytes;
}

}  // namespace kiln::runtime
