#include "base/secret.h"

#include <openssl/crypto.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/digest.h"
#include "base/errno_status.h"
#include "base/file.h"
#include "base/unique_id.h"

namespace kiln {
namespace {

constexpr size_t kFewestBytes = 16;
constexpr size_t kMostBytes = 1024;
constexpr size_t kFileBytes = 4096;
constexpr int kRandomDigits = 64;

bool IsPrintable(char c) { return c > ' ' && c <= '~'; }

Status Advise(std::string_view path, std::string_view found) {
  return FailedPrecondition(
      "the secret in {} {}; make one with `(umask 77; openssl rand -hex 32 > {})` and give every "
      "process of the farm a copy",
      path, found, path);
}

}  // namespace

StatusOr<Secret> Secret::Read(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) {
    return ErrnoStatus(errno, "cannot read the secret in {}", path);
  }
  if ((info.st_mode & S_IROTH) != 0) {
    return FailedPrecondition("everyone can read the secret in {}; `chmod o-r {}`", path, path);
  }
  KILN_ASSIGN_OR_RETURN(std::string text, ReadFile(path, kFileBytes));
  text.resize(std::min(text.size(), text.find('\n')));
  if (text.ends_with('\r')) text.pop_back();
  if (text.size() < kFewestBytes || text.size() > kMostBytes) {
    return Advise(path, fmt::format("has {} characters, expected {} to {}", text.size(),
                                    kFewestBytes, kMostBytes));
  }
  if (!std::all_of(text.begin(), text.end(), IsPrintable)) {
    return Advise(path, "has a space or a character that does not print");
  }
  return Secret(std::move(text));
}

Secret Secret::Random() { return Secret(UniqueId(kRandomDigits)); }

bool Secret::Matches(std::string_view told) const {
  // Digests are of one length, so that the length tells nothing either.
  const std::string ours = Sha256Hex(text_), theirs = Sha256Hex(told);
  return CRYPTO_memcmp(ours.data(), theirs.data(), ours.size()) == 0;
}

}  // namespace kiln
