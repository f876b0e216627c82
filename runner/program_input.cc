#include "runner/program_input.h"

namespace kiln::runner {

// If the device is the host, one thread makes the bytes, because the host's CPUs are what is timed.
UnsetBytes BytesOf(const Device& device, const ProgramInput& input, Content content) {
  const int threads = device.is_host() ? 1 : 0;
  return InputBytes(input.argument, input.ordinal, input.seed, content, threads);
}

StatusOr<std::shared_ptr<CachedBuffer>> InputBuffer(const Bench& bench, const ProgramInput& input,
                                                    Content content) {
  const std::string key = input.Key(content);
  if (auto cached = bench.cache.Find(key)) return cached;
  auto cached = std::make_shared<CachedBuffer>();
  KILN_ASSIGN_OR_RETURN(cached->buffer, bench.device.Allocate(input.argument));
  KILN_RETURN_IF_ERROR(bench.device.Fill(*cached->buffer, BytesOf(bench.device, input, content)));
  KILN_ASSIGN_OR_RETURN(cached->checksum, bench.device.Checksum(*cached->buffer));
  bench.cache.Insert(key, cached);
  return cached;
}

void ForgetInput(const Bench& bench, const ProgramInput& input) {
  bench.cache.Erase(input.Key(Content::kTimed));
  bench.cache.Erase(input.Key(Content::kOther));
}

}  // namespace kiln::runner
