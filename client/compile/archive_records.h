// Answers the questions of contexts (search/choice/context.h) from the records of an archive.
//
// Not thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "client/archive.h"
#include "search/choice/known_records.h"

namespace kiln::client {

class ArchiveRecords final : public search::KnownRecords {
 public:
  // The archive must outlive this. Its jobs are read once, by the first WithHash.
  explicit ArchiveRecords(Archive& archive) : archive_(archive) {}

  StatusOr<std::vector<store::Record>> Best(const store::WorkloadRef& workload) override;
  StatusOr<std::vector<search::KnownComputation>> WithHash(std::string_view hash) override;
  StatusOr<std::vector<store::PinnedSchedule>> Set(const std::string& workload_id) override;
  Status Visit(const std::string& workload_id,
               const std::function<Status(const store::Record&)>& visit) override;

 private:
  Archive& archive_;
  std::optional<search::ComputationsByHash> tuned_;
};

}  // namespace kiln::client
