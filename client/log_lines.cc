#include "client/log_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/errno_status.h"
#include "base/text/counted.h"
#include "store/import_log.h"
#include "store/log_version.h"

namespace kiln::client {
namespace {

constexpr size_t kReadBytes = size_t{1} << 16;
// A longer line comes from a device that never ends. Reading up to here takes seconds.
constexpr size_t kNoLogBytes = size_t{4} << 30;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

StatusOr<LogLines> LogLines::Open(const std::string& path) {
  const int fd = path == "-" ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) return LogLines(path, UniqueFd(fd));
  const int error = errno;
  return ErrnoStatus(error, "cannot read {}", path);
}

StatusOr<bool> LogLines::Fill() {
  buffer_.resize(kReadBytes);
  at_ = 0;
  ssize_t size = 0;
  do {
    size = read(file_.get(), buffer_.data(), buffer_.size());
  } while (size < 0 && errno == EINTR);
  const int error = errno;
  buffer_.resize(size > 0 ? static_cast<size_t>(size) : 0);
  if (size < 0) return ErrnoStatus(error, "cannot read {}", path_);
  return size > 0;
}

StatusOr<bool> LogLines::Next(std::string& line) {
  KILN_ASSIGN_OR_RETURN(const bool more, Read(line));
  if (!more || store::IsMeasureLogComment(line)) return more;
  const std::string version = store::UnknownLogVersion(line);
  if (!version.empty() && ++unknown_versions_ == 1)
    first_unknown_ = fmt::format("line {}, of {}", number_, version);
  return more;
}

std::string LogLines::VersionRemark() const {
  if (unknown_versions_ == 0) return {};
  return fmt::format(
      "{} of a version that is not known, the first is {}; known are {}: read as lines of the "
      "newest of them",
      Counted(unknown_versions_, "line"), first_unknown_, store::kKnownLogVersions);
}

StatusOr<bool> LogLines::Read(std::string& line) {
  line.clear();
  ++number_;
  size_t length = 0;
  const auto drop_mark = [&] {
    if (number_ == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
  };
  while (true) {
    if (at_ == buffer_.size()) {
      KILN_ASSIGN_OR_RETURN(const bool more, Fill());
      if (!more) {
        drop_mark();
        return length > 0;
      }
    }
    const size_t end = buffer_.find('\n', at_);
    const size_t count = std::min(end, buffer_.size()) - at_;
    const size_t room = store::kMaxLineBytes + 1 - line.size();
    line.append(buffer_, at_, std::min(count, room));
    length += count;
    at_ += count;
    if (end != std::string::npos) {
      ++at_;
      drop_mark();
      return true;
    }
    if (length > kNoLogBytes) {
      return InvalidArgument("{}, line {}: no end of the line within {} GiB, expected a log", path_,
                             number_, kNoLogBytes >> 30);
    }
  }
}

Status VisitLog(const std::string& path, const std::function<Status(store::MeasureLogLine)>& visit,
                std::string* remark) {
  KILN_ASSIGN_OR_RETURN(LogLines lines, LogLines::Open(path));
  std::string text;
  for (int64_t number = 1;; ++number) {
    KILN_ASSIGN_OR_RETURN(const bool more, lines.Next(text));
    if (!more) {
      if (remark != nullptr) *remark = lines.VersionRemark();
      return OkStatus();
    }
    if (store::IsMeasureLogComment(text)) continue;
    const std::string where = fmt::format("{}: line {}", path, number);
    if (text.size() > store::kMaxLineBytes) {
      return InvalidArgument("{}: has more than {} MiB", where, store::kMaxLineBytes >> 20);
    }
    auto line = store::ParseMeasureLogLine(text);
    KILN_RETURN_IF_ERROR(Annotate(line.status(), where));
    KILN_RETURN_IF_ERROR(Annotate(visit(*std::move(line)), where));
  }
}

}  // namespace kiln::client
