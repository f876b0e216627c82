#include "base/console/config_file.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/console/usage.h"
#include "base/file/file.h"
#include "base/text/closest_names.h"
#include "base/text/json_string.h"
#include "base/text/toml_text.h"

namespace kiln {
namespace {

constexpr size_t kMaxBytes = 1 << 20;
constexpr size_t kColumns = 100;

std::string Quoted(std::string_view text) {
  std::string quoted;
  AppendJsonString(text, quoted);
  return quoted;
}

enum class Kind { kFlag, kWhole, kNumber, kText };

Kind KindOf(const CLI::Option& option) {
  if (option.get_expected_min() == 0) return Kind::kFlag;
  const std::string type = ValuesOf(option).type;
  if (type == "INT" || type == "UINT") return Kind::kWhole;
  return type == "FLOAT" ? Kind::kNumber : Kind::kText;
}

// Returns for instance "a whole number, 1 to 64".
std::string Expected(const CLI::Option& option) {
  const std::string check = ValuesOf(option).check;
  const std::string range = check.empty() ? "" : ", " + check;
  switch (KindOf(option)) {
    case Kind::kFlag:
      return "true or false";
    case Kind::kWhole:
      return "a whole number" + range;
    case Kind::kNumber:
      return "a number" + range;
    case Kind::kText:
      return "a text in quotes" + range;
  }
  return "";
}

// Returns what stands in the file, as a message names it.
std::string Found(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::string:
      return "the text " + Quoted(node.as_string()->get());
    case toml::node_type::integer:
      return fmt::format("{}", node.as_integer()->get());
    case toml::node_type::floating_point:
      return fmt::format("{}", node.as_floating_point()->get());
    case toml::node_type::boolean:
      return node.as_boolean()->get() ? "true" : "false";
    default:
      return "a date or time";
  }
}

// Returns the value as the command line would have it; nothing if it is of a wrong type.
std::optional<std::string> WordOf(const toml::node& node, Kind kind) {
  if (const auto* const text = node.as_string(); text != nullptr && kind == Kind::kText) {
    return text->get();
  }
  if (node.is_boolean() && kind == Kind::kFlag) return Found(node);
  if (node.is_integer() && (kind == Kind::kWhole || kind == Kind::kNumber)) return Found(node);
  const auto* const number = node.as_floating_point();
  if (number != nullptr && kind == Kind::kNumber && std::isfinite(number->get())) {
    return Found(node);
  }
  return std::nullopt;
}

// The name of a setting; "" for an option that is none.
std::string SettingOf(const CLI::Option& option) {
  const bool is_setting = option.get_configurable() && !option.get_lnames().empty();
  return is_setting ? option.get_lnames().front() : "";
}

class ConfigReader {
 public:
  ConfigReader(const std::string& path, std::string_view table, CLI::App& app)
      : path_(path), table_(table), app_(app) {}

  template <typename... Args>
  Status ErrorAt(const toml::source_region& where, fmt::format_string<Args...> format,
                 Args&&... args) const {
    return InvalidArgument("{}, line {}: {}", path_, where.begin.line,
                           fmt::format(format, std::forward<Args>(args)...));
  }

  Status CheckTables(const toml::table& root, std::span<const std::string_view> tables) const {
    const std::vector<std::string> known(tables.begin(), tables.end());
    for (const auto& [key, node] : InOrder(root)) {
      const std::string name(key->str());
      if (std::ranges::find(known, name) == known.end()) {
        return ErrorAt(key->source(), "{} is no daemon, expected one of {}{}", Quoted(name),
                       fmt::join(known, ", "), DidYouMean(name, known));
      }
      if (!node->is_table()) {
        return ErrorAt(key->source(), "{} is {}, expected a table: [{}]", name, Found(*node), name);
      }
    }
    return OkStatus();
  }

  Status Apply(const toml::table& table) const {
    for (const auto& [key, node] : InOrder(table)) KILN_RETURN_IF_ERROR(ApplyKey(*key, *node));
    return OkStatus();
  }

 private:
  Status ApplyKey(const toml::key& key, const toml::node& node) const {
    const std::string name(key.str());
    CLI::Option* const option = Find(name);
    if (option == nullptr) return Unknown(key);
    const std::optional<std::string> word = WordOf(node, KindOf(*option));
    if (!word.has_value()) return Refused(key, node, Expected(*option));
    // The command line goes first.
    if (option->count() > 0) return OkStatus();
    if (word->empty() && option->get_default_str().empty()) return OkStatus();
    try {
      option->add_result(*word);
      option->run_callback();
    } catch (const CLI::ConversionError&) {
      return Refused(key, node, Expected(*option));
    } catch (const CLI::ParseError& error) {
      if (!ValuesOf(*option).check.empty()) return Refused(key, node, Expected(*option));
      return ErrorAt(key.source(), "[{}] {}", table_, error.what());
    }
    return OkStatus();
  }

  CLI::Option* Find(std::string_view name) const {
    for (CLI::Option* const option : app_.get_options()) {
      if (!name.empty() && SettingOf(*option) == name) return option;
    }
    return nullptr;
  }

  Status Refused(const toml::key& key, const toml::node& node, const std::string& expected) const {
    return ErrorAt(key.source(), "[{}] {} is {}, expected {}", table_, key.str(), Found(node),
                   expected);
  }

  Status Unknown(const toml::key& key) const {
    const std::string name(key.str());
    std::vector<std::string> names;
    for (const CLI::Option* const option : app_.get_options()) {
      if (const std::string setting = SettingOf(*option); !setting.empty()) {
        names.push_back(setting);
      }
    }
    const std::string guess = DidYouMean(name, names);
    return ErrorAt(key.source(), "[{}] has no key {}{}", table_, Quoted(name),
                   guess.empty() ? "; `kiln config --defaults` prints all keys" : guess);
  }

  const std::string& path_;
  const std::string_view table_;
  CLI::App& app_;
};

// Returns `text` as lines of comments.
std::string Comment(const std::string& text) {
  std::string lines = "#";
  size_t width = 1;
  for (const std::string& word : CLI::detail::split(text, ' ')) {
    if (width > 1 && width + 1 + word.size() > kColumns) {
      lines += "\n#";
      width = 1;
    }
    lines += " " + word;
    width += 1 + word.size();
  }
  return lines + "\n";
}

std::string DefaultOf(const CLI::Option& option) {
  switch (KindOf(option)) {
    case Kind::kFlag:
      return "false";
    case Kind::kText:
      return Quoted(option.get_default_str());
    default:
      return option.get_default_str();
  }
}

}  // namespace

StatusOr<ConfigFile> ReadConfigFile(const std::string& path) {
  KILN_ASSIGN_OR_RETURN(std::string text, ReadFile(path, kMaxBytes));
  return ConfigFile{path, std::move(text)};
}

Status ApplyConfig(const ConfigFile& file, std::span<const std::string_view> tables,
                   std::string_view table, CLI::App& app) {
  const ConfigReader reader(file.path, table, app);
  toml::table root;
  if (const auto mistake = ParseToml(file.text, root)) {
    return reader.ErrorAt(mistake->where, "expected TOML: {}", mistake->description);
  }
  KILN_RETURN_IF_ERROR(reader.CheckTables(root, tables));
  const toml::table* const found = root[table].as_table();
  return found == nullptr ? OkStatus() : reader.Apply(*found);
}

std::string DefaultConfig(std::string_view table, const CLI::App& app) {
  std::string text = Comment(app.get_description()) + fmt::format("[{}]\n", table);
  for (const CLI::Option* const option : app.get_options()) {
    const std::string name = SettingOf(*option);
    if (name.empty()) continue;
    const std::string check = ValuesOf(*option).check;
    text += "\n" + Comment(option->get_description() + (check.empty() ? "" : "; " + check));
    const std::string value = DefaultOf(*option);
    text +=
        value.empty() ? Comment(name + " has no default") : fmt::format("{} = {}\n", name, value);
  }
  return text;
}

}  // namespace kiln
