#include "base/server/secret.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/errno_status.h"
#include "base/file/fd.h"
#include "base/hash/digest.h"
#include "base/hash/unique_id.h"

namespace kiln {
namespace {

constexpr size_t kMinBytes = 16;
constexpr size_t kMaxBytes = 1024;
constexpr size_t kFileBytes = 4096;
constexpr int kRandomDigits = 64;

bool IsPrintable(char c) { return c > ' ' && c <= '~'; }

Status Advise(std::string_view path, std::string_view found) {
  return FailedPrecondition(
      "the secret in {} {}; make one with `(umask 77; openssl rand -hex 32 > {})` and give every "
      "process of the farm a copy",
      path, found, path);
}

std::string_view KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

// Checks the open file, because another file may stand at its path a moment later.
Status CheckKept(const std::string& path, const struct stat& info) {
  if (!S_ISREG(info.st_mode)) {
    return FailedPrecondition(
        "the secret must be in a file, and {} is {}; make one with `(umask 77; openssl rand -hex "
        "32 > farm.secret)`",
        path, KindOf(info.st_mode));
  }
  const mode_t others = info.st_mode & (S_IRWXG | S_IRWXO);
  if (others == 0) return OkStatus();
  return FailedPrecondition(
      "the file of the secret, {}, has mode {:04o}, which gives its group or others {:03o}; "
      "expected none of these bits: `chmod 600 {}`",
      path, info.st_mode & 07777, others, path);
}

// Reads at most kFileBytes. Returns nothing if the file cannot be read.
std::optional<std::string> ReadStart(int fd) {
  std::string text(kFileBytes, '\0');
  size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = read(fd, text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  text.resize(filled);
  return text;
}

}  // namespace

StatusOr<Secret> Secret::Read(const std::string& path) {
  // The flags keep open from waiting for the other end of a pipe.
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info{};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) {
    return ErrnoStatus(errno, "cannot read the secret in {}", path);
  }
  KILN_RETURN_IF_ERROR(CheckKept(path, info));
  std::optional<std::string> read = ReadStart(fd.get());
  if (!read) return ErrnoStatus(errno, "cannot read the secret in {}", path);
  std::string text = *std::move(read);
  text.resize(std::min(text.size(), text.find('\n')));
  if (text.ends_with('\r')) text.pop_back();
  if (text.size() < kMinBytes || text.size() > kMaxBytes) {
    return Advise(path, fmt::format("has {} characters, expected {} to {}", text.size(), kMinBytes,
                                    kMaxBytes));
  }
  if (!std::all_of(text.begin(), text.end(), IsPrintable)) {
    return Advise(path, "has a space or a character that does not print");
  }
  return Secret(std::move(text));
}

Secret Secret::Random() { return Secret(UniqueId(kRandomDigits)); }

bool Secret::Matches(std::string_view told) const {
  // Digests have the same length, so that the time does not tell the secret's length either.
  const std::string ours = Sha256Hex(text_), theirs = Sha256Hex(told);
  return CRYPTO_memcmp(ours.data(), theirs.data(), ours.size()) == 0;
}

}  // namespace kiln
