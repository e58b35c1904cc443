// Per vocabulary: which tokens stay inside a lexical unit, and what remains of those that end it.
//
// A table belongs to a position in a unit (a LexCursor) and a node of the trie, the root for masks
// of a config inside a unit, another node for tokens that begin with structure and go on inside a
// unit.  It is a function of the two, shared by all constraints of the vocabulary, and holds
//
//   inside      the tokens of the subtree that end inside the unit;
//   remainders  per outcome of the unit, a trie of what follows the unit's last byte, with the
//               tokens at its nodes.  Tokens with equal remainders share a node.  Where nothing but
//               JSON may follow (the cursor's context says so), remainders that no JSON text
//               continues with, whatever is open, are left out.
//
// The table of the root for a cursor at a character boundary is put together from the tokens'
// classes of characters (class_trie.hpp): tens of microseconds for a language that counts
// characters or repeats a class, once the class trie is there (2 to 3 ms for a 128k vocabulary, less
// where few characters are live).  Those of a context share one trie of remainders and say which of
// its tokens they mean.  Other tables walk the subtree with the lexical stepper.
//
// Tables of cursors in a region of a byte automaton are made by region_tables.hpp.
//
// Tables and class tries are bounded in bytes and dropped least recently used first, but only by
// `trim`, so that pointers stay valid during a fill.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "constrain/bits.hpp"
#include "constrain/class_trie.hpp"
#include "constrain/machine.hpp"
#include "constrain/region_tables.hpp"
#include "constrain/remainders.hpp"
#include "constrain/trie.hpp"

namespace constrain {

class LexicalTable {
 public:
  // row |= tokens that stay inside.  `ended_by`: see `merged`.
  void add_to(uint32_t* row) const;
  // row = tokens that stay inside and no others.
  void write_to(uint32_t* row, size_t words) const;

  std::span<const Remainders> remainders() const { return remainders_; }
  std::span<const Leap> leaps() const { return leaps_; }
  // The unit may end here before a gap (gap.hpp), with outcome 0: of tables of the root.  Tokens
  // that begin behind the unit are in no remainders then.
  bool gap_behind() const { return gap_behind_; }
  // Tokens that end exactly with the unit are part of the inside row already, because the unit has
  // one outcome only: where leaving it is impossible they must be taken out again.
  bool merged() const { return merged_; }
  // Using the table may take such tokens out of the row again.
  bool takes_out() const { return merged_ && remainders_[0].any_at_root(); }
  // Below these nodes the table knows nothing: the machine must be asked, along `path` from the
  // table's node and then into `node`.
  struct Detour {
    std::string path;
    uint32_t node;
  };
  std::span<const Detour> detours() const { return detours_; }
  // The whole inside row where it is kept whole, else null.
  const uint32_t* dense() const { return dense_.empty() ? nullptr : dense_.data(); }
  std::span<const WordBits> sparse() const { return sparse_; }
  size_t bytes() const { return bytes_; }
  // Takes the row as it is, and what remains of other tokens.
  void set(const std::vector<uint32_t>& row, std::vector<Remainders> remainders);

 private:
  friend class LexicalTables;
  std::vector<uint32_t> dense_;      // one of the two is used
  std::vector<WordBits> sparse_;
  std::vector<Remainders> remainders_;
  std::vector<Leap> leaps_;
  std::vector<Detour> detours_;
  bool merged_ = false;
  bool gap_behind_ = false;
  size_t bytes_ = 0;
  uint64_t last_used_ = 0;
};

class LexicalTables {
 public:
  LexicalTables(const Trie& trie, LexicalStepper& stepper, uint32_t size, size_t max_bytes);

  // The table of this cursor below this trie node; built when missing.
  const LexicalTable& get(const LexCursor& cursor, uint32_t node);
  // Like get, but null when missing.
  const LexicalTable* find(const LexCursor& cursor, uint32_t node) const;

  // Drops the least recently used tables when they hold more than the bound.
  void trim();
  void set_max_bytes(size_t limit) { max_bytes_ = limit; }
  // False: every table is made by walking bytes, which gives equal tables, for comparison.
  void use_classes(bool use) { use_classes_ = use; }
  // Changes whenever tables were dropped: pointers from before are invalid.
  uint32_t generation() const { return generation_; }
  size_t bytes() const { return bytes_ + class_bytes_ + shared_bytes_ + regions_.bytes(); }
  size_t count() const { return tables_.size(); }
  size_t words() const { return words_; }
  // Tables built, of them by classes, lexical steps and visits of class nodes so far, for
  // benchmarks.
  uint64_t built() const { return built_; }
  uint64_t built_by_class() const { return built_by_class_; }
  uint64_t steps() const { return steps_ + regions_.steps(); }
  uint64_t visits() const { return visits_made_; }

 private:
  struct Key {
    LexCursor cursor;
    uint32_t node = 0;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& k) const {
      uint64_t h = (uint64_t{k.cursor.goal} << 32 | k.cursor.tracked) * 0x9E3779B97F4A7C15ull;
      h ^= h >> 29;
      h += (uint64_t{k.cursor.decoder} << 32 | k.node) ^ uint64_t{k.cursor.context} << 61;
      h *= 0xBF58476D1CE4E5B9ull;
      return static_cast<size_t>(h ^ h >> 32);
    }
  };
  struct Frame {
    uint32_t next, end;
  };
  struct End {
    uint32_t outcome, node;
  };

  struct Visit {
    uint32_t node;
    LexCursor cursor;
  };
  struct Outcome {
    uint32_t outcome;
    std::vector<uint32_t> row;   // tokens whose unit ends so
  };
  // What a visit of class nodes has found so far.
  struct Found {
    std::vector<uint32_t> inside;
    std::vector<Outcome> outcomes;   // the first `used`
    size_t used = 0;
    void clear(size_t words);
    std::vector<uint32_t>& ended_with(uint32_t outcome);
  };
  // What is found below a child of the root of a class trie from one position.
  struct Shared {
    bool known = false;
    std::vector<WordBits> inside;
    std::vector<std::pair<uint32_t, std::vector<WordBits>>> ended;
    size_t bytes() const {
      size_t total = sizeof(*this) + 64 + inside.capacity() * sizeof(WordBits);
      for (const auto& [outcome, words] : ended) total += 64 + words.capacity() * sizeof(WordBits);
      return total;
    }
  };

  // Of a unit of any language, read from a character boundary.
  struct Plain {
    std::unique_ptr<const CharTrie> chars;
    std::vector<uint32_t> inside;                     // tokens that stay inside
    std::shared_ptr<const RemainderTrie> remainders[2];   // of those that end it, by context
  };

  std::unique_ptr<LexicalTable> build(const LexCursor& cursor, uint32_t node);
  void walk_number(LexicalTable& table, const NumberPlace& place, const LexCursor& cursor,
                   uint32_t node);
  void walk_bytes(LexicalTable& table, const LexCursor& cursor, uint32_t node);
  void visit_classes(LexicalTable& table, CharacterStepper& stepper, uint32_t classes,
                     const LexCursor& cursor);
  // Of a cursor that lasts: all that matters is where the unit ends.
  void visit_ends(LexicalTable& table, CharacterStepper& stepper, const LexCursor& cursor);
  // Keeps the outcomes that were found.
  void keep_outcomes(LexicalTable& table, const std::shared_ptr<const RemainderTrie>& rest);
  ClassTrie& class_trie(CharacterStepper& stepper, uint32_t classes, uint32_t decoder);
  void visit_node(ClassTrie& trie, CharacterStepper& stepper, const Plain& all, const Visit& visit,
                  Found& found);
  // The same for a node and all below it, by the characters themselves.
  void walk_chars(ClassTrie& trie, CharacterStepper& stepper, const Plain& all, const Visit& visit,
                  Found& found);
  void add_all(const CharTrie& chars, std::span<const CharTrie::Run> runs, uint32_t outcome,
               const Plain& all, Found& found);
  bool admits(ClassTrie& trie, CharacterStepper& stepper, const LexCursor& at, uint32_t class_set,
              uint64_t number);
  void visit_below(ClassTrie& trie, CharacterStepper& stepper, const Plain& all, const Visit& top,
                   Found& found);
  const CharTrie& char_trie(CharacterStepper& stepper, uint32_t decoder);
  const Plain& plain(CharacterStepper& stepper, uint32_t decoder);
  const std::shared_ptr<const RemainderTrie>& plain_remainders(uint32_t decoder, uint32_t context);
  static Remainders choose(uint32_t outcome, std::shared_ptr<const RemainderTrie> trie,
                           const uint32_t* row);
  void trim_classes();

  const Trie& trie_;
  LexicalStepper& stepper_;
  size_t words_;
  size_t max_bytes_;
  bool use_classes_ = true;
  size_t bytes_ = 0;          // of tables
  size_t class_bytes_ = 0;
  size_t shared_bytes_ = 0;   // of plain_
  uint64_t tick_ = 0;
  uint32_t generation_ = 0;
  uint64_t built_ = 0;
  uint64_t built_by_class_ = 0;
  uint64_t steps_ = 0;
  uint64_t visits_made_ = 0;
  std::unordered_map<Key, std::unique_ptr<LexicalTable>, KeyHash> tables_;
  std::unordered_map<uint64_t, std::unique_ptr<ClassTrie>> class_tries_;   // classes, decoder
  std::unordered_map<const ClassTrie*, std::unordered_map<Key, Shared, KeyHash>> trie_shares_;
  std::unordered_map<uint32_t, Plain> plain_;   // by decoder
  // Scratch of build.
  std::vector<Frame> frames_;
  std::vector<LexCursor> cursors_;
  std::vector<uint32_t> row_;
  std::vector<End> ends_;
  std::vector<uint32_t> before_;
  std::vector<NumberPlace> places_;
  std::vector<Visit> visits_;
  Found found_, part_;
  RegionTables regions_;
  std::vector<uint64_t> class_alive_;   // number of the visit * 2 + alive, by class
  std::vector<LexCursor> class_next_;   // behind each class, where class_alive_ says so
  struct Walk {
    CharTrie::Run run;
    LexCursor cursor;
  };
  std::vector<Walk> walks_;
  std::vector<CharTrie::Run> level_, below_;
};

}  // namespace constrain
