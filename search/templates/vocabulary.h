// The words of a template's text: what may stand after '=' or by itself, and with which arguments.
// docs/templates.md says what each does.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::search {

// What a name or argument is.
enum class Meaning : uint8_t {
  kStage,
  kLoop,        // also choose(number, loop, loop, ...)
  kNumber,      // known once the computation is
  kKnobNumber,  // known once the values of knobs are
  kSplitKnob,   // knobs: KNOB[i] is a size of a split,
  kReorderKnob,
  kAnnotateKnob,
  kLocateKnob,  // KNOB[i] the place of a cache,
  kOptionKnob,  // KNOB the value of an option
  kWord,        // of a list, blockIdx.x for instance
};

// A step of a schedule. Signatures are words with blanks between them: stage, loop, number,
// split_knob, reorder_knob, annotate_knob, word; "stages" and "loops" are one or more.
struct Primitive {
  std::string_view word;
  std::string_view results;     // "": none
  std::string_view parameters;  // variants are separated by " or "
  // Does it leave the schedule as it is? Knobs may follow it.
  bool only_names = false;
};
std::span<const Primitive> Primitives();
// Null: there is none.
const Primitive* FindPrimitive(std::string_view word);
std::vector<std::string> PrimitiveWords();

// Where a stage of the computation is found: "reduction", "output", "input" of a stage, "op" by its
// name. With the signatures of primitives.
std::span<const Primitive> Places();

}  // namespace kiln::search
