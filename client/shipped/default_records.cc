#include "client/shipped/default_records.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/file/file.h"
#include "client/shipped/shipped_archive.h"

namespace kiln::client {
namespace {

constexpr size_t kMaxBytes = size_t{256} << 20;

// Numbers of bytes, and a last 0 that does not count.
constexpr uint8_t kFile[] = {
#include "client/shipped/default_records.inc"
    0};

}  // namespace

std::string_view DefaultRecordsFile() {
  return {reinterpret_cast<const char*>(kFile), sizeof(kFile) - 1};
}

std::string DefaultRecords::Name() const {
  return path.empty() ? "the records shipped with Kiln" : "the records of " + path;
}

StatusOr<std::vector<store::ShippedRecord>> DefaultRecords::Read() const {
  if (left_out) return std::vector<store::ShippedRecord>();
  auto records = StatusOr<std::vector<store::ShippedRecord>>();
  if (path.empty()) {
    records = store::ReadShippedFile(DefaultRecordsFile());
  } else {
    KILN_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kMaxBytes));
    records = store::ReadShippedFile(bytes);
  }
  KILN_RETURN_IF_ERROR(Annotate(records.status(), Name()));
  return records;
}

StatusOr<std::unique_ptr<Archive>> OpenBestRecords(const Session& session,
                                                   const DefaultRecords& defaults) {
  KILN_ASSIGN_OR_RETURN(auto shipped, defaults.Read());
  StatusOr<std::unique_ptr<Archive>> own = session.OpenArchive();
  const bool is_absent = own.status().code() == StatusCode::kNotFound;
  if (shipped.empty() || (!own.ok() && !is_absent)) return own;
  return std::make_unique<ShippedArchive>(std::move(own), std::move(shipped), KeyOfThisMachine(),
                                          defaults.Name());
}

}  // namespace kiln::client
