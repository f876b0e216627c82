#include "store/wire/import_message.h"

namespace kiln::store {

v1::ImportRecordsReply ReplyOf(const ImportResult& result) {
  v1::ImportRecordsReply reply;
  reply.set_imported(static_cast<uint64_t>(result.imported));
  reply.set_duplicates(static_cast<uint64_t>(result.duplicates));
  reply.set_autotvm(static_cast<uint64_t>(result.autotvm));
  reply.set_ignored(static_cast<uint64_t>(result.ignored));
  reply.set_refused(static_cast<uint64_t>(result.refused));
  reply.mutable_errors()->Add(result.errors.begin(), result.errors.end());
  reply.set_fitting(static_cast<uint64_t>(result.fitting));
  reply.set_unfit(static_cast<uint64_t>(result.unfit));
  reply.set_first_unfit(result.first_unfit);
  return reply;
}

v1::BindKeyReply ReplyOf(const BindResult& result, const Computation& computation) {
  v1::BindKeyReply reply;
  reply.set_workload_id(computation.id);
  reply.set_bound(static_cast<uint64_t>(result.bound));
  reply.set_unfit(static_cast<uint64_t>(result.unfit));
  reply.set_first_unfit(result.first_unfit);
  return reply;
}

}  // namespace kiln::store
