// How many tokens a text still needs, and masks that keep a text within a number of tokens.
//
// A *way* is a completion as tokens: for each state the next token of it, the state behind that,
// and how many tokens are left.  Ways are kept by state and only ever get shorter, so whoever
// follows one never gets stuck, whatever else is tried in between.
//
// A way is found from the machine's own completion, written with as few tokens as the vocabulary
// can (dynamic programming over the trie), and, where the vocabulary is small or cannot write that
// text at all, by a search over tokens.
//
// Which tokens stay within a budget is decided without asking for each of them:
//
// * a text that completed one config is tried on the next before anything is searched;
// * inside a lexical unit tokens are grouped by the cursor that they lead to, and a group needs
//   what its cursor needs to end the unit and what follows behind the unit, whatever was written;
//   where even the farthest cursor is near enough, no group is looked at;
// * tokens that end a unit are walked by their remainders, as in a mask;
// * what all tokens of a state need at most is kept: with more than that left nothing is checked;
// * far from the limit the machine's own bound on what may be needed next is enough.
//
// States are interned and machines stepped outside of trials here: equal states are met again and
// again, and what is found about them is kept.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "constrain/lexical_tables.hpp"
#include "constrain/machine.hpp"
#include "constrain/states.hpp"
#include "constrain/trie.hpp"
#include "constrain/util.hpp"
#include "constrain/vocabulary.hpp"

namespace constrain {

// The fewest tokens that spell a text; false: the vocabulary cannot.
bool fewest_tokens(const Trie& trie, std::string_view text, std::vector<uint32_t>& out);

// The text completes the config, whatever is unknown of what was read before.
bool completes(Machine& machine, Config config, std::string_view text);

class Budget {
 public:
  static constexpr uint32_t kNever = 0xFFFFFFFFu;

  // Of a shard of the vocabulary as it is now.
  Budget(Vocabulary& vocabulary, Shard& shard, Machine& machine, StateTable& states);

  // Tokens up to a valid text, none for a valid text; kNever where no completion is known.
  uint32_t need(StateId state);
  // The same, of a text that is being written: more is tried.
  uint32_t need_here(StateId state);
  // The tokens of that completion; empty where none is needed or known.
  std::vector<uint32_t> way(StateId state);
  // No token can lead to where more than `left` tokens are needed; false: not known.
  bool far(StateId state, uint32_t left);
  // Clears the tokens of a state's mask after which more than `left` tokens would be needed.
  void keep(StateId state, uint32_t left, uint32_t* row);
  size_t bytes() const;

 private:
  struct Way {
    uint32_t need = kNever;
    uint32_t token = 0;
    StateId next = kNoState;
    uint32_t worst = kNever;   // what is needed behind any token
    uint32_t bound = kUnasked; // the machine's bound on that, in bytes
    bool plain = false;        // the machine was asked
    bool improved = false;     // looked ahead from here
    bool known = false;        // all that is tried was tried
    bool exact = false;        // nothing shorter exists
  };
  // Tokens that stay inside a unit, by the cursor behind them.
  struct Group {
    LexCursor cursor;
    std::vector<uint32_t> tokens;
  };
  struct GroupKey {
    LexCursor cursor;
    uint32_t node;
    bool operator==(const GroupKey&) const = default;
  };
  struct CursorHash {
    size_t operator()(const LexCursor& c) const {
      const uint32_t words[3] = {c.goal, c.tracked, c.decoder};
      return hash_words(words, 3);
    }
    size_t operator()(const GroupKey& k) const { return (*this)(k.cursor) * 31 + k.node; }
  };
  struct Tail {
    std::string text;
    uint32_t tokens = 0;
  };

  static constexpr uint32_t kUnasked = kNever - 1;
  Way& at(StateId state);
  StateId behind(StateId state, uint32_t token);
  void find(StateId state);
  void find_plain(StateId state);
  void improve(StateId start);
  // Keeps this completion for the state and for those on its way; false: it is none.
  bool record(StateId state, std::span<const uint32_t> tokens);
  void search(StateId state, size_t steps);
  // Calls visit(node, config) for each trie node with tokens that the machine can read from here.
  template <class Visit>
  void walk(const Config& from, Visit visit);

  // -- masks.  All of the following belong to one call of keep.
  // Whether at most left_ tokens are needed from here.
  bool fits(const Config& config);
  void note(uint32_t need) { most_ = need > most_ ? need : most_; }
  void drop(uint32_t token);
  // Regions of grammars end anywhere and lead to few states: their tokens are walked.
  bool in_unit(const LexicalView& view) const {
    NumberPlace place;
    return view.present && stepper_.region(view.cursor) == nullptr &&
           !stepper_.number(view.cursor, place);
  }
  void judge_node(uint32_t node, const Config& config);
  void judge_token(uint32_t token);
  void keep_walk(const Config& config, uint32_t node);
  void keep_unit(const Config& config, const LexicalView& view, uint32_t node);
  void keep_inside(const Config& config, const LexCursor& cursor, uint32_t node);
  void keep_exceptional(const Config& config, uint32_t node);
  void keep_remainders(const Config& config, const Remainders& remainders);
  void judge_remainders(const Remainders& remainders, uint32_t node, const Config& config);
  void try_remainders(const Remainders& remainders, uint32_t node);
  // What is needed from inside the unit of `config` at this cursor, whatever its text; kNever: that
  // depends on the text, or is not known.
  uint32_t unit_need(const Config& config, const LexCursor& cursor);
  const std::vector<Group>& groups(const LexCursor& cursor, uint32_t node);

  // A search over tokens is worth its steps where it can be complete.
  static constexpr uint32_t kSmallTrie = 4000;   // nodes

  Vocabulary& vocabulary_;
  const Trie& trie_;
  LexicalStepper& stepper_;
  LexicalTables& tables_;
  Machine& machine_;
  StateTable& states_;
  std::vector<Way> ways_;       // by state
  std::vector<Tail> tails_;     // completions found last, for trying
  size_t next_tail_ = 0;
  size_t walked_ = 0;           // steps of walk

  Config start_;
  uint32_t left_ = 0, most_ = 0;
  bool dropped_ = false;
  uint32_t* row_ = nullptr;
  std::vector<uint32_t> before_;   // the row as it was
  std::unordered_map<GroupKey, std::vector<Group>, CursorHash> groups_;
  size_t group_tokens_ = 0;
};

}  // namespace constrain
