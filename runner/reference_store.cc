#include "runner/reference_store.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "base/errno_status.h"

namespace kiln::runner {

// Cost of a small entry, so that thousands of null programs do not pile up.
constexpr int64_t kEntryBytes = 4096;

std::string ReferenceStore::KeyOf(const std::string& digest, uint64_t seed) {
  return fmt::format("{}:{}", digest, seed);
}

const Reference* ReferenceStore::Find(const std::string& key) {
  const auto found = std::find_if(references_.begin(), references_.end(),
                                  [&](const Reference& r) { return r.key == key; });
  if (found == references_.end()) return nullptr;
  references_.splice(references_.begin(), references_, found);
  return &references_.front();
}

void ReferenceStore::Erase(const std::string& key) {
  std::erase_if(references_, [&](const Reference& r) {
    if (r.key != key) return false;
    bytes_ -= r.bytes + kEntryBytes;
    return true;
  });
}

const Reference& ReferenceStore::Insert(Reference reference) {
  bytes_ += reference.bytes + kEntryBytes;
  references_.push_front(std::move(reference));
  while (bytes_ > max_bytes_ && references_.size() > 1) {
    bytes_ -= references_.back().bytes + kEntryBytes;
    references_.pop_back();
  }
  return references_.front();
}

StatusOr<UniqueFd> MakeOutputFile() {
  UniqueFd file(memfd_create("kiln-reference", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return ErrnoStatus(errno, "cannot make a memory file for reference outputs");
  return file;
}

Status SealOutputFile(const UniqueFd& file) {
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
    return ErrnoStatus(errno, "cannot seal the reference outputs");
  }
  return OkStatus();
}

}  // namespace kiln::runner
