// Executes a grammar program.
//
// A configuration is a set of items: a state with the obligation that it is under (together a
// *key*), and the set of stacks above which it stands.  What may follow depends on that set alone,
// so equal sets are one configuration whatever was read before.  Only items that can read a byte
// are kept, beside the answer whether the text may end here; every item of a configuration can be
// completed, hence a configuration without items and without that answer is dead.
//
// Words of a Config: 0: number of items (0xFF: too many, word 1 is the id of a list) and the
// accepting flag; then a key and a stack set per item, in order of keys.
//
// A step costs a table look-up where a single item just reads a byte, and else about the number of
// items and calls that it goes through.  Ambiguity cannot blow it up: items with one key are united,
// and unions have a budget (grammar_stacks.hpp).  Nothing recurses on the native stack.
#pragma once

#include <memory>
#include <unordered_map>

#include "constrain/grammar_stacks.hpp"
#include "constrain/grammar_tables.hpp"
#include "constrain/grammar_units.hpp"
#include "constrain/lexical_pool.hpp"
#include "constrain/machine.hpp"
#include "constrain/program.hpp"

namespace constrain {

class GrammarMachine final : public Machine {
 public:
  // Throws Error if the program is malformed.
  GrammarMachine(std::shared_ptr<const Program> program, LexicalPool& pool);

  Config start() override;
  bool step(Config& config, uint8_t byte) override;
  bool accepts(const Config& config) override { return (config.w[0] & kAccepts) != 0; }
  // An item in a unit (grammar_units.hpp) has a table; several items are parts of a union.
  LexicalView lexical(const Config& config) override;
  void parts(const Config& config, std::vector<Config>& out) override;
  bool leave(Config& config, uint32_t outcome) override;
  void begin_trial() override;
  void end_trial() override;
  bool live_bytes(const Config& config, ByteSet& out) override;
  size_t bytes() const override;
  std::string describe(const Config& config) override;
  bool complete(const Config& config, std::string& out, size_t limit) override;

 private:
  using StackId = GrammarStacks::StackId;
  struct Item {
    uint32_t key;
    StackId stacks;
    bool operator==(const Item&) const = default;
    auto operator<=>(const Item&) const = default;
  };
  struct Pair {
    uint32_t state, obligation;   // obligation: an index into conjunctions_
  };
  struct Pending {
    uint32_t rank, callee, back, obligation;
    StackId stacks;
  };
  static constexpr uint32_t kAccepts = 0x80000000u;
  static constexpr uint32_t kMany = 0xFF;
  static constexpr size_t kInline = 5;

  uint32_t state_of(uint32_t key) const { return key < states_ ? key : pairs_[key - states_].state; }
  uint32_t obligation_of(uint32_t key) const {
    return key < states_ ? 0 : pairs_[key - states_].obligation;
  }
  uint32_t key_of(uint32_t state, uint32_t obligation);
  // Conjunctions of obligations, as sorted lists; 0 is the empty one.
  uint32_t conjunction(const std::vector<uint32_t>& obligations);
  uint32_t also(uint32_t conjunction, uint32_t obligation);
  uint32_t reduce(uint32_t conjunction, uint8_t byte);   // kNone: broken
  bool ends(uint32_t conjunction) const;

  std::span<const Item> items(const Config& config) const;
  void begin_set();
  void add(uint32_t key, StackId stacks);
  bool was_seen(uint32_t key, StackId stacks);
  bool insert_seen(uint32_t key, StackId stacks);
  void grow_seen();
  void settle(uint32_t at);      // unites what arrived
  void read(std::span<const Item> items, uint8_t byte);
  void close();                  // completes items_ by returns, marks and calls; sets accepts_
  void call_out();
  bool keep();                   // items_ to kept_: what reads; false: nothing is left
  bool resolves(Item item);      // something valid lies behind an item under an obligation
  Config pack();
  bool has_unit(const Item& item) {
    return item.key < states_ && units_.unit(item.key).region != GrammarTables::kNone;
  }

  bool walk_out(const Config& config, std::string& out, size_t limit);
  bool search_out(const Config& config, std::string& out, size_t limit);
  using Distances = std::unordered_map<StackId, uint32_t>;
  uint32_t stack_distance(StackId stacks, Distances& known);

  std::shared_ptr<const Program> program_;
  GrammarTables tables_;
  GrammarUnits units_;
  uint32_t states_;
  GrammarStacks stacks_;

  std::vector<Pair> pairs_;
  std::unordered_map<uint64_t, uint32_t> pair_ids_;
  std::vector<std::vector<uint32_t>> conjunctions_;
  std::unordered_map<uint64_t, uint32_t> also_;

  // The set in the making: items_ in order of arrival, position_[key] valid if its stamp is now's.
  // Every set of stacks that arrives at a key is followed once; they are united at the end: united
  // one by one they would be followed again and again, and leave as many sets behind.
  struct Arrival {
    uint32_t at;                 // position of the item
    StackId stacks;
    uint32_t next;               // the arrival at the item before this one; kNone: none
  };
  struct Seen {
    uint32_t stamp = 0, key = 0;
    StackId stacks = 0;
  };
  std::vector<Arrival> arrivals_;
  std::vector<uint32_t> arrived_;      // per position: the last of its list
  std::vector<uint8_t> long_list_;     // per position: its arrivals are in seen_
  std::vector<StackId> unite_;
  uint32_t union_budget_;
  std::vector<Seen> seen_;
  std::vector<Item> items_, kept_;
  std::vector<uint32_t> position_, stamp_;
  uint32_t now_ = 0;
  std::vector<uint32_t> todo_;   // arrivals whose returns and marks are to be followed
  std::vector<Pending> pending_;
  bool accepts_ = false;

  // Lists of items that do not fit into a Config, interned like stacks.
  struct List {
    uint32_t begin, count, hash;
  };
  uint32_t list_id(std::span<const Item> items);
  void rehash_lists();
  std::vector<Item> list_items_;
  std::vector<List> lists_;
  std::vector<uint32_t> list_slots_;
  bool trial_ = false;
  size_t trial_lists_ = 0, trial_items_ = 0;
};

}  // namespace constrain
