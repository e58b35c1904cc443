// String languages of a vocabulary, hash-consed, and the automaton that reads them byte by byte.
//
// A language is a boolean combination of regex states, finite sets and length bounds over code
// points.  `advance` is its derivative by a code point.  Languages that become empty are reduced to
// kNothing at once, so that a live id always has a member; emptiness is decided by search under a
// step budget, and an exhausted budget counts as live.
//
// On top of the code points sits a decoder for JSON strings (escapes, surrogate pairs, UTF-8), for
// Python's strings, or for raw UTF-8 text, which goes on for ever or up to a text of its own (a
// stop).  A byte is admitted only if some code point that it can still become keeps the language
// alive.
//
// The pool is shared by all programs of a vocabulary and is not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "constrain/byte_regions.hpp"
#include "constrain/machine.hpp"
#include "constrain/numbers.hpp"
#include "constrain/regex_dfa.hpp"
#include "constrain/string_sets.hpp"
#include "constrain/util.hpp"

namespace constrain {

using LexId = uint32_t;
using TextId = uint32_t;  // interned text of code points; 0 is the empty text

class LexicalPool final : public LexicalStepper, public CharacterStepper {
 public:
  static constexpr LexId kNothing = 0;
  static constexpr LexId kAnything = 1;
  static constexpr uint32_t kJson = 0;           // decoder at a character boundary of a JSON string
  static constexpr uint32_t kRaw = 0x80000000u;  // the same in raw text
  static constexpr uint32_t kSingleQuoted = 1u << 22;   // in a string of Python
  static constexpr uint32_t kDoubleQuoted = 2u << 22;
  // In a JSON string with escapes only where there must be one, each in one spelling.
  static constexpr uint32_t kPlainJson = 3u << 22;

  LexicalPool();
  ~LexicalPool() override;

  // ---- building languages
  LexId regex(const std::vector<int32_t>& program);
  LexId strings(StringSet set);
  LexId min_length(uint32_t n);
  LexId max_length(uint32_t n);
  LexId both(LexId a, LexId b);
  LexId either(LexId a, LexId b);
  LexId all_of(std::span<const LexId> parts);
  LexId any_of(std::span<const LexId> parts);
  LexId exactly_one(std::span<const LexId> parts);
  LexId negate(LexId a);

  // ---- asking
  LexId advance(LexId id, uint32_t code_point);   // kNothing if the result is empty
  LexId advance_text(LexId id, std::span<const uint32_t> text);
  bool accepts(LexId id);                          // the empty string is a member
  bool live(LexId id) { return id == kAnything || (id != kNothing && is_live(id)); }
  bool contains(LexId id, TextId text);            // memoised
  // Derivatives that searches for members have taken so far.
  uint64_t search_work() const { return search_work_; }
  // The language without its finite sets (each replaced by the empty set), and the union of those
  // sets: outside of that union the two languages agree.
  LexId without_sets(LexId id);
  StringSet union_of_sets(LexId id);
  bool has_sets(LexId id) const { return nodes_[id].has_sets; }
  // Number of members, at most `cap`; cap also when the count was too expensive.
  size_t count(LexId id, size_t cap);
  // All members; false if there are more than cap or the search grew too large.
  bool enumerate(LexId id, size_t cap, std::vector<std::vector<uint32_t>>& out);
  // A shortest member, smallest code points first where that is cheap; false: none found.
  bool witness(LexId id, std::vector<uint32_t>& out);
  // A member that is written with the fewest bytes, in raw text or in a JSON string; false: none
  // found.
  bool shortest(LexId id, bool raw, std::vector<uint32_t>& out);
  // The fewest bytes that end a unit here, without its closing quote.
  bool finish(LexId goal, uint32_t decoder, std::string& out);
  // Appends a code point as it is written.
  static void spell(std::string& out, uint32_t code_point, bool raw);
  // Appends what is left of a code point that the decoder, inside a character, can become.
  static void spell_rest(uint32_t decoder, uint32_t code_point, std::string& out);
  // One code point of each class that `id` distinguishes.
  std::vector<uint32_t> representatives(LexId id);
  // If id is a finite set and nothing else.
  bool as_set(LexId id, StringSet& set) const;
  // A conjunction of `base` and length bounds: the bounds that remain (0 and UINT32_MAX if none).
  void split_lengths(LexId id, LexId& base, uint32_t& least, uint32_t& most);

  // ---- reading bytes
  LexStep step(LexCursor& cursor, uint8_t byte, uint32_t& outcome) override;
  static constexpr uint32_t kNone = 0xFFFFFFFFu;

  // The decoder alone: kEnd for the last byte of the unit (a closing quote), else `code_point` is
  // the code point completed by this byte, or kNone.
  LexStep decode(uint32_t& decoder, uint8_t byte, uint32_t& code_point) const;
  // The decoder, inside a character, can still become this code point.
  static bool can_become(uint32_t decoder, uint32_t code_point);
  // Some member of the set begins with a code point that the decoder can still become.
  bool can_begin(StringSet set, uint32_t decoder) const;
  // Inside a character, the language without its finite sets if none of them can be meant any more.
  LexId drop_sets(LexId goal, uint32_t decoder);
  // Some code point that the decoder, inside a character, can still become keeps `goal` alive.
  bool admits(LexId goal, uint32_t decoder);
  // Truth of each tracked language at the end of the unit, as a list id.
  uint32_t outcome(uint32_t tracked);
  uint32_t advance_list(uint32_t tracked, uint32_t code_point);

  LexStep finish(const LexCursor& cursor, std::string& out, uint32_t& outcome) override;
  uint32_t farthest(const LexCursor& cursor) override;

  // By characters.  The languages of the cursor are free of sets.
  CharacterStepper* by_characters() override { return this; }
  uint32_t classes_of(const LexCursor& cursor) override;
  const CharClasses& classes(uint32_t number) const override { return partition_list_[number]; }
  bool at_boundary(uint32_t decoder) const override { return begins(decoder); }
  LexStep decode_byte(uint32_t& decoder, uint8_t byte, uint32_t& code_point) const override {
    return decode(decoder, byte, code_point);
  }
  size_t reachable(uint32_t decoder, CodePointRange out[3]) const override;
  bool take(LexCursor& cursor, uint32_t code_point) override;
  bool anything(const LexCursor& cursor) const override {
    return cursor.goal == kAnything && cursor.tracked == 0;
  }
  bool lasting(const LexCursor& cursor) const override { return is_lasting(cursor.goal); }
  LexCursor like(const LexCursor& cursor) override;
  LexCursor common() const override { return {kAnything, 0, kJson, LexCursor::kJson}; }
  bool ends(const LexCursor& cursor, uint32_t& outcome) override;

  // ---- interned lists and texts
  uint32_t list(std::span<const uint32_t> items) { return lists_.intern(items); }
  std::span<const uint32_t> list(uint32_t id) const { return lists_.get(id); }
  std::vector<uint32_t> list_copy(uint32_t id) const { return lists_.copy(id); }
  TextId text_append(TextId text, uint32_t code_point);
  // The same for a text that is only tried: it is not interned, so equal texts may have different
  // ids, and they are valid until forget_tried_texts().
  TextId try_text(TextId text, uint32_t code_point);
  void forget_tried_texts() { tried_texts_.clear(); }
  TextId text(std::span<const uint32_t> code_points);
  TextId text(std::string_view utf8);
  std::vector<uint32_t> text_code_points(TextId text) const;
  std::string text_utf8(TextId text) const;
  StringSets& sets() { return sets_; }

  // ---- units with an end of their own
  // The decoder at the start of raw text that ends with the first `stop`: UTF-8, in which the byte
  // 0xFF (of a special token) can only be the last one.  Throws LimitError for too many stops.
  uint32_t raw_until(std::string_view stop);
  // What is read in such a unit whose text is in `language`, up to the last character of the stop:
  // the text and the rest of the stop.  For other units the language itself.
  LexId until(LexId language, uint32_t decoder);
  // Texts that a stop can be written behind: the first one is then that.
  LexId free_of(uint32_t decoder);
  // The text of a unit that was read up to the last character of its stop.
  TextId without_stop(TextId read, uint32_t decoder) const;
  // The bytes of the last character, a quote for strings.
  std::string terminator(uint32_t decoder) const;
  // Both are units that end with the same stop.
  bool same_end(uint32_t decoder, uint32_t other) const;
  // Outside of any character.
  static bool between(uint32_t decoder);
  // Appends a code point as it is written in the unit.
  static void spell_in(std::string& out, uint32_t code_point, uint32_t decoder);
  // Whether JSON must write it as an escape.
  static bool needs_escape(uint32_t code_point) {
    return code_point < 0x20 || code_point == '"' || code_point == '\\';
  }

  // ---- regions of byte automata, whose cursors have the region as goal and its state as tracked
  static constexpr uint32_t kRegion = 5u << 28;   // decoder of such a cursor
  ByteRegions& regions() { return regions_; }

  // ---- numbers: the language is the goal, the digits are tracked
  static constexpr uint32_t kNumber = 6u << 28;   // decoder, with kPlainNumber and the phase
  static constexpr uint32_t kPlainNumber = 1u << 27;
  static constexpr uint32_t kDigitsOnly = 1u << 26;
  void set_token_lengths(uint32_t bytes, uint32_t digits) override {
    token_bytes_ = bytes;
    digit_run_ = digits;
  }
  uint32_t digit_run() const { return digit_run_; }
  NumberPool& numbers(bool plain) { return plain ? plain_numbers_ : any_numbers_; }
  bool number(const LexCursor& cursor, NumberPlace& place) const override;
  bool step_number(NumberPlace& place, uint8_t byte) override;
  bool number_ends(const NumberPlace& place) override;
  const ByteRegion* region(const LexCursor& cursor) const override {
    return cursor.decoder == kRegion ? &regions_[cursor.goal] : nullptr;
  }

  size_t bytes() const;
  // Languages that all searches looked at so far.
  uint64_t effort() const { return effort_; }

 private:
  // kLagging: texts of a regex's state followed by a stop without its last character; the regex has
  // not read yet what may be the stop.
  enum class Op : uint8_t {
    kNothing, kAnything, kRegex, kSet, kMin, kMax, kLagging, kAnd, kOr, kOne, kNot,
  };
  struct Node {
    Op op;
    bool uniform = true;   // speaks of lengths only
    bool has_sets = false;
    int8_t live = -1;      // -1 unknown
    int8_t accepts = -1;
    uint32_t a = 0, b = 0;
    uint32_t row = FlatMap::kMissing;      // ASCII transitions
    uint32_t dfas = FlatMap::kMissing;     // list of the regexes inside
    uint32_t uniform_next = FlatMap::kMissing;
    uint32_t parts = 1;                    // that a derivative derives
  };
  struct TextNode {
    TextId parent;
    uint32_t code_point;
  };

  struct Stop {
    std::vector<uint32_t> characters;   // the last one may be kSpecial
    std::vector<uint32_t> border;       // of each prefix: its longest proper prefix that ends it
    uint32_t first = 0;                 // position before the first character
    LexId anything = kAnything;         // any text and then the stop without its last character
  };
  static constexpr uint32_t kSpecial = 0x110000;   // the byte 0xFF, as a character
  static uint32_t position_of(uint32_t decoder);
  static uint32_t at_position(uint32_t position);
  bool begins(uint32_t decoder) const;
  const Stop& stop_at(uint32_t position) const { return stops_[positions_[position]]; }
  LexStep decode_raw(uint32_t& decoder, uint8_t byte, uint32_t& code_point) const;
  LexStep decode_python(uint32_t& decoder, uint8_t byte, uint32_t& code_point) const;
  LexId lagging(LexId regex, uint32_t position);
  LexId derive_lagging(LexId regex, uint32_t position, uint32_t code_point);
  LexId followed(LexId id, const Stop& stop, std::unordered_map<LexId, LexId>& memo);

  LexId make(Op op, uint32_t a, uint32_t b = 0);
  LexId make_list(Op op, std::vector<LexId> parts);
  LexId regex_state(uint32_t dfa, uint32_t state);
  LexId derive(LexId id, uint32_t code_point);
  LexId advance_slow(LexId id, uint32_t code_point);
  bool is_live(LexId id);
  bool search_live(LexId id);
  uint64_t search_work_ = 0;
  uint32_t given_up_ = 0;         // searches of languages with many parts
  bool some_live(LexId id, uint32_t low, uint32_t high);
  void cheapest(LexId id, bool raw, std::vector<uint32_t>& out);
  uint32_t dfas_of(LexId id);
  // What these regexes distinguish.  References stay valid.
  const CharClasses& partition(uint32_t dfas) { return partition_list_[partition_number(dfas)]; }
  uint32_t partition_number(uint32_t dfas);
  void interval_starts(std::span<const uint32_t> dfas, std::vector<uint32_t>& out) const;
  // The number of the partition of intervals that begin at `starts` by what distinguishes them.
  uint32_t intern_partition(std::vector<uint32_t> starts,
                            std::vector<std::vector<uint32_t>> signatures);
  // How the classes of a regex merge where only what can be reached from this state counts: an
  // index into merged_; 0: not at all.
  uint32_t merged_classes(uint32_t dfa, uint32_t state);
  void collect_states(LexId id, std::vector<std::pair<uint32_t, uint32_t>>& out);
  uint32_t class_of(const CharClasses& p, uint32_t code_point) const;
  void collect_sets(LexId id, std::vector<StringSet>& out);
  template <class Leaf>
  LexId rebuild(LexId id, Leaf leaf, std::unordered_map<LexId, LexId>& memo);

  static constexpr size_t kSearchBudget = 60'000;   // languages that a search looks at
  size_t most_steps_ = kSearchBudget;
  uint64_t effort_ = 0;
  std::vector<Node> nodes_;
  IdSet node_set_;
  ListInterner lists_;
  StringSets sets_;
  ByteRegions regions_;
  NumberPool plain_numbers_{true}, any_numbers_{false};
  bool is_lasting(LexId id) const;
  // A regex that is about to grow, or may be.
  RegexDfa& growing(uint32_t dfa) {
    if (dfa_bytes_[dfa] != kStale) {
      held_bytes_ -= dfa_bytes_[dfa];
      dfa_bytes_[dfa] = kStale;
      stale_.push_back(dfa);
    }
    return *dfas_[dfa];
  }

  uint32_t token_bytes_ = UINT32_MAX, digit_run_ = 0;   // of the longest in a token
  std::vector<std::unique_ptr<RegexDfa>> dfas_;
  // Bytes of what comes in great numbers, added up as it is made.  Regexes that have grown since
  // bytes() was last asked are added there.
  static constexpr size_t kStale = ~size_t{0};
  mutable size_t held_bytes_ = 0;
  mutable std::vector<size_t> dfa_bytes_;
  mutable std::vector<uint32_t> stale_;
  std::vector<std::vector<int32_t>> dfa_programs_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> dfa_index_;
  std::vector<std::array<uint32_t, 128>> rows_;
  FlatMap wide_by_class_, wide_by_point_, contains_, without_, unions_, partitions_,
      shortest_, farthest_;
  std::deque<CharClasses> partition_list_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> partition_index_;   // by content
  std::vector<std::vector<uint32_t>> merged_{{}};   // merged class of each class of a regex
  FlatMap merged_index_;                            // by regex and state
  FlatMap merged_partitions_;                       // by list of regexes and merged_
  std::vector<Stop> stops_;
  std::vector<uint32_t> positions_{0};              // the stop of each position; 0: none
  std::unordered_map<std::string, uint32_t> stop_index_;
  FlatMap until_;                                   // by language and stop
  std::vector<TextNode> texts_;
  static constexpr TextId kTried = 1u << 31;
  std::vector<TextNode> tried_texts_;
  FlatMap text_index_;
};

}  // namespace constrain
