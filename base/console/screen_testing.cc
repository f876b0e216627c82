#include "base/console/screen_testing.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace kiln {
namespace {

std::vector<std::string> Trimmed(std::vector<std::string> rows) {
  for (std::string& row : rows) row.erase(row.find_last_not_of(' ') + 1);
  while (!rows.empty() && rows.back().empty()) rows.pop_back();
  return rows;
}

}  // namespace

ScreenModel::ScreenModel(int columns, int rows)
    : columns_(columns), rows_(rows), screen_(static_cast<size_t>(rows)), other_(screen_) {}

void ScreenModel::Feed(std::string_view bytes) {
  const std::string all = std::exchange(partial_, {}) + std::string(bytes);
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] != '\033') {
      Put(all[i]);
      continue;
    }
    const size_t end = all.find_first_not_of("[?;0123456789", i + 1);
    if (end == std::string::npos) {
      partial_ = all.substr(i);
      return;
    }
    Control(std::string_view(all).substr(i + 1, end - i - 1), all[end]);
    i = end;
  }
}

void ScreenModel::Put(char c) {
  if (c == '\r') {
    column_ = 0;
  } else if (c == '\n') {
    NewLine();
  } else {
    if (column_ == columns_) NewLine();
    std::string& row = screen_[static_cast<size_t>(row_)];
    row.resize(std::max<size_t>(row.size(), static_cast<size_t>(column_) + 1), ' ');
    row[static_cast<size_t>(column_++)] = c;
  }
}

void ScreenModel::NewLine() {
  column_ = 0;
  if (++row_ < rows_) return;
  row_ = rows_ - 1;
  if (!alternate_) scrollback_.push_back(Trimmed({screen_[0], "x"})[0]);
  screen_.erase(screen_.begin());
  screen_.emplace_back();
}

void ScreenModel::Control(std::string_view parameters, char command) {
  if (!parameters.starts_with('[')) {
    ++unknown_;
    return;
  }
  parameters.remove_prefix(1);
  std::string& row = screen_[static_cast<size_t>(row_)];
  if (command == 'A') {
    row_ = std::max(0, row_ - std::max(1, std::atoi(std::string(parameters).c_str())));
    column_ = std::min(column_, columns_ - 1);
  } else if (command == 'H' && parameters.empty()) {
    row_ = column_ = 0;
  } else if (command == 'J' && parameters.empty()) {
    Erase(row_);
  } else if (command == 'K' && parameters == "2") {
    row.clear();
  } else if (command == 'K' && parameters.empty()) {
    row.resize(std::min<size_t>(row.size(), static_cast<size_t>(std::min(column_, columns_ - 1))));
  } else if ((command == 'h' || command == 'l') && parameters.starts_with('?')) {
    SetMode(parameters.substr(1), command == 'h');
  } else if (command != 'm') {
    ++unknown_;
  }
}

// Erases from the cursor to the end of the screen.
void ScreenModel::Erase(int first_row) {
  if (row_ == 0 && column_ == 0 && !alternate_) {
    for (const std::string& row : Trimmed(screen_)) scrollback_.push_back(row);
  }
  std::string& row = screen_[static_cast<size_t>(first_row)];
  row.resize(std::min<size_t>(row.size(), static_cast<size_t>(std::min(column_, columns_ - 1))));
  for (auto i = static_cast<size_t>(first_row) + 1; i < screen_.size(); ++i) screen_[i].clear();
}

void ScreenModel::SetMode(std::string_view mode, bool on) {
  if (mode == "25") {
    cursor_shown_ = on;
  } else if (mode != "1049") {
    ++unknown_;
  } else if (on != alternate_) {
    alternate_ = on;
    std::swap(screen_, other_);
    if (on) {
      main_row_ = row_;
      main_column_ = column_;
      screen_.assign(static_cast<size_t>(rows_), "");
    } else {
      row_ = main_row_;
      column_ = main_column_;
    }
  }
}

void ScreenModel::Resize(int columns, int rows) {
  const auto cut = [&](Rows& screen, int& row, bool main) {
    for (; row >= rows; --row) {
      if (main) scrollback_.push_back(Trimmed({screen[0], "x"})[0]);
      screen.erase(screen.begin());
    }
    screen.resize(static_cast<size_t>(rows));
    for (std::string& line : screen) {
      line.resize(std::min(line.size(), static_cast<size_t>(columns)));
    }
  };
  cut(screen_, row_, !alternate_);
  if (alternate_) cut(other_, main_row_, true);
  if (!alternate_) other_.resize(static_cast<size_t>(rows));
  columns_ = columns;
  rows_ = rows;
  column_ = std::min(column_, columns);
}

std::vector<std::string> ScreenModel::Visible() const { return Trimmed(screen_); }

}  // namespace kiln
