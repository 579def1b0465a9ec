// A table of functions that the program brought, until a transport takes it or nobody needs it any more.
#pragma once

#include <utility>

#include "tacc/transport.h"

namespace tacc {

class PluginTable {
 public:
  explicit PluginTable(const taccTransport& table) : table_(table) {}
  ~PluginTable() {
    if (!isTaken_ && table_.destroy != nullptr) table_.destroy(table_.context);
  }
  PluginTable(const PluginTable&) = delete;
  PluginTable& operator=(const PluginTable&) = delete;

  const taccTransport& table() const noexcept { return table_; }
  /// From now on a caller of this ends the table's use.
  void take() noexcept { isTaken_ = true; }

 private:
  taccTransport table_;
  bool isTaken_ = false;
};

}  // namespace tacc
