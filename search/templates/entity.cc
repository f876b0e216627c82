#include "search/templates/entity.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/json/json_cursor.h"

namespace kiln::search {
namespace {

// ---- printing

// Returns the shortest digits that read back as the number, with a point or an exponent.
std::string NumberText(double number) {
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

struct OptionText {
  const char *none, *yes, *no;
  bool is_json;

  std::string operator()(std::monostate) const { return none; }
  std::string operator()(bool value) const { return value ? yes : no; }
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return NumberText(value); }
  std::string operator()(const std::string& value) const {
    return is_json ? JsonQuote(value) : value;
  }
};
constexpr OptionText kPython{"None", "True", "False", false};
constexpr OptionText kJson{"null", "true", "false", true};

std::string Words(const std::vector<std::string>& words, bool is_json) {
  std::string text;
  for (const std::string& word : words) {
    text += text.empty() ? "" : ", ";
    text += is_json ? JsonQuote(word) : fmt::format("'{}'", word);
  }
  return fmt::format("[{}]", text);
}

std::string Values(const Entity& entity, const OptionText& form) {
  if (const auto* split = std::get_if<SplitEntity>(&entity))
    return fmt::format("[{}]", fmt::join(split->sizes, ", "));
  if (const auto* reorder = std::get_if<ReorderEntity>(&entity))
    return fmt::format("[{}]", fmt::join(reorder->order, ", "));
  if (const auto* annotate = std::get_if<AnnotateEntity>(&entity)) {
    if (!annotate->places.empty()) return fmt::format("[{}]", fmt::join(annotate->places, ", "));
    return Words(annotate->words, form.is_json);
  }
  return std::visit(form, std::get<OptionEntity>(entity).value);
}

constexpr std::string_view kTags[] = {"sp", "re", "an", "ot"};

// ---- parsing

StatusOr<std::vector<int64_t>> ParseIntegers(JsonCursor& json) {
  std::vector<int64_t> numbers;
  KILN_RETURN_IF_ERROR(json.Array("a list of whole numbers", [&]() -> Status {
    KILN_ASSIGN_OR_RETURN(numbers.emplace_back(), json.Int("a whole number"));
    return OkStatus();
  }));
  return numbers;
}

// Reads words, or places of caches, which are numbers.
StatusOr<Entity> ParseAnnotations(JsonCursor& json) {
  AnnotateEntity entity;
  KILN_RETURN_IF_ERROR(json.Array("a list of annotations", [&]() -> Status {
    // The first annotation says what the others must be.
    if (!entity.words.empty() || (entity.places.empty() && json.Peek() == '"')) {
      KILN_ASSIGN_OR_RETURN(entity.words.emplace_back(), json.String("an annotation"));
    } else {
      KILN_ASSIGN_OR_RETURN(entity.places.emplace_back(), json.Int("a whole number"));
    }
    return OkStatus();
  }));
  return entity;
}

StatusOr<Entity> ParseOption(JsonCursor& json) {
  if (json.TakeWord("null")) return OptionEntity{};
  if (json.TakeWord("true")) return OptionEntity{true};
  if (json.TakeWord("false")) return OptionEntity{false};
  if (json.Peek() == '"') {
    KILN_ASSIGN_OR_RETURN(std::string word, json.String("a word"));
    return OptionEntity{std::move(word)};
  }
  constexpr std::string_view kValue = "a value: null, true, false, a number or a word";
  if (json.IsIntNext()) {
    KILN_ASSIGN_OR_RETURN(const int64_t number, json.Int(kValue));
    return OptionEntity{number};
  }
  KILN_ASSIGN_OR_RETURN(const double number, json.Double(kValue));
  return OptionEntity{number};
}

StatusOr<Entity> ParseValue(std::string_view tag, JsonCursor& json) {
  if (tag == "sp") {
    KILN_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, ParseIntegers(json));
    return SplitEntity{std::move(sizes)};
  }
  if (tag == "re") {
    KILN_ASSIGN_OR_RETURN(std::vector<int64_t> order, ParseIntegers(json));
    return ReorderEntity{std::move(order)};
  }
  if (tag == "an") return ParseAnnotations(json);
  return ParseOption(json);
}

StatusOr<std::string> ParseTag(JsonCursor& json) {
  JsonCursor ahead = json;
  KILN_ASSIGN_OR_RETURN(std::string tag, ahead.String("the kind of the knob"));
  if (std::ranges::find(kTags, tag) == std::end(kTags)) {
    return json.Error("a kind of knob, one of \"sp\", \"re\", \"an\", \"ot\"");
  }
  json = ahead;
  return tag;
}

StatusOr<NamedEntity> ParseKnob(JsonCursor& json) {
  KILN_RETURN_IF_ERROR(json.Expect('[', "a knob: [name, kind, value]"));
  KILN_ASSIGN_OR_RETURN(std::string name, json.String("the name of a knob"));
  KILN_RETURN_IF_ERROR(json.Expect(',', "after the name of the knob"));
  KILN_ASSIGN_OR_RETURN(const std::string tag, ParseTag(json));
  KILN_RETURN_IF_ERROR(json.Expect(',', "after the kind of the knob"));
  KILN_ASSIGN_OR_RETURN(Entity entity, ParseValue(tag, json));
  KILN_RETURN_IF_ERROR(json.Expect(']', "the end of the knob"));
  return NamedEntity(std::move(name), std::move(entity));
}

}  // namespace

std::string PrintEntity(const Entity& entity) { return Values(entity, kPython); }

std::string PrintEntities(std::span<const NamedEntity> entities) {
  std::string json;
  for (const auto& [name, entity] : entities) {
    json += fmt::format("{}[{}, \"{}\", {}]", json.empty() ? "" : ", ", JsonQuote(name),
                        kTags[entity.index()], Values(entity, kJson));
  }
  return fmt::format("[{}]", json);
}

std::string PrintValues(std::span<const NamedEntity> entities) {
  std::string text;
  for (const auto& [name, entity] : entities) {
    std::string value = PrintEntity(entity);
    std::erase(value, ' ');
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  return text;
}

StatusOr<std::vector<NamedEntity>> ParseEntities(std::string_view text) {
  JsonCursor json(text);
  std::vector<NamedEntity> entities;
  KILN_RETURN_IF_ERROR(json.Array("a list of knobs", [&]() -> Status {
    KILN_ASSIGN_OR_RETURN(NamedEntity entity, ParseKnob(json));
    entities.push_back(std::move(entity));
    return OkStatus();
  }));
  KILN_RETURN_IF_ERROR(json.ExpectEnd());
  return entities;
}

}  // namespace kiln::search
