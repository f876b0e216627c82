// Spoils valid inputs: bytes, numbers and words of text, fields of messages. Deterministic for the
// state of its generator.
#pragma once

#include <google/protobuf/message.h>

#include <span>
#include <string>
#include <string_view>

#include "base/rng.h"

namespace kiln::fuzz {

// One to four changes: bytes flipped, cut out, put in and repeated; numbers made extreme; words of
// `dictionary`, or a piece of `other`, put in. At most `most_bytes` long.
std::string MutateText(std::string_view text, std::string_view other,
                       std::span<const std::string_view> dictionary, size_t most_bytes, Rng& rng);

// A change or three that mostly leave text of the kind that it was: of its pieces, each up to
// and with a `separator`, some are cut out, repeated, swapped, or taken from `other`; numbers
// become others of their size.
std::string MutatePieces(std::string_view text, std::string_view other, std::string_view separator,
                         Rng& rng);

// One number, type, function or operator becomes another one, wherever it stands: what was a valid
// computation often is one still.
std::string ReplaceEverywhere(std::string_view text, Rng& rng);

// One of the numbers that begin a list, as the lengths of a split do, becomes another one.
std::string ChangeListHead(std::string_view text, Rng& rng);

// Sets, clears or spoils a few fields, at any depth.
void MutateMessage(google::protobuf::Message& message, Rng& rng);

// A number that tends to be forgotten, as text: 0, -1, limits of types, "nan".
std::string ExtremeNumber(Rng& rng);

}  // namespace kiln::fuzz
