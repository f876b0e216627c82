// The mutator of targets that call services. It changes fields of the calls, drops, repeats and
// swaps calls, and takes some over from another input.
#include <google/protobuf/reflection.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <string>

#include "base/numbers/rng.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/targets/calls.h"
#include "tests/fuzz/targets/fuzz_target.h"

namespace kiln::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Leaves an input as it was if the changed one does not fit, because a part of it would be no
// message.
size_t Put(const Message& calls, size_t size, size_t max_size, uint8_t* out) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(calls, &text);
  if (text.size() > max_size) return size;
  std::ranges::copy(text, reinterpret_cast<char*>(out));
  return text.size();
}

}  // namespace
}  // namespace kiln::fuzz

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  using namespace kiln::fuzz;
  kiln::Rng rng(seed);
  const auto calls = NewCalls();
  if (!ParseCalls(InputText(data, size), *calls)) calls->Clear();
  MutateMessage(*calls, rng);
  return Put(*calls, size, max_size, data);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1, const uint8_t* data2,
                                 size_t size2, uint8_t* out, size_t max_size, unsigned int seed) {
  using namespace kiln::fuzz;
  kiln::Rng rng(seed);
  const auto calls = NewCalls(), others = NewCalls();
  if (!ParseCalls(InputText(data1, size1), *calls)) calls->Clear();
  if (!ParseCalls(InputText(data2, size2), *others)) others->Clear();
  const auto& list = *calls->GetDescriptor()->field(0);
  const auto& reflection = *calls->GetReflection();
  for (int i = 0; i < reflection.FieldSize(*others, &list); ++i) {
    if (kiln::Chance(rng, 0.5)) continue;
    reflection.AddMessage(calls.get(), &list)
        ->CopyFrom(reflection.GetRepeatedMessage(*others, &list, i));
    const int size = reflection.FieldSize(*calls, &list);
    reflection.SwapElements(calls.get(), &list, size - 1,
                            static_cast<int>(kiln::UniformInt(rng, size)));
  }
  return Put(*calls, 0, max_size, out);
}
