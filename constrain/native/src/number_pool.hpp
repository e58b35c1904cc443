// The state behind NumberPool.  Internal.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "number_cursor.hpp"
#include "number_formula.hpp"
#include "number_language.hpp"

namespace constrain {

// A language read with plain integers whose values are one range per sign: magnitudes low..high.
struct NumberRanges {
  static constexpr uint64_t kUnbounded = ~uint64_t{0};
  bool usable = false;
  bool zero = false;
  uint64_t low[2] = {1, 1};
  uint64_t high[2] = {0, 0};  // below low: no value of this sign
};

struct NumberCompiled {
  NumberLanguage language;
  NumberRanges ranges;
};

// What a number is read for.
struct NumberContext {
  NumberId goal = 0;
  bool capture = false;
  std::vector<NumberId> tracked;
  NumberMode mode = NumberMode::kFree;
  NumberCompiled* compiled = nullptr;
  bool simple = false;  // nothing tracked or captured
};

// Answers that no longer depend on digits: per language bit 0, if the text ends without fraction
// and exponent, and bit 1, otherwise.  The goal comes first.  Record 0: the goal holds, and nothing
// is tracked.
struct NumberRecord {
  struct Entry {
    NumberId id;
    uint32_t bits;
  };
  std::vector<Entry> entries;
};

// A bounded map from (context, cursor) to what becomes of the cursor, and from (language, cursor)
// to its truth.
class NumberMemo {
 public:
  static constexpr size_t kMaxEntries = size_t{1} << 17;
  std::optional<uint32_t> get(uint32_t context, const NumberCursor& cursor) const;
  void put(uint32_t context, const NumberCursor& cursor, uint32_t outcome);
  void clear();
  size_t bytes() const { return slots_.capacity() * sizeof(Slot); }

 private:
  struct Slot {
    NumberCursor cursor;
    uint32_t context = 0;  // + 1; 0: free
    uint32_t outcome = 0;
  };
  static size_t hash(uint32_t context, const NumberCursor& cursor);
  std::vector<Slot> slots_;
  size_t used_ = 0;
};

struct NumberPool::Impl {
  explicit Impl(bool plain_numbers) : plain(plain_numbers) { records.emplace_back(); }

  NumberCompiled& compiled(NumberId id);
  uint32_t context(NumberId goal, std::span<const NumberId> tracked, bool capture);
  // Decides the fate of a cursor that has just been stepped and keeps its digits: dead (false), or
  // alive, perhaps with its digits dropped.
  bool settle(uint32_t context_id, NumberCursor& cursor);
  bool settle_ranges(const NumberRanges& ranges, NumberCursor& cursor) const;
  uint32_t judge(const NumberContext& c, const NumberCursor& cursor);
  std::optional<uint32_t> decide(NumberLanguage& language, const NumberContext& c,
                                 const NumberPrefix& prefix, const bool (&reachable)[2]);
  uint32_t record(const std::vector<NumberRecord::Entry>& entries);
  bool step(uint32_t context_id, NumberCursor& cursor, uint8_t byte);
  bool accepts(NumberId goal, const NumberCursor& cursor);
  // For a complete number whose digits are kept.
  bool holds_kept(NumberId id, const NumberCursor& cursor);

  // Completions (number_complete.cpp).
  bool complete(uint32_t context_id, const NumberCursor& cursor, std::string& out);
  std::string complete_decided(const NumberContext& c, const NumberCursor& cursor) const;
  void complete_plain(NumberLanguage& language, NumberMode mode, const NumberPrefix& prefix,
                      std::string& best) const;
  void complete_scaled(NumberLanguage& language, const NumberPrefix& prefix,
                       std::string& best) const;
  void complete_exponent(NumberLanguage& language, const NumberPrefix& prefix,
                         std::string& best) const;
  bool verify(uint32_t context_id, NumberCursor cursor, const std::string& text);

  // Bytes of languages, contexts and records.
  size_t counted_bytes();

  bool plain;
  size_t counted = 0, counted_things = 0;
  uint32_t counted_age = 0;
  NumberFormulas formulas;
  NumberPrefixes prefixes;
  std::vector<std::unique_ptr<NumberCompiled>> languages;  // by NumberId
  std::vector<std::unique_ptr<NumberContext>> contexts;
  std::vector<uint32_t> simple_contexts;                   // by goal: id + 1
  std::map<std::vector<uint32_t>, uint32_t> context_index;
  uint32_t last_context = ~0u;
  std::vector<NumberRecord> records;
  std::map<std::vector<uint32_t>, uint32_t> record_index;
  NumberMemo memo;       // cursors that hold all they remember
  NumberMemo long_memo;  // cursors that name a long prefix; forgotten when those are
};

}  // namespace constrain
