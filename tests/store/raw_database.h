#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <string>
#include <vector>

namespace fleetfit::store {

/// A database file as SQLite itself sees it, past the code under test.
class RawDatabase {
 public:
  explicit RawDatabase(const std::filesystem::path& path) {
    EXPECT_EQ(sqlite3_open(path.c_str(), &database_), SQLITE_OK);
  }
  RawDatabase(const RawDatabase&) = delete;
  RawDatabase& operator=(const RawDatabase&) = delete;
  ~RawDatabase() { sqlite3_close(database_); }

  void execute(const std::string& sql) { rows(sql); }

  /// The first column of all rows.
  std::vector<std::string> rows(const std::string& sql) {
    std::vector<std::string> rows;
    const auto keep = [](void* list, int, char** values, char**) {
      static_cast<std::vector<std::string>*>(list)->emplace_back(values[0] ? values[0] : "NULL");
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(database_, sql.c_str(), keep, &rows, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database_);
    return rows;
  }

  std::string value(const std::string& sql) {
    const auto all = rows(sql);
    return all.size() == 1 ? all[0] : std::to_string(all.size()) + " rows";
  }

 private:
  sqlite3* database_ = nullptr;
};

}  // namespace fleetfit::store
